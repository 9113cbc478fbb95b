//! Who answers, and by which roll: everything about people that is found out before the deciding transaction and travels in it.

use std::sync::Arc;

use gatepost_channel::{PlatformUser, UtcMillis};
use tracing::warn;

use super::Gatekeeper;
use super::directory::again::Cast;
use super::directory::requester::For;
use super::directory::{AT_A_CLICK, AT_LEISURE, Who};
use crate::confirmation::decide::{Ballot, Insight};
use crate::confirmation::grant::Grant;
use crate::confirmation::roll::{Found, Roll};
use crate::confirmation::{Asked, Basis, Confirmation, Dossier, Vote};
use crate::delivery::registry::Listed;
use crate::ids::{GrantId, OperatorId, Org, TokenName};
use crate::storage::{GrantFilter, ReadError, StoreError, TokenHash};

/// Grants of one organisation that are looked through for the sake of one call; more than ever hold at once.
const MOST_GRANTS: usize = 256;

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
            roll: Arc::clone(self.roll()),
            insight: Insight::default(),
        };
        if !home.channel.admits(user.tenant.as_deref()) {
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
            if let Some(dossier) = dossier.filter(|dossier| dossier.confirmation.org == home.org) {
                let cast = [casts(&dossier.votes), arms(dossier)].concat();
                let (voters, stated) = tokio::join!(
                    self.directories().again(&home.org, &cast, AT_A_CLICK),
                    self.stated(&home.org, &dossier.confirmation.asked, For::Person),
                );
                found.extend(voters);
                insight.behind = stated.persons;
                insight.requester_unsure = stated.unsure;
            }
        }
        Ok(Attended {
            ballot: Ballot::Person(known.id),
            roll: self.rolled(found),
            insight,
        })
    }

    /// The roll for an answer of an operator whom the caller knows by other means than a platform.
    pub async fn roll_for(
        &self,
        org: &Org,
        operator: &OperatorId,
        dossier: Option<&Dossier>,
    ) -> (Arc<Roll>, Insight) {
        if !self.directories().is_in_use(org) {
            return (Arc::clone(self.roll()), Insight::default());
        }
        let mut casts = vec![Cast {
            person: operator,
            account: None,
        }];
        let dossier = dossier.filter(|dossier| dossier.confirmation.org == *org);
        casts.extend(
            dossier
                .into_iter()
                .flat_map(|dossier| [self::casts(&dossier.votes), self::arms(dossier)].concat()),
        );
        let found = self.directories().again(org, &casts, AT_LEISURE).await;
        let mut insight = Insight::default();
        if let Some(dossier) = dossier {
            let stated = self.stated(org, &dossier.confirmation.asked, For::Person).await;
            insight.behind = stated.persons;
            insight.requester_unsure = stated.unsure;
        }
        (self.rolled(found), insight)
    }

    /// The roll by which an approved request is consumed: everybody whose vote counts is asked about once more.
    pub(super) async fn roll_at_consume(
        &self,
        row: &Confirmation,
        votes: &[Vote],
    ) -> Result<Arc<Roll>, StoreError> {
        let found = match &row.progress.basis {
            None => {
                self.directories()
                    .again(&row.org, &casts(votes), AT_LEISURE)
                    .await
            }
            Some(Basis::BreakGlass(broken)) => {
                let cast = Cast {
                    person: &broken.person,
                    account: None,
                };
                self.directories().again(&row.org, &[cast], AT_LEISURE).await
            }
            Some(Basis::Grant(id)) => match self.grant(&row.org, id).await? {
                Some(grant) => self.grantors(&grant).await,
                None => Vec::new(),
            },
        };
        Ok(self.rolled(found))
    }

    /// The roll by which grants are judged that may cover a new call.
    pub(super) async fn roll_of_grants(
        &self,
        org: &Org,
        token: &TokenName,
        tool: &str,
    ) -> Result<Arc<Roll>, StoreError> {
        if !self.directories().is_in_use(org) {
            return Ok(Arc::clone(self.roll()));
        }
        let mut found = Vec::new();
        for grant in self.grants(org).await? {
            if grant.token == *token && grant.tool.as_str() == tool {
                found.extend(self.grantors(&grant).await);
            }
        }
        Ok(self.rolled(found))
    }

    /// Persons behind a call that only a platform knows.
    pub(super) async fn stated(
        &self,
        org: &Org,
        asked: &Asked,
        sake: For,
    ) -> super::directory::requester::Stated {
        match &asked.requester {
            Some(requester) => {
                self.directories()
                    .requester(org, requester, sake, AT_A_CLICK)
                    .await
            }
            None => super::directory::requester::Stated::default(),
        }
    }

    fn rolled(&self, found: Vec<Found>) -> Arc<Roll> {
        if found.is_empty() {
            Arc::clone(self.roll())
        } else {
            Arc::new(self.roll().with(found))
        }
    }

    async fn grantors(&self, grant: &Grant) -> Vec<Found> {
        let casts: Vec<Cast<'_>> = grant
            .grantors
            .iter()
            .map(|grantor| Cast {
                person: &grantor.person,
                account: grantor.account.as_ref(),
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

fn casts(votes: &[Vote]) -> Vec<Cast<'_>> {
    votes
        .iter()
        .flat_map(|vote| {
            let own = Cast {
                person: &vote.person,
                account: vote.content.account.as_ref(),
            };
            let second = vote.content.second.as_ref().map(|second| Cast {
                person: &second.person,
                account: second.account.as_ref(),
            });
            [Some(own), second].into_iter().flatten()
        })
        .collect()
}

/// Those whose approval waits for what completes it.
fn arms(dossier: &Dossier) -> Vec<Cast<'_>> {
    let armed = dossier.confirmation.progress.armed.iter();
    armed
        .map(|arm| Cast {
            person: &arm.person,
            account: arm.account.as_ref(),
        })
        .collect()
}
