use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::council::{Council, Counsel, News, Via, What};
use super::{Answer, Caller, Question};
use crate::gate::json::ReadLimits;
use crate::gate::policy::{Effect, Voices};
use crate::gate::{Arguments, DenyReason};
use crate::http::body::BodyBudget;
use crate::http::fixture::Bench;
use crate::http::guard::Crowd;
use crate::ids::{ChannelName, ConfirmationId, Org, TokenName};

/// Says one thing, or nothing for ever, and writes down what it is told.
#[derive(Default)]
struct Oracle {
    says: Option<Counsel>,
    told: Mutex<Vec<String>>,
}

impl Oracle {
    fn saying(counsel: Counsel) -> Arc<Self> {
        Arc::new(Self {
            says: Some(counsel),
            ..Self::default()
        })
    }

    fn note(&self, what: impl Into<String>) {
        self.told.lock().unwrap().push(what.into());
    }

    fn told(&self) -> Vec<String> {
        self.told.lock().unwrap().clone()
    }
}

#[async_trait]
impl Council for Oracle {
    async fn hear(&self, _: &Caller, _: &Question) -> Counsel {
        match &self.says {
            Some(counsel) => counsel.clone(),
            None => std::future::pending().await,
        }
    }

    fn tell(&self, news: News<'_>) {
        self.note(match news.what {
            What::Denied(reason) => format!("denied {}", reason.code()),
            What::Asked(_) => "asked".to_owned(),
            What::Decided(_, status) => format!("decided {}", status.as_str()),
            What::Begun => "begun".to_owned(),
            What::Ended { output, .. } => format!("ended {output}"),
        });
    }

    fn queued(&self, channel: &ChannelName, _: &ConfirmationId) {
        self.note(format!("queued {}", channel.as_str()));
    }
}

async fn bench(council: &Arc<Oracle>) -> Bench {
    let council = Arc::clone(council) as Arc<dyn Council>;
    Bench::heard_by(council, Crowd::default(), BodyBudget::default()).await
}

fn caller() -> Caller {
    Caller {
        token: TokenName::from("agent"),
        org: Org::from("acme"),
        owner: None,
    }
}

/// A call that policy allows (`free__x`), denies or asks about.
fn question(tool: &str) -> Question {
    Question {
        via: Via::Api,
        tool: tool.parse().unwrap(),
        args: Arguments::read(b"{}", ReadLimits::bytes(10)).unwrap(),
        agent_id: None,
        session_id: None,
        tool_call_id: None,
        requester: None,
        metadata: None,
        job: None,
        lineage: Vec::new(),
        voices: Voices::default(),
        carries_edits: false,
        join_twin: false,
    }
}

const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_council_that_is_late_denies() {
    let silent = Arc::new(Oracle::default());
    let bench = bench(&silent).await;
    let answer = bench
        .api
        .gatekeeper()
        .ask_council(&caller(), question("free__x"), Duration::from_millis(20))
        .await
        .unwrap();
    let Answer::Deny { reason, message, .. } = answer else {
        panic!("silence let a call through: {answer:?}");
    };
    assert_eq!(reason, DenyReason::DeniedByRule);
    assert_eq!(message, "the hooks did not answer within 20 ms");
    assert_eq!(silent.told(), ["denied denied_by_rule"]);
}

#[tokio::test]
async fn the_strictest_of_council_and_policy_wins() {
    let deny = Counsel::Deny {
        hook: "guard".to_owned(),
        why: "frozen".to_owned(),
    };
    let verdicts = [
        (Counsel::Judge(None), "free__x", "allow"),
        (Counsel::Judge(Some(Effect::Allow)), "free__x", "allow"),
        (Counsel::Judge(Some(Effect::Allow)), "never__x", "deny"),
        (Counsel::Judge(Some(Effect::Confirm)), "free__x", "ask"),
        (Counsel::Judge(Some(Effect::Confirm)), "never__x", "deny"),
        (deny, "free__x", "deny"),
    ];
    for (counsel, tool, expected) in verdicts {
        let bench = bench(&Oracle::saying(counsel.clone())).await;
        let gatekeeper = bench.api.gatekeeper();
        let answer = gatekeeper
            .ask_council(&caller(), question(tool), LONG)
            .await
            .unwrap();
        let word = match answer {
            Answer::Allow { .. } => "allow",
            Answer::Deny { .. } => "deny",
            Answer::Asked(_) => "ask",
            Answer::Conflict(_) => "conflict",
        };
        assert_eq!(word, expected, "{counsel:?} on {tool}");
    }
}

#[tokio::test]
async fn the_council_is_told_once_of_each_step_and_never_of_a_jobs_calls() {
    let oracle = Oracle::saying(Counsel::Judge(None));
    let bench = bench(&oracle).await;
    let gatekeeper = bench.api.gatekeeper();
    let asked = Question {
        tool_call_id: Some("c-1".to_owned()),
        session_id: Some("s-1".to_owned()),
        ..question("ask__x")
    };
    for _ in 0..2 {
        let answer = gatekeeper
            .ask_council(&caller(), asked.clone(), LONG)
            .await
            .unwrap();
        let Answer::Asked(dossier) = answer else {
            panic!("{answer:?}");
        };
        let id = dossier.confirmation.id;
        gatekeeper.cancel(&caller(), &id).await.unwrap();
    }
    assert_eq!(oracle.told()[..2], ["asked", "queued chat"]);
    assert!(oracle.told()[2..].iter().all(|what| what == "decided cancelled"));
    let before = oracle.told().len();
    let job = Question {
        via: Via::Job,
        ..question("never__x")
    };
    gatekeeper.ask(&caller(), job).await.unwrap();
    assert_eq!(oracle.told().len(), before);
}
