//! A database of the first release, opened by this program: what stood in it stands, can be decided, and its log verifies.

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use super::*;
use crate::confirmation::decide::Ruling;
use crate::storage::migrate::SQLITE;
use crate::storage::sql::{NEXT_DEADLINE, NEXT_OUTBOX, RARE};

/// Migrations of the first release.
const FIRST: usize = 2;
const LEDGER: &str =
    "CREATE TABLE schema_migration (version INTEGER NOT NULL CONSTRAINT schema_migration_pk PRIMARY KEY,
  name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) STRICT";
/// Tables, those that others refer to first.
const TABLES: [&str; 8] = [
    "job",
    "confirmation",
    "vote",
    "delivery",
    "outbox",
    "replay",
    "chain_head",
    "audit_event",
];
/// What the first release wrote otherwise: terms in full, and the arguments once more beside their event.
const TERMS: &str = r#"UPDATE confirmation SET terms = '{"channels":["channel-0"],"approvers":{"roles":["finance"],"operators":[]},
  "quorum":1,"deny_threshold":1,"self_approval":false,"timeout_ms":120000,"permit_ttl_ms":3600000,"partial_view":"reject","redact":[]}'"#;
const OPENINGS_ON_SQLITE: &str = "UPDATE audit_event SET openings = json_set(json_remove(openings, '$.tool_args.in'), '$.tool_args.value',
  (SELECT args FROM confirmation WHERE confirmation.id = audit_event.confirmation)) WHERE kind = 'confirmation.created'";
const OPENINGS_ON_POSTGRES: &str = "UPDATE audit_event SET openings = jsonb_set(openings::jsonb #- '{tool_args,in}', '{tool_args,value}',
  (SELECT to_jsonb(args) FROM confirmation WHERE confirmation.id = audit_event.confirmation))::text WHERE kind = 'confirmation.created'";
/// Undoes on PostgreSQL what came after the first release.
const BACK_ON_POSTGRES: &str = "DROP INDEX audit_event_rare; CREATE INDEX audit_event_kind ON audit_event (kind, org, seq);
  DROP INDEX confirmation_deadline; CREATE INDEX confirmation_deadline ON confirmation (expires_at, id) WHERE status = 'pending';
  DROP INDEX confirmation_listing; CREATE INDEX confirmation_listing ON confirmation (created_at, id);
  ALTER TABLE delivery DROP CONSTRAINT delivery_pk; ALTER TABLE delivery ADD CONSTRAINT delivery_pk PRIMARY KEY (id);
  CREATE INDEX delivery_of_confirmation ON delivery (confirmation);
  ALTER TABLE delivery DROP COLUMN told; ALTER TABLE delivery DROP COLUMN lost;
  ALTER TABLE confirmation DROP COLUMN progress; ALTER TABLE vote DROP CONSTRAINT vote_pk; ALTER TABLE vote DROP COLUMN edit;
  ALTER TABLE vote ADD CONSTRAINT vote_pk PRIMARY KEY (confirmation, person); ALTER TABLE vote DROP COLUMN content; DROP TABLE standing_grant; DROP TABLE tally; DROP TABLE note;
  ALTER TABLE confirmation DROP COLUMN alike; ALTER TABLE confirmation DROP COLUMN set_first; ALTER TABLE delivery DROP COLUMN host;
  DELETE FROM schema_migration WHERE version > 2";

/// What was there before.
struct Before {
    pending: Dossier,
    decided: Dossier,
    press: Decide,
    events: u64,
}

/// An undecided request with two cards that wait to be posted, and one that a click decided.
async fn fill(place: &Place) -> Before {
    let two_cards = Ask {
        cards: 2,
        ..Ask::call("pending")
    };
    let pending = place.fresh(&two_cards).await;
    let decided = place.fresh(&Ask::call("decided")).await;
    let press = click(&decided, "press", "dana", Decision::Approve);
    place
        .by_the_back_door("UPDATE delivery SET unheard = 1")
        .await
        .expect("posts are under way");
    let answer = place.store.run(press.clone()).await.expect("click");
    assert_eq!(answer.ruling, Ruling::Settled);
    Before {
        pending: place.dossier(&pending.confirmation.id).await,
        decided: place.dossier(&decided.confirmation.id).await,
        press,
        events: place.verify().await,
    }
}

async fn check(place: &Place, before: Before) {
    assert_eq!(
        place.count("audit_event WHERE openings LIKE '%amount%'").await,
        2,
        "as the first release kept them"
    );
    assert_eq!(place.verify().await, before.events);
    let decided = before.decided.confirmation.id.clone();
    assert_eq!(place.dossier(&decided).await, before.decided);
    assert_eq!(
        place.count("outbox").await,
        3,
        "what is to be sent is still to be sent"
    );
    let again = place.store.run(before.press).await.expect("click");
    assert_eq!(again.ruling, Ruling::Replayed("settled".to_owned()));
    let press = click(&before.pending, "another press", "dana", Decision::Approve);
    let answer = place.store.run(press).await.expect("click");
    assert_eq!(answer.ruling, Ruling::Settled);
    assert_eq!(answer.dossier.expect("told").deliveries.len(), 2);
    let fresh = place.fresh(&Ask::call("fresh")).await;
    assert_eq!(place.dossier(&fresh.confirmation.id).await, fresh);
    // The repeated click, the vote, the approval, the new request.
    assert_eq!(place.verify().await, before.events + 4);
    let filter = AuditFilter {
        kind: vec!["callback.refused".to_owned()],
        ..AuditFilter::default()
    };
    let refused = place.store.read().audit(&filter).await.expect("events");
    assert_eq!(refused.items.len(), 1);
}

async fn ordered(file: &mut SqliteConnection, orders: impl IntoIterator<Item = String>) {
    for order in orders {
        let done = sqlx::raw_sql(AssertSqlSafe(order)).execute(&mut *file).await;
        done.expect("as it was then");
    }
}

#[tokio::test]
async fn a_file_of_the_first_release_is_carried_over() {
    let place = Place::sqlite().await;
    let before = fill(&place).await;
    let (_, url) = place.stopped().await;
    let now = url.trim_start_matches("sqlite://");
    let then = format!("{now}.then");
    let options = SqliteConnectOptions::new()
        .filename(&then)
        .create_if_missing(true)
        .foreign_keys(false);
    let mut file = options.connect().await.expect("a file");
    let mut orders = vec![format!("ATTACH '{now}' AS now"), LEDGER.to_owned()];
    for known in &SQLITE[..FIRST] {
        let (version, name, sum) = (known.version, known.name, known.checksum());
        orders.push(known.sql.to_owned());
        orders.push(format!(
            "INSERT INTO schema_migration VALUES ({version}, '{name}', '{sum}', 0)"
        ));
    }
    ordered(&mut file, orders).await;
    for table in TABLES {
        let columns = "SELECT group_concat(name) FROM pragma_table_info($1, 'main')";
        let columns = sqlx::query_scalar(columns).bind(table).fetch_one(&mut file).await;
        let columns: String = columns.expect("columns");
        let copy = format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM now.{table}");
        ordered(&mut file, [copy]).await;
    }
    ordered(&mut file, [TERMS, OPENINGS_ON_SQLITE].map(str::to_owned)).await;
    file.close().await.expect("closed");
    std::fs::rename(&then, now).expect("in its place");
    let place = place.opened_again().await;
    check(&place, before).await;
    assert!(
        std::fs::exists(format!("{now}.before-0003")).expect("a folder"),
        "a copy was made first"
    );
    place.close().await;
}

#[tokio::test]
async fn questions_are_answered_from_a_tree_of_their_own() {
    let place = Place::sqlite().await;
    let (_, url) = place.stopped().await;
    let mut file = SqliteConnectOptions::new()
        .filename(url.trim_start_matches("sqlite://"))
        .connect()
        .await
        .expect("a connection");
    for (tree, question) in [
        (
            "audit_event_rare",
            format!("SELECT seq FROM audit_event WHERE kind IN ('callback.refused') AND {RARE} ORDER BY org, seq LIMIT 9"),
        ),
        (
            "confirmation_deadline",
            "SELECT id FROM confirmation WHERE status = 'pending' AND expires_at <= 1 ORDER BY expires_at, id LIMIT 9".to_owned(),
        ),
        ("confirmation_deadline", NEXT_DEADLINE.to_owned()),
        (
            "confirmation_listing",
            "SELECT id FROM confirmation WHERE (created_at, id) < (1, 'x') ORDER BY created_at DESC, id DESC LIMIT 9".to_owned(),
        ),
        (
            "sqlite_autoindex_delivery_1",
            "SELECT confirmation FROM delivery WHERE token_hash = 'x'".to_owned(),
        ),
        ("outbox_due", NEXT_OUTBOX.to_owned()),
    ] {
        let explain = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {question}"));
        let plan: Vec<(i64, i64, i64, String)> = sqlx::query_as(explain).fetch_all(&mut file).await.expect("a plan");
        assert!(plan.iter().any(|step| step.3.contains(tree)), "{question}: {plan:?}");
    }
    file.close().await.expect("closed");
    place.close().await;
}

#[tokio::test]
async fn a_database_of_the_first_release_is_carried_over() {
    let place = Place::postgres().await;
    let before = fill(&place).await;
    place.stopped().await;
    for sql in [TERMS, OPENINGS_ON_POSTGRES, BACK_ON_POSTGRES] {
        place.by_the_back_door(sql).await.expect("as it was then");
    }
    let place = place.opened_again().await;
    check(&place, before).await;
    place.close().await;
}
