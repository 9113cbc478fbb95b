//! `gatepost job watch`: the events of one job as they come. On a terminal one view is kept up to date, with what went on last
//! below it; elsewhere each change and each event is a line, or, with `--json`, the event's data as the API sent it.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::api::{Api, segment};
use super::job::{has_ended, state};
use super::print;
use super::stop::{Done, Stop};

/// Before a stream that broke off is opened again.
const PAUSE: Duration = Duration::from_millis(500);
/// The longest line of a stream that is kept.
const LONGEST: usize = 16 * 1024 * 1024;
/// The lines of what went on last that a live view shows.
const LAST: usize = 8;

/// Watches until the job has ended; stops with code 1 unless it completed.
pub async fn run(api: &Api, id: &str, as_json: bool) -> Done {
    let path = format!("/api/jobs/{}/events", segment(id)?);
    let mut screen = Screen::new(as_json);
    let mut last = None::<String>;
    loop {
        let mut events = Events::default();
        let before = last.clone();
        let streamed = api
            .stream(&path, before.as_deref(), |bytes| {
                for event in events.take(bytes) {
                    last = event.id.or(last.take());
                    if event.name == "job" {
                        screen.show(&event.data);
                    } else {
                        screen.tell(&event.data);
                    }
                }
            })
            .await;
        match (screen.ended.as_deref(), streamed) {
            (Some("completed"), _) => return Ok(()),
            (Some(_), _) => return Err(Stop::Told),
            (None, Ok(())) => tokio::time::sleep(PAUSE).await,
            (None, Err(error)) => return Err(error.into()),
        }
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
struct Event {
    id: Option<String>,
    name: String,
    data: Value,
}

/// Takes events out of a stream, however it is cut (HTML standard, "Server-sent events"; one line of data each).
#[derive(Default)]
struct Events {
    line: Vec<u8>,
    id: Option<String>,
    name: Option<String>,
    data: Option<Value>,
}

impl Events {
    fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                events.extend(self.read(line.trim_ascii_end()));
            } else if self.line.len() < LONGEST {
                self.line.push(*byte);
            }
        }
        events
    }

    fn read(&mut self, line: &[u8]) -> Option<Event> {
        let text = |value: &[u8]| String::from_utf8_lossy(value.trim_ascii()).into_owned();
        if line.is_empty() {
            let (id, name) = (self.id.take(), self.name.take());
            return self.data.take().map(|data| Event {
                id,
                name: name.unwrap_or_default(),
                data,
            });
        }
        if let Some(id) = line.strip_prefix(b"id:") {
            self.id = Some(text(id));
        } else if let Some(name) = line.strip_prefix(b"event:") {
            self.name = Some(text(name));
        } else if let Some(data) = line.strip_prefix(b"data:") {
            self.data = serde_json::from_slice(data.trim_ascii()).ok();
        }
        None
    }
}

/// What was shown last.
struct Screen {
    as_json: bool,
    live: bool,
    shown: Vec<String>,
    /// How many lines of the terminal that takes, with what went on below it.
    height: usize,
    /// What went on last.
    last: VecDeque<String>,
    ended: Option<String>,
}

impl Screen {
    fn new(as_json: bool) -> Self {
        Self {
            as_json,
            live: !as_json && print::is_live(),
            shown: Vec::new(),
            height: 0,
            last: VecDeque::new(),
            ended: None,
        }
    }

    /// The job changed.
    fn show(&mut self, job: &Value) {
        if has_ended(job) {
            self.ended = job["status"].as_str().map(str::to_owned);
        }
        if self.as_json {
            print::line(&job.to_string());
            return;
        }
        let before = std::mem::replace(&mut self.shown, lines(job));
        if self.live {
            self.draw();
        } else {
            for line in self.shown.iter().filter(|line| !before.contains(line)) {
                print::line(line);
            }
        }
    }

    /// Something went on.
    fn tell(&mut self, event: &Value) {
        if self.as_json {
            print::line(&event.to_string());
            return;
        }
        let line = format!("  \u{b7} {}", progress(event));
        if self.live {
            if self.last.len() == LAST {
                self.last.pop_front();
            }
            self.last.push_back(line);
            self.draw();
        } else {
            print::line(&line);
        }
    }

    fn draw(&mut self) {
        let lines: Vec<String> = self.shown.iter().chain(&self.last).cloned().collect();
        print::over(self.height, &lines);
        self.height = lines.len();
    }
}

/// What went on, in words.
fn progress(event: &Value) -> String {
    let text = |name: &str| print::text(event, name);
    match event["type"].as_str() {
        Some("resumed") => "resumed".to_owned(),
        Some("turn_started") => format!("asks the model, after {} replies", text("turn")),
        Some("model_answered") => format!(
            "the model answered: {} calls, {} tokens in ({} cached), {} out",
            text("calls"),
            text("input_tokens"),
            text("cached_tokens"),
            text("output_tokens")
        ),
        Some("tool_started") => format!("calls {} ({})", text("tool"), text("call")),
        Some("tool_finished") => format!("{} ({}): {}", text("tool"), text("call"), text("status")),
        Some("movement_changed") => format!("movement {} to {}", text("from"), text("to")),
        Some("parked") => format!("parked: {}", text("reason")),
        Some("ended") => format!("ended: {}", text("status")),
        _ => format!("event {}", text("type")),
    }
}

/// The view of a job.
fn lines(job: &Value) -> Vec<String> {
    let mut lines = vec![
        format!("{}  {}", print::text(job, "id"), state(job)),
        format!("  movement {}", print::text(job, "movement")),
    ];
    let activity = &job["activity"];
    if !activity.is_null() {
        let cost = activity["cost_micros"].as_u64().unwrap_or(0);
        let cost = if cost == 0 {
            String::new()
        } else {
            format!(", cost {}.{:06}", cost / 1_000_000, cost % 1_000_000)
        };
        lines.push(format!(
            "  {} replies, {} tokens in, {} out{cost}",
            print::text(activity, "replies"),
            print::text(activity, "input_tokens"),
            print::text(activity, "output_tokens"),
        ));
        for call in activity["calls"].as_array().into_iter().flatten() {
            let request = match call["confirmation_id"].as_str() {
                Some(request) => format!("  {}", print::foreign(request)),
                None => String::new(),
            };
            lines.push(format!(
                "  call {} {}{request}",
                print::text(call, "tool"),
                print::text(call, "state")
            ));
        }
    }
    for child in job["subtask_ids"].as_array().into_iter().flatten() {
        lines.push(format!("  sub-task {}", print::inert(child)));
    }
    for (name, member) in [("asks", "question"), ("result", "result"), ("error", "error")] {
        if !job[member].is_null() {
            lines.push(format!("  {name} {}", print::text(job, member)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Event, Events, lines, progress};

    #[test]
    fn events_are_found_however_they_are_cut() {
        let text = b": hello\n\nid: 3\nevent: job\ndata: {\"id\":\"a\"}\n\ndata: not json\n\nevent: parked\ndata: {\"type\":\"parked\",\"reason\":\"subtasks\"}\n\n";
        for step in [1, 5, 1_000] {
            let mut events = Events::default();
            let found: Vec<_> = text.chunks(step).flat_map(|piece| events.take(piece)).collect();
            let event = |id: Option<&str>, name: &str, data: Value| Event {
                id: id.map(str::to_owned),
                name: name.to_owned(),
                data,
            };
            let expected = [
                event(Some("3"), "job", json!({"id": "a"})),
                event(None, "parked", json!({"type": "parked", "reason": "subtasks"})),
            ];
            assert_eq!(found, expected, "{step}");
        }
    }

    #[test]
    fn each_event_has_its_words_and_none_is_markup() {
        let table = [
            (json!({"type": "resumed"}), "resumed"),
            (
                json!({"type": "turn_started", "turn": 2}),
                "asks the model, after 2 replies",
            ),
            (
                json!({"type": "model_answered", "calls": 1, "input_tokens": 9, "cached_tokens": 4, "output_tokens": 2}),
                "the model answered: 1 calls, 9 tokens in (4 cached), 2 out",
            ),
            (
                json!({"type": "tool_started", "call": "t1", "tool": "t_pay"}),
                "calls t_pay (t1)",
            ),
            (
                json!({"type": "tool_finished", "call": "t1", "tool": "t_pay", "status": "unknown"}),
                "t_pay (t1): unknown",
            ),
            (
                json!({"type": "movement_changed", "from": "a", "to": "b"}),
                "movement a to b",
            ),
            (
                json!({"type": "parked", "reason": "tool_approval"}),
                "parked: tool_approval",
            ),
            (json!({"type": "ended", "status": "aborted"}), "ended: aborted"),
            (json!({"type": "of_tomorrow"}), "event of_tomorrow"),
        ];
        for (event, words) in table {
            assert_eq!(progress(&event), words);
        }
        let odd = progress(&json!({"type": "tool_started", "tool": "a\u{1b}[2J\nb", "call": "c"}));
        assert!(!odd.contains(['\u{1b}', '\n']), "{odd}");
    }

    #[test]
    fn what_others_wrote_is_inert() {
        let job = json!({
            "id": "job_1", "status": "waiting_human", "wait_reason": "tool_approval", "movement": "pay\u{1b}[2J",
            "activity": {"replies": 2, "input_tokens": 10, "output_tokens": 4, "cost_micros": 1_500_000,
                "calls": [{"tool": "t_pay", "state": "waiting", "confirmation_id": "cr_1"}]},
            "subtask_ids": ["job_2"], "question": null, "result": "line\nline", "error": null
        });
        let lines = lines(&job);
        assert_eq!(lines[0], "job_1  waiting_human (tool_approval)");
        assert!(
            lines.iter().all(|line| !line.contains(['\u{1b}', '\n'])),
            "{lines:?}"
        );
        assert!(
            lines.contains(&"  2 replies, 10 tokens in, 4 out, cost 1.500000".to_owned()),
            "{lines:?}"
        );
        assert!(lines.contains(&"  call t_pay waiting  cr_1".to_owned()));
        assert!(lines.contains(&"  sub-task job_2".to_owned()));
    }
}
