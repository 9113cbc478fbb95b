//! Grants: an approval that lets later calls like the approved one run too. Each such call is a request of its own, settled at
//! once, with its own permit and its own events; the grant is asked again when the permit is consumed (invariant 14 in docs/ARCHITECTURE.md).

use std::collections::BTreeSet;

use gatepost_channel::{Decision, UtcMillis};
use serde::{Deserialize, Serialize};

use super::roll::Roll;
use super::{Account, Asked, Confirmation, Vote, edit, stage};
use crate::audit::{Actor, Draft};
use crate::clock::rfc3339;
use crate::gate::grant::{GrantArguments, GrantScope, GrantTerms};
use crate::gate::{Terms, ToolName};
use crate::ids::{ConfirmationId, GrantId, OperatorId, Org, TokenName};
use crate::storage::{GrantKey, Touches, Transaction, Workspace};

/// Grants ended in one transaction.
pub const BATCH: usize = 256;

/// The word for a grant that somebody asks for with their Approve, and the id that it gets if it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The scope, as it was said.
    pub scope: String,
    /// Used when it is made.
    pub id: GrantId,
}

/// One of those whose votes made a grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grantor {
    /// Who.
    pub person: OperatorId,
    /// The stage in which they voted, from 0.
    #[serde(default)]
    pub stage: u32,
    /// In whose place: that of somebody away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acting_for: Option<OperatorId>,
    /// When they voted; nothing in grants of the first releases, whose grantors had a right without time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<UtcMillis>,
    /// The account through which they did, which is asked about again at each use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<Account>,
}

/// A grant. What it covers never changes; it is used, and it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Its id.
    pub id: GrantId,
    /// The organisation.
    pub org: Org,
    /// The rule that offered it.
    pub rule: String,
    /// The token whose calls it covers.
    pub token: TokenName,
    /// The tool.
    pub tool: ToolName,
    /// The agent as it was stated; a call that states another is not covered.
    pub agent_id: Option<String>,
    /// The requester as it was stated; a call that states another is not covered.
    pub requester: Option<String>,
    /// The session that it is bound to, for [`GrantScope::Session`].
    pub session_id: Option<String>,
    /// For how long.
    pub scope: GrantScope,
    /// What of the arguments must be equal.
    pub arguments: GrantArguments,
    /// What that was in the approved call, as [`GrantArguments::pattern`] spells it.
    pub pattern: String,
    /// Who gave it: everybody whose approval counted.
    pub grantors: Vec<Grantor>,
    /// The request whose approval made it.
    pub source: ConfirmationId,
    /// When.
    pub created_at: UtcMillis,
    /// Until when it holds.
    pub expires_at: UtcMillis,
    /// How many calls it may let run.
    pub max_uses: Option<u32>,
    /// How many it has.
    pub uses: u32,
    /// How it ended, once it has.
    pub end: Option<End>,
    /// Counts writes of the row.
    #[serde(skip)]
    pub version: i64,
}

/// How a grant ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "lowercase")]
pub enum End {
    /// Somebody took it back.
    Revoked {
        /// Who.
        by: OperatorId,
        /// When.
        at: UtcMillis,
    },
    /// Its time passed, or it was used up.
    Expired {
        /// When.
        at: UtcMillis,
    },
}

impl Grant {
    /// Whether it holds at this time, whoever asks.
    pub fn holds(&self, now: UtcMillis) -> bool {
        self.end.is_none() && now < self.expires_at
    }

    /// Whether the call is one of those that were granted.
    fn covers(&self, org: &Org, rule: Option<&str>, asked: &Asked) -> bool {
        self.org == *org
            && Some(self.rule.as_str()) == rule
            && self.token == asked.token
            && self.tool == asked.tool
            && self.agent_id == asked.agent_id
            && self.requester == asked.requester
            && (self.session_id.is_none() || self.session_id == asked.session_id)
            && (self.scope != GrantScope::Session || self.session_id.is_some())
            && self.arguments.pattern(&asked.tool, &asked.args).as_ref() == Some(&self.pattern)
    }

    /// Whether the rule still offers it, and those who gave it had the right to, as the roll knows it now for the instant of their
    /// vote, and neither they nor whom they acted for stand behind the call.
    fn is_backed(&self, asked: &Asked, offered: Option<&GrantTerms>, terms: &Terms, roll: &Roll) -> bool {
        let offered = offered.is_some_and(|terms| {
            terms.arguments == self.arguments
                && terms.scopes.contains(&self.scope)
                && match (terms.max_uses, self.max_uses) {
                    (None, _) => true,
                    (Some(most), Some(ours)) => ours <= most,
                    (Some(_), None) => false,
                }
        });
        let barred = if terms.self_approval {
            &[][..]
        } else {
            &asked.persons
        };
        let themselves = |grantor: &Grantor| {
            let mut behind = barred.iter();
            behind.any(|person| roll.is_same(person, &grantor.person))
        };
        let own = self.grantors.iter().any(themselves);
        let enough = stage::each(terms).all(|stage| {
            let counts = |grantor: &&Grantor| {
                let who = (&grantor.person, grantor.acting_for.as_ref());
                let at = grantor.at.unwrap_or(self.created_at);
                grantor.stage == stage.at && stage.entitles(roll, who, &self.org, at, barred)
            };
            let seat = |grantor: &'_ Grantor| {
                let seat = grantor.acting_for.as_ref().unwrap_or(&grantor.person);
                roll.person(seat).clone()
            };
            let seats: BTreeSet<_> = self.grantors.iter().filter(counts).map(seat).collect();
            u32::try_from(seats.len()).unwrap_or(u32::MAX) >= stage.quorum
        });
        offered && !own && enough
    }
}

/// Whether this word stands for a grant that the request offers.
pub fn offered(row: &Confirmation, wish: &Wish) -> Option<GrantScope> {
    let terms = row.terms.decision.grants.as_ref()?;
    let scope = terms.offered(&wish.scope)?;
    let possible = row.rule.is_some()
        && row.progress.edit.is_none()
        && (scope != GrantScope::Session || row.asked.session_id.is_some())
        && terms
            .arguments
            .pattern(&row.asked.tool, &row.asked.args)
            .is_some();
    possible.then_some(scope)
}

/// The scopes that a request offers now.
pub fn offers(row: &Confirmation) -> Vec<GrantScope> {
    let scopes = row.terms.decision.grants.iter().flat_map(|terms| &terms.scopes);
    // Later calls would not be like the one that a person had to change.
    let possible = |scope: &&GrantScope| {
        row.progress.edit.is_none() && (**scope != GrantScope::Session || row.asked.session_id.is_some())
    };
    scopes.filter(possible).copied().collect()
}

/// The scope that everybody who approved asked for; anybody who did not lets only this call run.
pub fn agreed(votes: &[Vote]) -> Option<GrantScope> {
    let mut wishes = votes
        .iter()
        .filter(|vote| vote.decision == Decision::Approve)
        .map(|vote| vote.content.grant);
    let first = wishes.next()??;
    wishes.all(|wish| wish == Some(first)).then_some(first)
}

/// Makes the grant that this approval asks for under this id, if everybody asked for it. The request is approved already.
pub fn make(workspace: &mut Workspace, request: &ConfirmationId, id: GrantId, actor: Actor) {
    let now = workspace.now();
    let Some(progress) = workspace.confirmation(request).map(|row| row.progress.clone()) else {
        return;
    };
    let votes = edit::standing(workspace.votes(request), &progress);
    let Some(scope) = agreed(&votes).filter(|_| progress.edit.is_none()) else {
        return;
    };
    let grantors = votes
        .iter()
        .filter(|vote| vote.decision == Decision::Approve)
        .map(|vote| Grantor {
            person: vote.person.clone(),
            stage: vote.content.stage,
            acting_for: vote.content.acting_for.clone(),
            at: Some(vote.at),
            account: vote.content.account.clone(),
        })
        .collect();
    let Some(row) = workspace.confirmation(request) else {
        return;
    };
    let (Some(terms), Some(rule)) = (&row.terms.decision.grants, &row.rule) else {
        return;
    };
    let asked = &row.asked;
    let Some(pattern) = terms.arguments.pattern(&asked.tool, &asked.args) else {
        return;
    };
    let grant = Grant {
        id,
        org: row.org.clone(),
        rule: rule.clone(),
        token: asked.token.clone(),
        tool: asked.tool.clone(),
        agent_id: asked.agent_id.clone(),
        requester: asked.requester.clone(),
        session_id: (scope == GrantScope::Session)
            .then(|| asked.session_id.clone())
            .flatten(),
        scope,
        arguments: terms.arguments.clone(),
        pattern,
        grantors,
        source: request.clone(),
        created_at: now,
        expires_at: UtcMillis(now.0.saturating_add(scope.lives_ms())),
        max_uses: terms.max_uses,
        uses: 0,
        end: None,
        version: 0,
    };
    let mut draft = Draft::new(&grant.org, "grant.created", actor)
        .about(request)
        .with("grant", grant.id.as_str())
        .with("scope", scope.to_string())
        .with("rule", grant.rule.as_str())
        .with("tool_name", grant.tool.as_str())
        .with("expires_at", rfc3339(grant.expires_at));
    if let Some(uses) = grant.max_uses {
        draft = draft.with("max_uses", uses);
    }
    workspace.audit(draft);
    let id = grant.id.clone();
    workspace.insert_grant(grant);
    workspace.change_confirmation(request, |row| row.progress.granted = Some(id));
}

/// The grant under which a new call may run at once, if there is one: of several the one that ends first.
pub fn covering(
    workspace: &Workspace,
    org: &Org,
    rule: Option<&str>,
    asked: &Asked,
    terms: &Terms,
    roll: &Roll,
) -> Option<GrantId> {
    let now = workspace.now();
    workspace
        .grants()
        .filter(|grant| {
            grant.holds(now)
                && grant.max_uses.is_none_or(|most| grant.uses < most)
                && grant.covers(org, rule, asked)
                && grant.is_backed(asked, terms.decision.grants.as_ref(), terms, roll)
        })
        .min_by_key(|grant| (grant.expires_at, grant.id.clone()))
        .map(|grant| grant.id.clone())
}

/// Takes one use of a grant for this request.
pub fn take(workspace: &mut Workspace, id: &GrantId, request: &ConfirmationId, actor: Actor) {
    let Some(grant) = workspace.grant(id) else { return };
    let (org, uses) = (grant.org.clone(), grant.uses.saturating_add(1));
    let draft = Draft::new(&org, "grant.used", actor)
        .about(request)
        .with("grant", id.as_str())
        .with("uses", uses);
    workspace.audit(draft);
    workspace.change_grant(id, |grant| grant.uses = uses);
}

/// Whether a request that a grant approved may still be executed: the grant holds, today's rule offers it, and those who gave
/// it may still decide.
pub fn still_stands(
    workspace: &Workspace,
    id: &GrantId,
    row: &Confirmation,
    today: Option<&GrantTerms>,
    roll: &Roll,
) -> bool {
    workspace.grant(id).is_some_and(|grant| {
        grant.holds(workspace.now())
            && grant.covers(&row.org, row.rule.as_deref(), &row.asked)
            && grant.is_backed(&row.asked, today, &row.terms, roll)
    })
}

/// Takes a grant back.
#[derive(Debug, Clone)]
pub struct Revoke {
    /// Which.
    pub id: GrantId,
    /// The caller's organisation.
    pub org: Org,
    /// Who takes it back.
    pub by: OperatorId,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revoked {
    /// It is taken back now, or was before.
    Done(Grant),
    /// Its time had passed.
    Ended(Grant),
    /// There is no such grant here.
    NotFound,
}

impl Transaction for Revoke {
    type Answer = Revoked;
    const NAME: &'static str = "revoke_grant";

    fn touches(&self, touches: &mut Touches) {
        touches.orgs.insert(self.org.clone());
        touches.grants.insert(self.id.clone());
    }

    fn apply(&self, workspace: &mut Workspace) -> Revoked {
        let at = workspace.now();
        let Some(grant) = workspace.grant(&self.id).filter(|grant| grant.org == self.org) else {
            return Revoked::NotFound;
        };
        match &grant.end {
            Some(End::Revoked { .. }) => return Revoked::Done(grant.clone()),
            Some(End::Expired { .. }) => return Revoked::Ended(grant.clone()),
            None => {}
        }
        if at >= grant.expires_at {
            expire(workspace, &self.id);
        } else {
            let draft = Draft::new(&self.org, "grant.revoked", Actor::Operator(self.by.0.clone()))
                .with("grant", self.id.as_str())
                .with("uses", grant.uses)
                .about(&grant.source.clone());
            workspace.audit(draft);
            workspace.change_grant(&self.id, |grant| {
                grant.end = Some(End::Revoked {
                    by: self.by.clone(),
                    at,
                });
            });
        }
        match workspace.grant(&self.id) {
            Some(grant) if matches!(grant.end, Some(End::Revoked { .. })) => Revoked::Done(grant.clone()),
            Some(grant) => Revoked::Ended(grant.clone()),
            None => Revoked::NotFound,
        }
    }
}

/// Ends the grants whose time passed, among those that a read found due.
#[derive(Debug, Clone)]
pub struct ExpireGrants {
    /// Which, and whose.
    pub due: Vec<(GrantId, Org)>,
}

impl Transaction for ExpireGrants {
    /// How many ended.
    type Answer = usize;
    const NAME: &'static str = "expire_grants";

    fn touches(&self, touches: &mut Touches) {
        for (id, org) in &self.due {
            touches.grants.insert(id.clone());
            touches.orgs.insert(org.clone());
        }
    }

    fn apply(&self, workspace: &mut Workspace) -> usize {
        self.due.iter().filter(|(id, _)| expire(workspace, id)).count()
    }
}

fn expire(workspace: &mut Workspace, id: &GrantId) -> bool {
    let now = workspace.now();
    let Some(grant) = workspace
        .grant(id)
        .filter(|grant| grant.end.is_none() && grant.expires_at <= now)
    else {
        return false;
    };
    let draft = Draft::new(&grant.org, "grant.expired", Actor::System)
        .with("grant", id.as_str())
        .with("uses", grant.uses)
        .about(&grant.source.clone());
    let at = grant.expires_at;
    workspace.audit(draft);
    workspace.change_grant(id, |grant| grant.end = Some(End::Expired { at }));
    true
}

/// Finds the grants that a call may run under.
pub fn key(org: &Org, asked: &Asked) -> GrantKey {
    GrantKey {
        org: org.clone(),
        token: asked.token.clone(),
        tool: asked.tool.as_str().to_owned(),
    }
}
