//! One suite that both databases must pass. Each test is written once, over a [`Place`], and named in [`on_both`].

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gatepost_channel::{Decision, MessageRef, UtcMillis};

use super::{AuditFilter, Settings, Store, StoreError};
use crate::audit::{Checker, Opening};
use crate::clock::ManualClock;
use crate::confirmation::cancel::Cancel;
use crate::confirmation::consume::Consume;
use crate::confirmation::create::{Create, Created, shown_args};
use crate::confirmation::decide::{Backing, Ballot, Clicked, Decide, Decided, Insight, Surface, Target};
use crate::confirmation::roll::{Roll, Voter};
use crate::confirmation::{Asked, Delivery, DeliveryState, Dossier};
use crate::gate::json::ReadLimits;
use crate::gate::policy::{Approvers, PartialView};
use crate::gate::{Arguments, DecisionTerms, Digest, Terms, ToolName};
use crate::ids::{
    ChannelName, ConfirmationId, DeliveryId, Ids as _, JobId, OperatorId, Org, PermitId, SeededIds, TokenName,
};
use crate::job::{Job, JobState};
use crate::lifecycle::Tasks;

mod authority;
mod fault;
mod growth;
mod log;
mod model;
mod note;
mod pages;
mod place;
mod request;
mod set;
mod tally;
mod two;
mod upgrade;
mod work;

use place::Place;

/// Makes a test of each function for each database.
macro_rules! on_both {
    ($($room:ident: $($test:ident),+;)+) => {
        mod on_sqlite {
            $($(#[tokio::test]
            async fn $test() {
                let place = super::Place::sqlite().await;
                super::$room::$test(&place).await;
                place.close().await;
            })+)+
        }
        mod on_postgres {
            $($(#[tokio::test]
            async fn $test() {
                let place = super::Place::postgres().await;
                super::$room::$test(&place).await;
                place.close().await;
            })+)+
        }
    };
}

on_both! {
    request:
        asking_twice_finds_the_same_request,
        the_same_call_id_with_other_arguments_is_a_conflict,
        an_identical_open_call_is_joined_until_it_is_consumed,
        a_quorum_counts_persons,
        of_sixteen_deciders_one_settles,
        a_decision_counts_until_the_deadline,
        a_late_decision_and_the_sweeper_agree,
        cancelling_settles_once,
        a_permit_is_consumed_once_under_sixteen_racers,
        a_permit_is_bound_to_the_digest_and_to_its_time,
        a_repeated_click_gets_the_first_answer,
        texts_come_back_exactly_whatever_they_hold,
        a_grant_is_kept_used_listed_and_ended,
        a_grant_is_used_no_more_often_than_it_says,
        an_edit_is_kept_exactly_and_one_person_answers_each_form_once;
    set:
        like_requests_share_a_card_and_are_read_whole,
        a_storm_of_like_requests_fills_its_cards,
        all_at_once_and_single_presses_race;
    work:
        a_decision_wakes_the_parked_job,
        a_decision_that_comes_first_is_not_lost,
        two_workers_never_claim_the_same_job,
        a_lease_that_ran_out_is_claimed_again_and_the_old_holder_is_fenced,
        parked_jobs_are_not_claimed_and_stranded_ones_are_found,
        an_outbox_row_is_claimed_once_and_a_newer_wish_outlives_the_sender,
        a_request_reached_through_two_cards_is_read_once_and_whole;
    log:
        the_chain_has_no_gaps_under_concurrency_and_verifies,
        the_log_cannot_be_edited_or_cut_but_openings_can_be_erased,
        arguments_stand_once_and_the_log_shows_and_guards_them_all_the_same,
        old_callbacks_are_forgotten;
    authority:
        an_armed_approval_is_kept_until_a_second_person_confirms,
        of_sixteen_uses_of_one_code_one_counts,
        a_broken_glass_is_kept_counted_and_listed;
    tally:
        of_sixteen_calls_as_many_as_the_limit_are_taken,
        a_window_moves_on_and_what_is_past_is_forgotten;
    note:
        a_note_is_kept_replaced_and_found_by_its_kind,
        of_sixteen_writers_of_one_note_none_is_lost;
    fault:
        a_bad_item_does_not_hurt_its_neighbours,
        a_statement_that_fails_leaves_nothing_half_written,
        a_change_that_misses_its_row_keeps_nothing,
        a_row_that_makes_no_sense_does_not_stop_the_others,
        what_was_queued_is_committed_before_the_store_ends;
    pages:
        every_row_stands_on_exactly_one_page,
        filters_are_taken_literally,
        a_nonsense_cursor_is_refused,
        counts_and_deadlines_are_told;
    model:
        random_interleavings_end_like_the_model;
}

/// Answers everybody who may be asked.
fn roll() -> Arc<Roll> {
    let voter = |name: &str| Voter {
        id: OperatorId::from(name),
        name: name.to_uppercase(),
        orgs: vec![Org::from("acme"), Org::from("beta")],
        roles: vec!["finance".to_owned()],
    };
    let named = ["dana", "erin", "finn"].into_iter().map(str::to_owned);
    Arc::new(Roll::new(
        named
            .chain((0..16).map(|n| format!("p{n}")))
            .map(|name| voter(&name)),
    ))
}

/// How a test asks for a person.
#[derive(Debug, Clone)]
struct Ask {
    org: &'static str,
    call: Option<String>,
    args: String,
    quorum: u32,
    timeout: Duration,
    join: bool,
    job: Option<JobId>,
    cards: usize,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            org: "acme",
            call: None,
            args: r#"{"amount":120}"#.to_owned(),
            quorum: 1,
            timeout: Duration::from_mins(2),
            join: false,
            job: None,
            cards: 1,
        }
    }
}

impl Ask {
    fn call(call: &str) -> Self {
        Self {
            call: Some(call.to_owned()),
            ..Self::default()
        }
    }

    fn digest(&self) -> Digest {
        Digest::of(
            &tool(),
            &Arguments::read(self.args.as_bytes(), ReadLimits::bytes(1 << 20)).expect("arguments"),
        )
    }

    fn create(&self, place: &Place) -> Create {
        let ids = &*place.ids;
        let card = |n: usize| {
            let mut nonce = [0; 16];
            ids.random(&mut nonce);
            let mut token_hash = [0; 32];
            ids.random(&mut token_hash);
            Delivery {
                id: DeliveryId::fresh(ids),
                channel: ChannelName(format!("channel-{n}")),
                host: None,
                state: DeliveryState::Queued,
                nonce,
                token_hash,
                approvable: true,
                unheard: false,
                told: false,
                lost: 0,
                standing: Vec::new(),
                error: None,
            }
        };
        Create {
            id: ConfirmationId::fresh(ids),
            org: Org::from(self.org),
            asked: Asked {
                token: TokenName::from("build-agent"),
                tool: tool(),
                args: self.args.clone(),
                digest: self.digest(),
                agent_id: Some("agent".to_owned()),
                session_id: Some("session".to_owned()),
                tool_call_id: self.call.clone(),
                requester: Some("olga".to_owned()),
                metadata: None,
                persons: vec![OperatorId::from("olga")],
                job: self.job.clone(),
            },
            rule: Some("big-payments".to_owned()),
            reason: Some("large".to_owned()),
            terms: Terms {
                channels: vec!["channel-0".to_owned()],
                approvers: Approvers {
                    roles: vec!["finance".to_owned()],
                    operators: Vec::new(),
                    ..Approvers::default()
                },
                also: vec![],
                quorum: self.quorum,
                deny_threshold: 1,
                self_approval: false,
                timeout_ms: i64::try_from(self.timeout.as_millis()).expect("short"),
                permit_ttl_ms: 3_600_000,
                partial_view: PartialView::Reject,
                risk: None,
                redact: Vec::new(),
                decision: DecisionTerms::default(),
                after: crate::gate::AfterTerms::default(),
            },
            deliveries: (0..self.cards).map(card).collect(),
            grantors: Some(roll()),
            collapse: None,
            join_twin: self.join,
            shown_args: shown_args(&self.args, None, ids),
            shown_requester: Some(Opening::new("olga", ids)),
        }
    }
}

fn tool() -> ToolName {
    "oa__purchase_pay".parse().expect("a tool name")
}

fn decide(id: &ConfirmationId, person: &str, decision: Decision) -> Decide {
    Decide {
        target: Target::Request {
            id: id.clone(),
            org: Org::from("acme"),
        },
        ballot: Ballot::Person(OperatorId::from(person)),
        decision,
        reason: None,
        grant: None,
        edit: None,
        seen: None,
        surface: Surface::Api,
        backing: Backing::default(),
        roll: roll(),
        insight: Insight::default(),
    }
}

fn cancel(id: &ConfirmationId) -> Cancel {
    Cancel {
        id: id.clone(),
        org: Org::from("acme"),
        token: TokenName::from("build-agent"),
    }
}

fn consume(place: &Place, id: &ConfirmationId, digest: Digest) -> Consume {
    Consume {
        id: id.clone(),
        token: TokenName::from("build-agent"),
        digest,
        judged: digest,
        permit: PermitId::fresh(&*place.ids),
        roll: roll(),
        denied_by: None,
        grant: None,
        offered: None,
    }
}

impl Place {
    /// Asks for a person, where nobody asked before.
    async fn fresh(&self, ask: &Ask) -> Dossier {
        match self.store.run(ask.create(self)).await.expect("create") {
            Created::Fresh(dossier) => dossier,
            other => panic!("asked before: {other:?}"),
        }
    }

    async fn approve(&self, id: &ConfirmationId, person: &str) -> Decided {
        self.store
            .run(decide(id, person, Decision::Approve))
            .await
            .expect("decide")
    }

    async fn dossier(&self, id: &ConfirmationId) -> Dossier {
        self.store
            .read()
            .dossier(id)
            .await
            .expect("read")
            .expect("a request")
    }

    async fn job(&self, id: &JobId) -> Job {
        self.store.read().job(id).await.expect("read").expect("a job")
    }

    /// A job as it is submitted.
    fn new_job(&self, state: JobState) -> Job {
        Job {
            id: JobId::fresh(&*self.ids),
            org: Org::from("acme"),
            token: TokenName::from("build-agent"),
            piece: "pay".to_owned(),
            input: "pay it".to_owned(),
            agent_id: None,
            session_id: None,
            requester: None,
            persons: Vec::new(),
            parent: None,
            state,
            movement: "plan".to_owned(),
            waiting_on: Vec::new(),
            children: Vec::new(),
            confirmations: Vec::new(),
            memory: "{}".to_owned(),
            priority: 0,
            attempts: 0,
            run_at: UtcMillis(0),
            fence: 0,
            created_at: UtcMillis(0),
            updated_at: UtcMillis(0),
            version: 0,
        }
    }

    /// Checks every chain against its head; tells how many events there are.
    async fn verify(&self) -> u64 {
        let mut events = 0;
        for head in self.store.read().heads().await.expect("heads") {
            let mut checker = Checker::new(head.org.clone());
            let mut filter = AuditFilter {
                orgs: vec![head.org.clone()],
                limit: 7,
                ..AuditFilter::default()
            };
            loop {
                let page = self.store.read().audit(&filter).await.expect("events");
                for event in &page.items {
                    checker.take(event).expect("a true chain");
                }
                filter.cursor = page.next_cursor;
                if filter.cursor.is_none() {
                    break;
                }
            }
            checker.end(&head).expect("the head of this chain");
            assert_eq!(checker.head().seq, head.seq, "no tail is missing");
            events += checker.events();
        }
        events
    }

    /// The kinds of a request's events, in order.
    async fn kinds(&self, id: &ConfirmationId) -> Vec<String> {
        let filter = AuditFilter {
            confirmation: Some(id.clone()),
            ..AuditFilter::default()
        };
        let page = self.store.read().audit(&filter).await.expect("events");
        page.items.into_iter().map(|event| event.kind).collect()
    }
}

/// Runs futures side by side on tasks of their own and gathers their answers in order.
async fn side_by_side<F, T>(futures: impl IntoIterator<Item = F>) -> Vec<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let mut set = tokio::task::JoinSet::new();
    let mut answers = Vec::new();
    for (n, future) in futures.into_iter().enumerate() {
        set.spawn(async move { (n, future.await) });
    }
    while let Some(done) = set.join_next().await {
        answers.push(done.expect("no panic"));
    }
    answers.sort_by_key(|(n, _)| *n);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

fn click(dossier: &Dossier, press: &str, person: &str, decision: Decision) -> Decide {
    let card = &dossier.deliveries[0];
    Decide {
        target: Target::Card(Clicked {
            channel: card.channel.clone(),
            org: dossier.confirmation.org.clone(),
            at: MessageRef {
                chat: "chat".to_owned(),
                message: "message".to_owned(),
            },
            token: Some(card.token_hash),
            revision: dossier.confirmation.revision,
            replay: super::ReplayKey {
                app: gatepost_channel::AppKey {
                    kind: "chat".to_owned(),
                    id: "A1".to_owned(),
                },
                key: press.to_owned(),
            },
            asks_back: false,
            alone: false,
            set: None,
        }),
        surface: Surface::Card,
        ..decide(&dossier.confirmation.id, person, decision)
    }
}
