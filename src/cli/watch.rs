//! `gatepost job watch`: the events of one job as they come. On a terminal one view is kept up to date; elsewhere each change
//! is a line, or, with `--json`, the job as the API sent it.

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

/// Watches until the job has ended; stops with code 1 unless it completed.
pub async fn run(api: &Api, id: &str, as_json: bool) -> Done {
    let path = format!("/api/jobs/{}/events", segment(id)?);
    let mut screen = Screen::new(as_json);
    loop {
        let mut events = Events::default();
        let streamed = api
            .stream(&path, |bytes| {
                for job in events.take(bytes) {
                    screen.show(&job);
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

/// Takes the data of events out of a stream, however it is cut.
#[derive(Default)]
struct Events {
    line: Vec<u8>,
}

impl Events {
    fn take(&mut self, bytes: &[u8]) -> Vec<Value> {
        let mut jobs = Vec::new();
        for byte in bytes {
            if *byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                let data = line.strip_prefix(b"data:");
                jobs.extend(data.and_then(|data| serde_json::from_slice(data.trim_ascii()).ok()));
            } else if self.line.len() < LONGEST {
                self.line.push(*byte);
            }
        }
        jobs
    }
}

/// What was shown last.
struct Screen {
    as_json: bool,
    live: bool,
    shown: Vec<String>,
    ended: Option<String>,
}

impl Screen {
    fn new(as_json: bool) -> Self {
        Self {
            as_json,
            live: !as_json && print::is_live(),
            shown: Vec::new(),
            ended: None,
        }
    }

    fn show(&mut self, job: &Value) {
        if has_ended(job) {
            self.ended = job["status"].as_str().map(str::to_owned);
        }
        if self.as_json {
            print::line(&job.to_string());
            return;
        }
        let lines = lines(job);
        if self.live {
            print::over(self.shown.len(), &lines);
        } else {
            for line in lines.iter().filter(|line| !self.shown.contains(line)) {
                print::line(line);
            }
        }
        self.shown = lines;
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
    use serde_json::json;

    use super::{Events, lines};

    #[test]
    fn events_are_found_however_they_are_cut() {
        let text = b": hello\n\nid: 3\nevent: job\ndata: {\"id\":\"a\"}\n\ndata: not json\n\ndata: {\"id\":\"b\"}\n\n";
        for step in [1, 5, 1_000] {
            let mut events = Events::default();
            let found: Vec<_> = text.chunks(step).flat_map(|piece| events.take(piece)).collect();
            assert_eq!(found, [json!({"id": "a"}), json!({"id": "b"})]);
        }
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
