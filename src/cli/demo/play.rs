//! The play: what happens in the demo, told as it happens. Every actor but the gate is a client of the HTTP API.

use std::time::Duration;

use gatepost_channel::Card;
use serde_json::{Value, json};

use super::bank::{Bank, Payment};
use super::story::Story;
use crate::cli::answer::Answer;
use crate::cli::api::{Api, Filters};
use crate::cli::stop::Stop;
use crate::cli::{job, print};
use crate::clock::{Clock as _, SystemClock};
use crate::delivery::card::Voice;
use crate::gate::Json;
use crate::gate::json::ReadLimits;
use crate::gatekeeper::Gatekeeper;
use crate::ids::ConfirmationId;

/// What the agent is told to do.
const INPUT: &str = "Pay invoice INV-4711 of Northwind Paper Ltd.";
/// How often a state is looked at that has no wait of its own.
const LOOK: Duration = Duration::from_millis(20);

/// The cards of the requests, as the finance desk shows them.
#[derive(Clone)]
pub struct Cards(pub Gatekeeper);

impl Cards {
    /// The card of a request as it stands.
    pub async fn card(&self, id: &ConfirmationId) -> Option<Card> {
        let dossier = self.0.store().read().dossier(id).await.ok()??;
        let delivery = dossier.deliveries.first()?;
        Some(
            self.0
                .maker()
                .card(&dossier, delivery, &Voice::default(), SystemClock.now()),
        )
    }
}

/// Who plays, and where.
pub struct Cast<'a> {
    /// Tells it.
    pub story: &'a Story,
    /// The agent's API.
    pub agent: Api,
    /// The auditor's API.
    pub auditor: Api,
    /// Where payments arrive.
    pub bank: Bank,
    /// What the person sees.
    pub cards: Cards,
}

/// A call that waits for a person.
pub struct Parked {
    /// The job.
    pub job: String,
    /// The request.
    pub request: ConfirmationId,
}

/// How it ended.
#[derive(Debug)]
pub struct Ending {
    /// What the request became.
    pub decision: String,
    /// What the job became.
    pub job: String,
    /// How many payments arrived.
    pub payments: usize,
    /// Events of a chain that holds.
    pub events: Option<u64>,
    /// What should not be as it is.
    pub wrong: Vec<String>,
}

impl Cast<'_> {
    /// The agent submits its job and makes its call; the gate parks it.
    pub async fn until_parked(&self) -> Result<Parked, Stop> {
        self.story
            .step("agent", &format!("submits the job pay-invoice: “{INPUT}”"));
        let body = json!({"piece": "pay-invoice", "input": INPUT, "agent_id": "invoice-agent", "session_id": "demo"});
        let submitted = self.agent.post("/api/jobs", &body).await?;
        let id = submitted.value["id"].as_str().unwrap_or_default().to_owned();
        let job = self
            .look(&format!("/api/jobs/{id}"), |job| {
                job["status"] == "waiting_human" || job::has_ended(job)
            })
            .await?;
        let request = job.value["confirmation_ids"]
            .as_array()
            .and_then(|ids| ConfirmationId::parse(ids.last()?.as_str()?).ok());
        let Some(request) = request.filter(|_| job.value["status"] == "waiting_human") else {
            let (status, error) = (
                print::text(&job.value, "status"),
                print::text(&job.value, "error"),
            );
            return Err(Stop::failed(format!(
                "the job did not wait for a person: {status}, {error}"
            )));
        };
        let asked = self
            .agent
            .get(&format!("/api/confirmations/{request}"))
            .await?
            .value;
        self.story.step(
            "gate",
            &format!(
                "{} needs a person: {}",
                print::text(&asked, "tool_name"),
                print::text(&asked, "reason")
            ),
        );
        self.story
            .step("job", "is parked: a row in the database, no worker waits for it");
        let card = self.cards.card(&request).await;
        let card = card.ok_or_else(|| Stop::failed("the request has no card"))?;
        self.story.step("desk", "finance-desk shows the card:");
        self.story.card(&card);
        Ok(Parked { job: id, request })
    }

    /// The decision was made or is awaited; the rest follows from it.
    pub async fn until_the_end(&self, parked: &Parked) -> Result<Ending, Stop> {
        let request = self.until_decided(&parked.request).await?;
        let decision = print::text(&request.value, "status");
        self.tell_decision(&request.value, &decision);
        let approved = decision == "approved";
        if approved {
            self.story
                .step("job", "resumes with exactly the call that was approved");
        }
        let job = self
            .look(&format!("/api/jobs/{}", parked.job), job::has_ended)
            .await?;
        let payments = self.bank.payments();
        let mut wrong = Vec::new();
        self.tell_payments(&payments, &request, approved, &mut wrong);
        let status = print::text(&job.value, "status");
        self.story
            .step("job", &format!("{status}: {}", print::text(&job.value, "result")));
        if status != if approved { "completed" } else { "aborted" } {
            wrong.push(format!(
                "the job is {status}: {}",
                print::text(&job.value, "error")
            ));
        }
        let events = self.verify(&mut wrong).await?;
        Ok(Ending {
            decision,
            job: status,
            payments: payments.len(),
            events,
            wrong,
        })
    }

    async fn until_decided(&self, id: &ConfirmationId) -> Result<Answer, Stop> {
        let (path, wait) = (
            format!("/api/confirmations/{id}"),
            Filters::new().with("wait", Some("30")),
        );
        loop {
            let request = self.agent.ask(&path, &wait).await?;
            if request.value["status"] != "pending" {
                return Ok(request);
            }
        }
    }

    fn tell_decision(&self, request: &Value, decision: &str) {
        let vote = request["votes"]
            .as_array()
            .and_then(|votes| votes.last())
            .unwrap_or(&Value::Null);
        let reason = vote["reason"]
            .as_str()
            .map(|reason| format!(": “{}”", print::foreign(reason)));
        match vote["operator"].as_str() {
            Some(who) => self.story.step(
                &print::foreign(who),
                &format!("{decision} it{}", reason.unwrap_or_default()),
            ),
            None => self.story.step("gate", &format!("the request is {decision}")),
        }
    }

    /// Exactly one payment after an approval, with the approved arguments and a permit as its key; none after anything else.
    fn tell_payments(&self, payments: &[Payment], request: &Answer, approved: bool, wrong: &mut Vec<String>) {
        match payments {
            [] if !approved => self.story.step("bank", "received nothing"),
            [payment] if approved => {
                self.story.step(
                    "bank",
                    &format!("received exactly one request: {}", print::foreign(&payment.body)),
                );
                self.story
                    .more(&format!("with Idempotency-Key: {}", print::foreign(&payment.key)));
                let body = Json::read(payment.body.as_bytes(), ReadLimits::bytes(payment.body.len())).ok();
                if body.is_none() || body != request.exact("tool_args") {
                    wrong.push("the payment is not the call that was approved".to_owned());
                }
                if payment.key.is_empty() {
                    wrong.push("the payment carries no idempotency key".to_owned());
                }
            }
            others => wrong.push(format!("{} payments arrived", others.len())),
        }
    }

    async fn verify(&self, wrong: &mut Vec<String>) -> Result<Option<u64>, Stop> {
        let chain = self.auditor.get("/api/audit/verify").await?.value;
        if chain["ok"] != true {
            wrong.push("the audit chain does not hold".to_owned());
            return Ok(None);
        }
        self.story.step(
            "audit",
            &format!("the chain of {} events holds", print::text(&chain, "events")),
        );
        Ok(chain["events"].as_u64())
    }

    async fn look(&self, path: &str, done: impl Fn(&Value) -> bool) -> Result<Answer, Stop> {
        loop {
            let found = self.agent.get(path).await?;
            if done(&found.value) {
                return Ok(found);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Dana, when nobody plays her: looks at the card through the API and approves it.
pub async fn approve(person: &Api, id: &ConfirmationId) -> Result<(), Stop> {
    let path = format!("/api/confirmations/{id}");
    person.get(&path).await?;
    person
        .post(
            &format!("{path}/respond"),
            &json!({"decision": "approve", "reason": "checked with the supplier"}),
        )
        .await?;
    Ok(())
}
