//! Who answers, and by which roll: everything about people that is found out before the deciding transaction and travels in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use gatepost_channel::{PlatformUser, UtcMillis};
use tracing::warn;

use super::Gatekeeper;
use super::directory::again::Cast;
use super::directory::requester::{For, Stated};
use super::directory::{AT_A_CLICK, AT_LEISURE, Who};
use crate::confirmation::decide::{Ballot, Insight};
use crate::confirmation::grant::Grant;
use crate::confirmation::insight::Doubt;
use crate::confirmation::roll::{Found, Roll};
use crate::confirmation::{Account, Asked, Basis, Confirmation, Dossier, Status, Vote};
use crate::delivery::registry::Listed;
use crate::ids::{GrantId, OperatorId, Org, TokenName};
use crate::storage::{ConfirmationFilter, GrantFilter, ReadError, StoreError, TokenHash};

/// Grants of one organisation that are looked through for the sake of one call; more than ever hold at once.
const MOST_GRANTS: usize = 256;
/// Open requests of one token and tool among which those of the same card are looked for; more than a card holds.
const MOST_BESIDE: usize = 200;

/// Somebody who answers, as far as the configuration and the platforms tell.
#[derive(Debug, Clone)]
pub struct Attended {
    /// Who.
    pub ballot: Ballot,
    /// Who may decide, by now.
    pub roll: Arc<Roll>,
    /// What else was found out.
    pub insight: Insight,
}

/// Of which request somebody speaks, where that is known before the transaction.
#[derive(Debug, Clone, Copy)]
pub enum About<'a> {
    /// Of the one whose card carries this button.
    Button(&'a TokenHash),
    /// Of this one.
    Request(&'a Dossier),
    /// Of none that could be looked at.
    Nothing,
}

impl Gatekeeper {
    /// Somebody whom a platform vouches for answers on a channel. Takes well under 2 s.
    ///
    /// # Errors
    /// The store failed; nothing is known of the request.
    pub async fn attend(
        &self,
        home: &Listed,
        user: &PlatformUser,
        of: About<'_>,
    ) -> Result<Attended, StoreError> {
        let shown = user.ids.first().cloned().unwrap_or_default();
        let plain = |ballot| Attended {
            ballot,
            roll: self.roll(),
            insight: Insight::default(),
        };
        if !home.channel.admits(user) {
            return Ok(plain(Ballot::Foreigner(shown)));
        }
        let (name, kind) = (home.name.as_str(), home.channel.kind());
        let vouched = self.people().clicker(&home.org, name, kind, &user.ids);
        let known = match self
            .directories()
            .look(home, &user.ids, vouched, AT_A_CLICK)
            .await
        {
            Who::Person(known) => known,
            Who::Kept(refusal) => return Ok(plain(Ballot::Kept(shown, refusal))),
            Who::Nobody => {
                let why = self.people().why_nobody(&home.org, name, kind, &user.ids);
                warn!(channel = %home.name, %why, "a click is of nobody among the operators");
                return Ok(plain(Ballot::Stranger(shown)));
            }
        };
        let mut found: Vec<Found> = known.found.into_iter().collect();
        let mut insight = Insight {
            account: Some(known.account),
            handles: known.handles,
            ..Insight::default()
        };
        if self.directories().is_in_use(&home.org) {
            let read = match of {
                About::Button(token) => self.store().read().dossier_of_button(token).await?,
                About::Request(_) | About::Nothing => None,
            };
            let dossier = match of {
                About::Request(dossier) => Some(dossier),
                About::Button(_) | About::Nothing => read.as_ref(),
            };
            let dossier = dossier.filter(|dossier| dossier.confirmation.org == home.org);
            let absent = self.absent(&home.org, &known.id).await?;
            let beside = match dossier {
                Some(dossier) => self.beside(&dossier.confirmation).await?,
                None => Vec::new(),
            };
            let mut cast: Vec<Cast<'_>> = absent.iter().map(Cast::without_account).collect();
            cast.extend(dossier.into_iter().chain(&beside).flat_map(behind));
            let stated = async {
                match dossier {
                    Some(dossier) => {
                        self.stated(&home.org, &dossier.confirmation.asked, For::Person)
                            .await
                    }
                    None => Stated::default(),
                }
            };
            let again = self.directories().again(&home.org, &cast, AT_A_CLICK);
            let askers: Vec<&OperatorId> = dossier.into_iter().chain(&beside).flat_map(askers).collect();
            let behind = self.directories().behind(&home.org, &askers, AT_A_CLICK);
            let (others, stated, behind) = tokio::join!(again, stated, behind);
            found.extend(others);
            found.extend(behind.found);
            let may_be = stated.may_be(&home.channel.app(), insight.has_address());
            insight.doubt = behind.doubt.max(may_be.then_some(Doubt::NotToldApart));
            insight.behind = stated.persons;
            insight.requester_unsure = stated.unsure;
        }
        Ok(Attended {
            ballot: Ballot::Person(known.id),
            roll: self.rolled(found).await?,
            insight,
        })
    }

    /// The roll for an answer of an operator whom the caller knows by other means than a platform.
    ///
    /// # Errors
    /// The store failed.
    pub async fn roll_for(
        &self,
        org: &Org,
        operator: &OperatorId,
        dossier: Option<&Dossier>,
    ) -> Result<(Arc<Roll>, Insight), StoreError> {
        if !self.directories().is_in_use(org) {
            return Ok((self.roll_now().await?, Insight::default()));
        }
        let dossier = dossier.filter(|dossier| dossier.confirmation.org == *org);
        let absent = self.absent(org, operator).await?;
        let mut casts = vec![Cast::without_account(operator)];
        casts.extend(absent.iter().map(Cast::without_account));
        casts.extend(dossier.into_iter().flat_map(behind));
        let askers: Vec<&OperatorId> = dossier.into_iter().flat_map(askers).collect();
        let again = self.directories().again(org, &casts, AT_LEISURE);
        let behind = self.directories().behind(org, &askers, AT_LEISURE);
        let (mut found, behind) = tokio::join!(again, behind);
        found.extend(behind.found);
        let mut insight = Insight {
            doubt: behind.doubt,
            ..Insight::default()
        };
        if let Some(dossier) = dossier {
            let stated = self.stated(org, &dossier.confirmation.asked, For::Person).await;
            insight.behind = stated.persons;
            insight.requester_unsure = stated.unsure;
        }
        Ok((self.rolled(found).await?, insight))
    }

    /// The other open requests of the same card: one press may answer all of them, so whoever answered any is asked about again.
    async fn beside(&self, row: &Confirmation) -> Result<Vec<Dossier>, StoreError> {
        let Some(set) = &row.set else {
            return Ok(Vec::new());
        };
        let filter = ConfirmationFilter {
            orgs: vec![row.org.clone()],
            status: vec![Status::Pending],
            token: Some(row.asked.token.clone()),
            tool: Some(row.asked.tool.as_str().to_owned()),
            limit: MOST_BESIDE,
            ..ConfirmationFilter::default()
        };
        let page = match self.store().read().confirmations(&filter).await {
            Ok(page) => page,
            Err(ReadError::Store(error)) => return Err(error),
            // There is no cursor to be bad.
            Err(ReadError::BadCursor) => return Ok(Vec::new()),
        };
        let others = page.items.into_iter().filter(|other| {
            let theirs = other.confirmation.set.as_ref();
            other.confirmation.id != row.id && theirs.is_some_and(|theirs| theirs.first == set.first)
        });
        Ok(others.collect())
    }

    /// In whose place somebody may stand now. Those are asked about as well: what the absent may do by being in a group, their
    /// substitute may do.
    async fn absent(&self, org: &Org, person: &OperatorId) -> Result<BTreeSet<OperatorId>, StoreError> {
        if !self.roll().is_a_substitute(person) {
            return Ok(BTreeSet::new());
        }
        let now = self.store().read().now().await?;
        Ok(self.roll_now().await?.absent(person, org, now))
    }

    /// The roll by which an approved request is consumed: everybody whose vote counts is asked about once more.
    pub(super) async fn roll_at_consume(
        &self,
        row: &Confirmation,
        votes: &[Vote],
    ) -> Result<Arc<Roll>, StoreError> {
        let askers: Vec<&OperatorId> = row.barred().iter().collect();
        let behind = self.directories().behind(&row.org, &askers, AT_LEISURE).await;
        let mut found = match &row.progress.basis {
            None => {
                self.directories()
                    .again(&row.org, &casts(votes), AT_LEISURE)
                    .await
            }
            Some(Basis::BreakGlass(broken)) => {
                let cast = Cast::without_account(&broken.person);
                self.directories().again(&row.org, &[cast], AT_LEISURE).await
            }
            Some(Basis::Grant(id)) => match self.grant(&row.org, id).await? {
                Some(grant) => self.grantors(&grant).await,
                None => Vec::new(),
            },
        };
        found.extend(behind.found);
        self.rolled(found).await
    }

    /// The roll by which grants are judged that may cover a new call, behind which these persons stand.
    pub(super) async fn roll_of_grants(
        &self,
        org: &Org,
        (token, tool): (&TokenName, &str),
        behind: &[OperatorId],
    ) -> Result<Arc<Roll>, StoreError> {
        if !self.directories().is_in_use(org) {
            return self.roll_now().await;
        }
        let mut found = Vec::new();
        for grant in self.grants(org).await? {
            if grant.token == *token && grant.tool.as_str() == tool {
                found.extend(self.grantors(&grant).await);
            }
        }
        if !found.is_empty() {
            // Nobody's grant covers what they ask for themselves, by whatever account they gave it.
            let askers: Vec<&OperatorId> = behind.iter().collect();
            let behind = self.directories().behind(org, &askers, AT_LEISURE).await;
            found.extend(behind.found);
        }
        self.rolled(found).await
    }

    /// Persons behind a call that only a platform knows.
    pub(super) async fn stated(&self, org: &Org, asked: &Asked, sake: For) -> Stated {
        match &asked.requester {
            Some(requester) => {
                self.directories()
                    .requester(org, requester, sake, AT_A_CLICK)
                    .await
            }
            None => Stated::default(),
        }
    }

    /// The roll as it is now, with what was found out.
    pub(super) async fn rolled(&self, found: Vec<Found>) -> Result<Arc<Roll>, StoreError> {
        let roll = self.roll_now().await?;
        Ok(if found.is_empty() {
            roll
        } else {
            Arc::new(roll.with(found))
        })
    }

    async fn grantors(&self, grant: &Grant) -> Vec<Found> {
        let casts: Vec<Cast<'_>> = grant
            .grantors
            .iter()
            .flat_map(|grantor| {
                let own = (&grantor.person, grantor.account.as_ref());
                places(own, grantor.acting_for.as_ref())
            })
            .collect();
        self.directories().again(&grant.org, &casts, AT_LEISURE).await
    }

    async fn grant(&self, org: &Org, id: &GrantId) -> Result<Option<Grant>, StoreError> {
        Ok(self.grants(org).await?.into_iter().find(|grant| grant.id == *id))
    }

    async fn grants(&self, org: &Org) -> Result<Vec<Grant>, StoreError> {
        let filter = GrantFilter {
            orgs: vec![org.clone()],
            live: true,
            due_at: None::<UtcMillis>,
            limit: MOST_GRANTS,
            cursor: None,
        };
        match self.store().read().grants(&filter).await {
            Ok(page) => Ok(page.items),
            Err(ReadError::Store(error)) => Err(error),
            // There is no cursor to be bad.
            Err(ReadError::BadCursor) => Ok(Vec::new()),
        }
    }
}

/// Those behind a call who may not approve it. They may have an account that the configuration does not name.
fn askers(dossier: &Dossier) -> impl Iterator<Item = &OperatorId> {
    dossier.confirmation.barred().iter()
}

/// Those who voted, and those whose approval waits for what completes it.
fn behind(dossier: &Dossier) -> Vec<Cast<'_>> {
    let armed = dossier.confirmation.progress.armed.iter();
    let armed = armed.flat_map(|arm| places((&arm.person, arm.account.as_ref()), arm.acting_for.as_ref()));
    casts(&dossier.votes).into_iter().chain(armed).collect()
}

fn casts(votes: &[Vote]) -> Vec<Cast<'_>> {
    votes
        .iter()
        .flat_map(|vote| {
            let content = &vote.content;
            let own = places(
                (&vote.person, content.account.as_ref()),
                content.acting_for.as_ref(),
            );
            let second = content.second.iter().flat_map(|second| {
                places(
                    (&second.person, second.account.as_ref()),
                    second.acting_for.as_ref(),
                )
            });
            own.into_iter().chain(second)
        })
        .collect()
}

/// Somebody who answered, and the one in whose place they did.
fn places<'a>(
    (person, account): (&'a OperatorId, Option<&'a Account>),
    acting_for: Option<&'a OperatorId>,
) -> Vec<Cast<'a>> {
    let own = Cast { person, account };
    [Some(own), acting_for.map(Cast::without_account)]
        .into_iter()
        .flatten()
        .collect()
}
