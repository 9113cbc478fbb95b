//! The real program with a model that plays a script and endpoints that count. It is killed, time passes for its rows, and it
//! lives again on the same store.

use serde_json::{Value, json};

use super::fake_model::FakeModel;
use super::fake_slack;
use super::fake_tool::FakeTool;
use super::people::DANA;
use super::program::Program;
use super::rows::Rows;
use super::world::{Plan, Storage, World};

/// Everything of one story.
pub struct Mortal {
    /// The groups, the people, the tokens.
    pub world: World,
    /// The server.
    pub program: Program,
    /// What it asks.
    pub model: FakeModel,
    /// What it calls.
    pub tool: FakeTool,
    /// What outlives it.
    pub rows: Rows,
}

/// A tool of the configuration: its name, the path of its endpoint, and what else its entry says (`idempotent: true,`).
pub type Entry = (&'static str, &'static str, &'static str);

/// An endpoint that was called under an approval.
pub struct Paid<'a> {
    /// Its path.
    pub path: &'a str,
    /// The request that was approved.
    pub request: &'a str,
    /// Exactly what must have arrived.
    pub args: Value,
    /// How often.
    pub times: usize,
}

impl Mortal {
    /// Starts the fakes and the program with these pieces (`FILE`, text) and tools. The tool `look` is allowed by a rule.
    pub async fn start(storage: Storage, pieces: &[(&str, &str)], tools: &[Entry]) -> Self {
        let (model, tool) = (FakeModel::start().await, FakeTool::start().await);
        let tools: Vec<_> = tools
            .iter()
            .map(|(name, path, more)| {
                format!(
                    "    - {{ name: {name}, description: Counts, {more} parameters: {{ type: object }}, \
                     http: {{ method: POST, url: \"{}\" }} }}\n",
                    tool.url(path)
                )
            })
            .collect();
        let tools = tools.concat();
        let sections = format!(
            "    - {{ name: look, tools: [look], effect: allow }}\njob: {{ workers: 4 }}\nagent:\n  model: \
             {{ base_url: \"{}\", model: any, api_key: model-key-0123456789 }}\n  pieces: ./pieces\n  tools:\n{tools}",
            model.base_url,
        );
        let plan = Plan::on(storage).with(&sections);
        let plan = pieces.iter().fold(plan, |plan, (file, text)| {
            plan.file(&format!("pieces/{file}"), text)
        });
        let world = plan.without_server().await;
        world.slack.limit_rate(false);
        world.feishu.limit_rate(false);
        let program = Program::start(world.place.clone(), &world.config, &[]).await;
        let rows = Rows::of(&world);
        Self {
            world,
            program,
            model,
            tool,
            rows,
        }
    }

    /// Killed at this moment, and started again when every lease is over.
    pub async fn die(&mut self) {
        self.program.kill_9().await;
        self.rows.lapse().await;
        self.program.restart().await;
    }

    /// Submits a job.
    pub async fn submit(&self, piece: &str) -> String {
        let (status, job) = self
            .world
            .api("build-agent")
            .post("/api/jobs", &json!({"piece": piece, "input": "as agreed"}))
            .await;
        assert_eq!(status, 201, "{job}");
        job["id"].as_str().unwrap().to_owned()
    }

    /// The job as its agent sees it.
    pub async fn job(&self, id: &str) -> Value {
        let (status, job) = self
            .world
            .api("build-agent")
            .get(&format!("/api/jobs/{id}"))
            .await;
        assert_eq!(status, 200, "{job}");
        job
    }

    /// Waits until the job is as wanted.
    pub async fn until_job(&self, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let what = format!("the job {id} {what}");
        self.world
            .until(&what, async || Some(self.job(id).await).filter(|job| wanted(job)))
            .await
    }

    /// Waits until the job ended so.
    pub async fn until_ended(&self, id: &str, status: &str) -> Value {
        self.until_job(id, status, |job| {
            assert_ne!(job["wait_reason"], "outcome_unknown", "{job}");
            job["status"] == status
        })
        .await
    }

    /// The requests for which the job is parked, in order of its calls.
    pub async fn parked_on(&self, id: &str, count: usize) -> Vec<String> {
        let job = self
            .until_job(id, "parked on people", |job| job["status"] == "waiting_human")
            .await;
        assert_eq!(job["wait_reason"], "tool_approval", "{job}");
        let requests = job["confirmation_ids"].as_array().unwrap().iter();
        let requests: Vec<_> = requests.map(|id| id.as_str().unwrap().to_owned()).collect();
        assert_eq!(requests.len(), count, "{job}");
        requests
    }

    /// Waits until all cards of the request stand and that is on record.
    pub async fn until_posted(&self, request: &str) {
        self.world
            .until("the cards on record", async || {
                let seen = self.world.request(request).await;
                let mut cards = seen["deliveries"].as_array().unwrap().iter();
                cards.all(|card| card["state"] == "posted").then_some(())
            })
            .await;
    }

    /// Dana presses `approve` or `reject` on the request's card in Slack, the older one where there are two.
    pub async fn press(&self, request: &str, button: &str) {
        let card = self.world.slack_card(request).await;
        self.until_posted(request).await;
        let pressed = self.world.slack.click(&card, button, DANA.slack);
        let answered = pressed.post(&self.world.callback("ops-slack")).await;
        assert_eq!(answered.status, 200);
    }

    /// The job must be parked because nobody knows what became of its call; an operator answers.
    pub async fn say_of_unknown(&self, id: &str, answer: &str) {
        let job = self
            .until_job(id, "parked for an unknown outcome", |job| {
                job["wait_reason"] == "outcome_unknown"
            })
            .await;
        assert_eq!(job["status"], "waiting_human", "{job}");
        let path = format!("/api/jobs/{id}/answer");
        let answer = json!({"answer": answer, "question_id": job["question_id"]});
        let (status, refused) = self.world.api("build-agent").post(&path, &answer).await;
        assert_eq!(status, 403, "the agent does not say what happened: {refused}");
        let (status, taken) = self.world.api("dana-cli").post(&path, &answer).await;
        assert_eq!(status, 200, "{taken}");
    }

    /// After a kill whose place nobody chose: waits until the job completed, and whenever it asks what became of a call, an
    /// operator looks at the endpoints and says so.
    pub async fn until_completed_with_help(&self, id: &str, paths: &[(&str, &str)]) {
        loop {
            let job = self
                .until_job(id, "completed or unsure", |job| {
                    job["status"] == "completed" || job["wait_reason"] == "outcome_unknown"
                })
                .await;
            if job["status"] == "completed" {
                return;
            }
            let mut did = None;
            for (path, request) in paths {
                let seen = self.world.request(request).await;
                if seen["consumed_at"].is_string() && seen["executed_at"].is_null() {
                    did = Some(!self.tool.calls(path).is_empty());
                }
            }
            let did = did.unwrap_or_else(|| panic!("nothing is unknown: {job}"));
            self.say_of_unknown(id, if did { "done" } else { "not_done" })
                .await;
        }
    }

    /// Asserts that the endpoints got what was approved and nothing else, each call under the permit of its request.
    pub async fn assert_paid(&self, all: &[Paid<'_>]) {
        let consumed = self.world.audit("permit.consumed").await;
        let mut keys = std::collections::BTreeSet::new();
        for paid in all {
            let calls = self.tool.calls(paid.path);
            assert_eq!(calls.len(), paid.times, "{}: {calls:?}", paid.path);
            let permits: Vec<_> = consumed
                .iter()
                .filter(|event| event["confirmation_id"] == paid.request)
                .collect();
            assert_eq!(permits.len(), usize::from(paid.times > 0), "{permits:?}");
            for call in &calls {
                assert_eq!(call.body, paid.args, "{}", paid.path);
                assert_eq!(
                    permits[0]["data"]["permit"].as_str(),
                    call.idempotency_key.as_deref()
                );
            }
            keys.extend(calls.into_iter().map(|call| call.idempotency_key.unwrap()));
        }
        let paid = all.iter().filter(|paid| paid.times > 0).count();
        assert_eq!((keys.len(), consumed.len()), (paid, paid), "one permit a request");
    }

    /// Asserts that the conversations that carry `mark` only ever grew, and that in the last one every call has exactly one
    /// result, in order; gives these results and how often the model was asked.
    pub fn assert_whole(&self, mark: &str) -> (Vec<String>, usize) {
        let asked: Vec<_> = self
            .model
            .requests()
            .into_iter()
            .map(|asked| asked["messages"].as_array().unwrap().clone())
            .filter(|messages| {
                let mut given = messages
                    .iter()
                    .filter(|message| message["role"] == "system" || message["role"] == "user");
                given.any(|message| message["content"].to_string().contains(mark))
            })
            .collect();
        for (before, after) in asked.iter().zip(asked.iter().skip(1)) {
            assert!(after.starts_with(before), "{before:#?}\nbecame\n{after:#?}");
        }
        let last = asked.last().expect("a question to the model");
        let calls: Vec<_> = last
            .iter()
            .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
            .map(|call| call["id"].clone())
            .collect();
        let results = last.iter().filter(|message| message["role"] == "tool");
        let (ids, texts): (Vec<_>, Vec<_>) = results
            .map(|message| {
                (
                    message["tool_call_id"].clone(),
                    message["content"].as_str().unwrap().to_owned(),
                )
            })
            .unzip();
        assert_eq!(ids, calls);
        (texts, asked.len())
    }

    /// How many events of this kind the job has.
    pub async fn events(&self, kind: &str, job: &str) -> usize {
        let events = self.world.audit(kind).await;
        events.iter().filter(|event| event["job_id"] == job).count()
    }

    /// The cards that stand in the Slack channel for this request.
    pub fn cards(&self, request: &str) -> usize {
        let cards = self.world.slack.messages(fake_slack::CHANNEL).into_iter();
        cards
            .filter(|card| card.history[0].visible_text().contains(request))
            .count()
    }
}
