//! Which rows a batch is about: the beginning that both loading statements share, and the keys that are bound to it.
//!
//! Every look at a table is a subquery of its own for one key (`LATERAL … OFFSET 0`, which the planner keeps apart), so it can
//! only be answered from the index of that key, one key after the other: whatever is known of the tables' sizes.

use sqlx::Postgres;
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;

use super::load::NOW;
use crate::storage::Touches;
use crate::storage::rows::Text;
use crate::storage::wanted::Wanted;

/// What the store chooses by its own clock, in the order in which it is served. `$18` is passed over, `$19` to `$22` are how many.
const CHOSEN: &str = "before(now) AS MATERIALIZED ({NOW}),
  due_confirmation(id) AS MATERIALIZED (
    SELECT id FROM confirmation WHERE status = 'pending' AND expires_at <= (SELECT now FROM before) AND id <> ALL ($18)
    ORDER BY expires_at, id LIMIT $19),
  due_outbox(id) AS MATERIALIZED (
    SELECT id FROM outbox WHERE due_at <= (SELECT now FROM before) AND id <> ALL ($18) ORDER BY due_at, id LIMIT $20),
  runnable_job(id) AS MATERIALIZED (
    SELECT id FROM job WHERE due_at <= (SELECT now FROM before) AND id <> ALL ($18)
    ORDER BY priority DESC, due_at, id LIMIT $21),
  stranded_job(id, waiting_on) AS MATERIALIZED (
    SELECT met.id, met.waiting_on FROM parked CROSS JOIN LATERAL (
      SELECT id, waiting_on FROM job WHERE job.id = parked.id
        AND status IN ('waiting_human', 'waiting_subtasks') AND waiting_on <> '[]' AND updated_at <= (SELECT now FROM before)
        AND id <> ALL ($18) OFFSET 0) AS met
    WHERE NOT EXISTS (SELECT FROM json_array_elements_text(met.waiting_on::json) AS waited(id)
      WHERE NOT EXISTS (SELECT FROM confirmation AS c WHERE c.id = waited.id AND c.decided_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM job AS j WHERE j.id = waited.id AND j.status IN ('completed', 'aborted', 'cancelled', 'error')))
    ORDER BY met.id LIMIT $22),";
/// Where stranded jobs are looked for: from what was decided and not resumed, and from waits for sub-tasks; never from all that
/// is parked.
const PARKED: &str = "parked(id) AS (
    SELECT job FROM confirmation WHERE job IS NOT NULL AND decided_at IS NOT NULL AND resumed_at IS NULL
    UNION SELECT id FROM job WHERE status = 'waiting_subtasks'),";
/// The requests, by whatever names them, each with the set that it is in. `{…}` stand for what was chosen.
const REQUEST: &str = "named(id) AS MATERIALIZED (
    SELECT unnest($3::text[])
    UNION SELECT met.id FROM unnest($4::text[], $5::text[], $6::text[], $7::text[]) AS wanted(org, token, session, call)
      CROSS JOIN LATERAL (SELECT id FROM confirmation WHERE org = wanted.org AND token = wanted.token
        AND coalesce(session_id, '') = wanted.session AND tool_call_id = wanted.call OFFSET 0) AS met
    UNION SELECT met.id FROM unnest($8::text[], $9::text[], $10::text[], $11::text[]) AS wanted(org, token, session, digest)
      CROSS JOIN LATERAL (SELECT id FROM confirmation WHERE org = wanted.org AND token = wanted.token
        AND coalesce(session_id, '') = wanted.session AND digest = wanted.digest
        AND status IN ('pending', 'approved') AND executed_at IS NULL OFFSET 0) AS met
    UNION SELECT met.id FROM unnest($12::text[]) AS wanted(hash)
      CROSS JOIN LATERAL (SELECT confirmation AS id FROM delivery WHERE token_hash = wanted.hash OFFSET 0) AS met
    UNION SELECT met.id FROM unnest($13::text[], $14::text[], $15::text[]) AS wanted(kind, app, press)
      CROSS JOIN LATERAL (SELECT confirmation AS id FROM replay WHERE app_kind = wanted.kind AND app_id = wanted.app
        AND press = wanted.press AND confirmation IS NOT NULL OFFSET 0) AS met
    UNION SELECT met.id FROM ({OUTBOX}) AS wanted(id)
      CROSS JOIN LATERAL (SELECT confirmation AS id FROM outbox WHERE outbox.id = wanted.id AND confirmation IS NOT NULL
        OFFSET 0) AS met
    UNION SELECT met.id FROM unnest($23::text[]) AS wanted(alike)
      CROSS JOIN LATERAL (SELECT id FROM confirmation WHERE confirmation.alike = wanted.alike
        ORDER BY created_at DESC LIMIT 1) AS met{CHOSEN}),
  request(id) AS MATERIALIZED (
    SELECT id FROM named
    UNION SELECT fellow.id FROM named
      CROSS JOIN LATERAL (SELECT set_first FROM confirmation WHERE confirmation.id = named.id AND set_first IS NOT NULL
        OFFSET 0) AS own
      CROSS JOIN LATERAL (SELECT id FROM confirmation WHERE confirmation.set_first = own.set_first OFFSET 0) AS fellow)";
const CHOSEN_REQUESTS: &str = "
    UNION SELECT id FROM due_confirmation
    UNION SELECT waited.id FROM stranded_job, json_array_elements_text(waiting_on::json) AS waited(id)
      WHERE substr(waited.id, 1, 3) = 'cr_'";

/// The shared beginning, up to and with `request(id)`.
pub(super) fn beginning(choosing: bool) -> String {
    let (chosen, outbox, requests) = if choosing {
        (
            format!("{PARKED}\n  {}\n  ", CHOSEN.replace("{NOW}", NOW)),
            "SELECT unnest($17::text[]) UNION ALL SELECT id FROM due_outbox",
            CHOSEN_REQUESTS,
        )
    } else {
        (String::new(), "SELECT unnest($17::text[])", "")
    };
    let request = REQUEST.replace("{OUTBOX}", outbox).replace("{CHOSEN}", requests);
    format!("WITH {chosen}{request}")
}

/// A statement with its parameters; it answers rows of two texts.
pub(super) type Ask<'q> = QueryAs<'q, Postgres, (String, String), PgArguments>;

/// The keys of a batch, one list for each parameter.
#[derive(Default)]
pub(super) struct Keys {
    pub(super) orgs: Vec<String>,
    wanted: Wanted,
    calls: [Vec<String>; 4],
    twins: [Vec<String>; 4],
    replays: [Vec<String>; 3],
    /// How many the store chooses of each list.
    limits: [i64; 4],
}

impl Keys {
    pub(super) fn of(touches: &Touches) -> Self {
        let mut wanted = Wanted::from(touches);
        let limits = [
            touches.due_confirmations,
            touches.due_outbox,
            touches.runnable_jobs,
            touches.stranded_jobs,
        ];
        Self {
            orgs: std::mem::take(&mut wanted.orgs)
                .into_iter()
                .map(Text::into_kept)
                .collect(),
            calls: columns(std::mem::take(&mut wanted.calls)),
            twins: columns(std::mem::take(&mut wanted.twins)),
            replays: columns(std::mem::take(&mut wanted.replays)),
            limits: limits.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)),
            wanted,
        }
    }

    /// Whether the store chooses rows, so that the other text of a statement is needed.
    pub(super) const fn choosing(&self) -> bool {
        !matches!(self.limits, [0, 0, 0, 0])
    }

    /// The grants by id, and by what they may cover.
    pub(super) fn grants(&self) -> (&[String], &[[Text; 3]]) {
        (&self.wanted.grants, &self.wanted.grant_keys)
    }

    /// The statement with its parameters: `$1` moves the clock, `$2` are organisations, then the keys.
    pub(super) fn ask<'q>(
        &'q self,
        statement: &'static str,
        offset: i64,
        orgs: &'q [String],
        spoiled: &'q [String],
    ) -> Ask<'q> {
        let mut query = sqlx::query_as(statement)
            .bind(offset)
            .bind(orgs)
            .bind(&self.wanted.confirmations);
        for column in self.calls.iter().chain(&self.twins) {
            query = query.bind(column);
        }
        query = query.bind(&self.wanted.tokens);
        for column in &self.replays {
            query = query.bind(column);
        }
        query = query.bind(&self.wanted.jobs).bind(&self.wanted.outbox);
        // Bound also where the text does not name them, so that a parameter has one number everywhere.
        query = query.bind(spoiled);
        for limit in self.limits {
            query = query.bind(limit);
        }
        query.bind(&self.wanted.alikes)
    }
}

fn columns<const N: usize>(rows: Vec<[Text; N]>) -> [Vec<String>; N] {
    let mut columns = [const { Vec::new() }; N];
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value.into_kept());
        }
    }
    columns
}
