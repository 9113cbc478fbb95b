//! Which requests a person means, and which wait for them. Reads only; whether an answer counts is judged when it is given.

use gatepost_channel::UtcMillis;

use super::words::{Code, Name};
use crate::confirmation::decide::Refusal;
use crate::confirmation::roll::Roll;
use crate::confirmation::{Dossier, Status, stage};
use crate::gate::ShortCode;
use crate::gatekeeper::Gatekeeper;
use crate::ids::{ConfirmationId, OperatorId, Org};
use crate::storage::{ConfirmationFilter, ReadError};

/// Requests that are looked through at most, for one command; the newest first.
const MOST: usize = 1_000;
/// Requests read at once.
const PAGE: usize = 200;
/// Settled requests that are looked through for a code.
const SETTLED: usize = 200;

/// What a name names.
#[derive(Debug)]
pub(super) enum Found {
    /// Nothing here.
    Nothing,
    /// This request.
    One(Box<Dossier>),
    /// Several that this person may decide.
    Several(Vec<Dossier>),
}

/// What waits for a person.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The requests, newest first.
    pub(super) requests: Vec<Dossier>,
    /// More were not looked through.
    pub(super) beyond: bool,
}

/// Who asks, by which roll, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker<'a> {
    /// The person.
    pub(super) person: &'a OperatorId,
    /// Who may decide, as the configuration and the platforms have it now.
    pub(super) roll: &'a Roll,
    /// When.
    pub(super) now: UtcMillis,
}

/// Whether the person may decide the request at this instant, in whatever stage.
pub(super) fn may_decide(asker: Asker<'_>, dossier: &Dossier) -> bool {
    let row = &dossier.confirmation;
    asker
        .roll
        .may_decide(asker.person, &row.org, &row.in_force(), asker.now)
}

/// Whether the person may be shown the request; `Err` also says whether that could not be found out.
pub(super) fn may_be_shown(asker: Asker<'_>, dossier: &Dossier) -> Result<(), Refusal> {
    if may_decide(asker, dossier) {
        return Ok(());
    }
    let hopeful = asker.roll.hopeful();
    let perhaps = hopeful.is_some_and(|roll| may_decide(Asker { roll: &roll, ..asker }, dossier));
    Err(if perhaps {
        Refusal::LookUpFailed
    } else {
        Refusal::NotAuthorised
    })
}

/// Whether the person's answer is asked for now.
fn waits_for(asker: Asker<'_>, dossier: &Dossier) -> bool {
    let Asker { person, roll, now } = asker;
    let row = &dossier.confirmation;
    let terms = row.in_force();
    let stage = stage::current(&terms, &row.progress);
    may_decide(asker, dossier)
        && now < row.expires_at
        && !stage.seats(roll, person, &row.org, now, &[]).is_empty()
        && dossier
            .votes
            .iter()
            .all(|vote| !roll.is_same(&vote.person, person))
}

/// What waits for the person in the organisation.
pub(super) async fn waiting(
    gatekeeper: &Gatekeeper,
    org: &Org,
    asker: Asker<'_>,
) -> Result<Waiting, ReadError> {
    let mut waiting = Waiting::default();
    let pending = ConfirmationFilter {
        status: vec![Status::Pending],
        ..of(org)
    };
    waiting.beyond = look_through(gatekeeper, pending, MOST, |dossier| {
        if waits_for(asker, &dossier) {
            waiting.requests.push(dossier);
        }
    })
    .await?;
    Ok(waiting)
}

/// The request that the person means. Requests that they may not decide are meant only when no other is.
pub(super) async fn named(
    gatekeeper: &Gatekeeper,
    org: &Org,
    asker: Asker<'_>,
    name: &Name,
) -> Result<Found, ReadError> {
    let found = match name {
        Name::Neither => Vec::new(),
        Name::Id(text) => match ConfirmationId::parse(text) {
            Ok(id) => gatekeeper.dossier(org, &id).await?.into_iter().collect(),
            Err(_) => by_prefix(gatekeeper, org, text).await?,
        },
        Name::Code(code) => by_code(gatekeeper, org, code).await?,
    };
    let (mut own, mut others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|dossier| may_decide(asker, dossier));
    Ok(match own.len() {
        0 => others
            .pop()
            .map_or(Found::Nothing, |one| Found::One(Box::new(one))),
        1 => own.pop().map_or(Found::Nothing, |one| Found::One(Box::new(one))),
        _ => Found::Several(own),
    })
}

/// The requests whose id begins so: the undecided ones, else settled ones, so that a late answer hears the truth.
async fn by_prefix(gatekeeper: &Gatekeeper, org: &Org, prefix: &str) -> Result<Vec<Dossier>, ReadError> {
    let mut found = Vec::new();
    for status in [vec![Status::Pending], Vec::new()] {
        let filter = ConfirmationFilter {
            status,
            id_prefix: Some(prefix.to_owned()),
            ..of(org)
        };
        look_through(gatekeeper, filter, PAGE, |dossier| found.push(dossier)).await?;
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// The requests whose call has this code: the undecided ones, else one settled lately.
async fn by_code(gatekeeper: &Gatekeeper, org: &Org, code: &Code) -> Result<Vec<Dossier>, ReadError> {
    let mut found = Vec::new();
    for (status, most) in [(vec![Status::Pending], MOST), (Vec::new(), SETTLED)] {
        let filter = ConfirmationFilter { status, ..of(org) };
        look_through(gatekeeper, filter, most, |dossier| {
            if code_of(gatekeeper, &dossier) == *code {
                found.push(dossier);
            }
        })
        .await?;
        if !found.is_empty() {
            break;
        }
    }
    Ok(found)
}

/// The code of a request's call.
pub(super) fn code_of(gatekeeper: &Gatekeeper, dossier: &Dossier) -> Code {
    let key = gatekeeper.maker().key().as_bytes();
    Code(ShortCode::of(key, &dossier.confirmation.call().digest).to_string())
}

fn of(org: &Org) -> ConfirmationFilter {
    ConfirmationFilter {
        orgs: vec![org.clone()],
        limit: PAGE,
        ..ConfirmationFilter::default()
    }
}

/// Looks at up to `most` requests; tells whether there are more.
async fn look_through(
    gatekeeper: &Gatekeeper,
    mut filter: ConfirmationFilter,
    most: usize,
    mut look: impl FnMut(Dossier),
) -> Result<bool, ReadError> {
    let mut seen = 0;
    loop {
        let page = gatekeeper.store().read().confirmations(&filter).await?;
        seen += page.items.len();
        page.items.into_iter().for_each(&mut look);
        match page.next_cursor {
            None => return Ok(false),
            Some(_) if seen >= most => return Ok(true),
            cursor => filter.cursor = cursor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::confirmation::fixture::{World, terms};
    use crate::gate::after::Escalation;
    use crate::gate::policy::Approvers;

    /// Who a step of the escalation lets in is asked in the chat as everybody else.
    #[test]
    fn what_a_step_lets_somebody_decide_waits_for_them_from_then_on() {
        let mut world = World::default();
        let mut terms = terms(1);
        let approvers = Approvers {
            operators: vec!["ines".to_owned()],
            ..Approvers::default()
        };
        terms.after.escalate = [None, Some(approvers)]
            .map(|approvers| Escalation {
                after_ms: 60_000,
                approvers,
                ..Escalation::default()
            })
            .to_vec();
        let id = world.asked(terms, &[]);
        let ines = OperatorId::from("ines");
        let heard = |world: &World| {
            let asker = Asker {
                person: &ines,
                roll: &world.roll,
                now: world.memory.now,
            };
            let dossier = world.row(&id);
            (may_decide(asker, dossier), waits_for(asker, dossier))
        };
        assert_eq!(heard(&world), (false, false));
        for (taken, may) in [(1, false), (2, true)] {
            let stored = world.memory.dossiers.get_mut(&id).expect("it is stored");
            stored.confirmation.progress.escalated = taken;
            assert_eq!(heard(&world), (may, may), "{taken} steps taken");
        }
    }
}
