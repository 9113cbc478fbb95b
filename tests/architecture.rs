//! The walls of docs/ARCHITECTURE.md, kept by reading the source tree.
//!
//! Each test is one wall and lists every breach with file and line. The tables [`MAY_USE`] and [`LONG_FILES`] are the
//! only places where an exception can stand.
#![expect(
    clippy::expect_used,
    reason = "a breach, or a tree that cannot be read, ends the test"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Which rooms of `src/` a room may name. `clock`, `ids` and `lifecycle` are open to all but the pure `gate`.
/// A room that is not here yet must be added with what it needs, and with nothing that it does not.
const MAY_USE: &[(&str, &str)] = &[
    ("clock", ""),
    ("ids", ""),
    ("lifecycle", ""),
    ("gate", ""),
    ("audit", "gate"),
    ("confirmation", "gate audit delivery job storage"),
    ("job", "gate audit confirmation storage"),
    ("delivery", "gate audit confirmation storage"),
    ("storage", "gate audit confirmation job delivery callback"),
    ("gatekeeper", "gate audit confirmation job delivery storage"),
    ("callback", "gate audit confirmation delivery gatekeeper storage"),
    ("host", "gate audit confirmation gatekeeper storage"),
    ("child", "config"),
    ("hook", "gate audit child config confirmation gatekeeper"),
    ("mcp", "child config"),
    (
        "agent",
        "gate audit child config confirmation gatekeeper hook job mcp storage",
    ),
    // Part of the outside: it reads counts, and no inner room knows it.
    ("telemetry", "job storage"),
    ("config", "gate"),
    (
        "http",
        "gate audit confirmation job delivery storage gatekeeper callback host hook agent telemetry config console",
    ),
    (
        "console",
        "gate audit confirmation job delivery storage gatekeeper callback agent telemetry config http",
    ),
    ("bench", EVERYTHING),
    ("cli", EVERYTHING),
    ("app", EVERYTHING),
    ("lib", EVERYTHING),
    ("main", EVERYTHING),
];
const EVERYTHING: &str = "*";
const FOUNDATION: [&str; 3] = ["clock", "ids", "lifecycle"];

/// No file is longer than this.
const MOST_LINES: usize = 600;
/// Files that are, with the lines that they may have while they wait to be split. None may be added.
const LONG_FILES: &[(&str, usize)] = &[
    ("src/gate/policy/policy_tests.rs", 1300),
    ("src/storage/workspace.rs", 710),
];

/// A Rust file of the tree.
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// The lines without comments, numbered from 1.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(index, line)| (index + 1, line.split_once("//").map_or(line, |(code, _)| code)))
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("_tests.rs")
            || self.path.ends_with("/fixture.rs")
            || self.path.starts_with("tests/")
    }

    /// The room of a file under `src/`: its folder, or its name at the top.
    fn room(&self) -> &str {
        let inside = self.path.strip_prefix("src/").expect("a file under src/");
        inside.split(['/', '.']).next().expect("a first part")
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            found.extend(files_under(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .expect("a path of the tree")
        .to_str()
        .expect("a name in UTF-8")
        .to_owned()
}

fn sources(folder: &str) -> Vec<Source> {
    let rust = files_under(&root().join(folder))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| Source {
        path: relative(&path),
        text: fs::read_to_string(&path).expect("a Rust file"),
    })
    .collect()
}

fn keep(wall: &str, breaches: &[String]) {
    assert!(breaches.is_empty(), "{wall}:\n  {}\n", breaches.join("\n  "));
}

/// The names right after `crate::` in a piece of code: one, or the first parts of a braced group.
fn named_rooms(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (start, text) in code.match_indices("crate::") {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let after = &code[start + text.len()..];
        let name = |text: &str| {
            text.chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect::<String>()
        };
        let Some(group) = after.strip_prefix('{') else {
            found.push(name(after));
            continue;
        };
        let mut depth = 0_i32;
        let mut part = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => found.push(name(std::mem::take(&mut part).trim())),
                _ => {}
            }
            if c != ',' || depth > 0 {
                part.push(c);
            }
        }
        found.push(name(part.trim()));
    }
    found.retain(|name| !name.is_empty());
    found
}

#[test]
fn a_room_names_only_the_rooms_that_it_may() {
    let table: BTreeMap<&str, Vec<&str>> = MAY_USE
        .iter()
        .map(|(room, may)| (*room, may.split(' ').collect()))
        .collect();
    let sources = sources("src");
    let rooms: BTreeSet<&str> = sources.iter().map(Source::room).collect();
    let mut breaches = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let room = source.room();
        let Some(may) = table.get(room) else {
            breaches.push(format!(
                "{}: the room `{room}` is not in MAY_USE of tests/architecture.rs",
                source.path
            ));
            continue;
        };
        // A group may go over several lines, so the whole file is searched, without its comments.
        let code: String = source.code().map(|(_, code)| code.to_owned() + "\n").collect();
        let used: BTreeSet<String> = named_rooms(&code).into_iter().collect();
        for other in used
            .iter()
            .map(String::as_str)
            .filter(|other| rooms.contains(other))
        {
            let open = FOUNDATION.contains(&other) && room != "gate";
            if other != room && !open && *may != [EVERYTHING] && !may.contains(&other) {
                breaches.push(format!("{}: `{room}` may not know `{other}`", source.path));
            }
        }
    }
    keep(
        "walls between rooms (the table is MAY_USE in tests/architecture.rs)",
        &breaches,
    );
}

/// The places in code (not in comments) under `src/` that name `word`, outside the given folders or files.
fn naming(word: impl Fn(&str) -> bool, except: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources("src") {
        if except.iter().any(|place| source.path.starts_with(place)) {
            continue;
        }
        let lines = source.code().filter(|(_, code)| word(code));
        found.extend(lines.map(|(number, code)| format!("{}:{number}: {}", source.path, code.trim())));
    }
    found
}

#[test]
fn only_storage_knows_sql() {
    keep(
        "`sqlx` outside src/storage, and outside the bare limits that a bench compares with",
        &naming(|code| code.contains("sqlx"), &["src/storage", "src/bench"]),
    );
}

#[test]
fn only_the_outside_knows_the_web_framework() {
    let outside = ["src/http", "src/console", "src/bench", "src/cli/demo"];
    let mut named = naming(|code| code.contains("axum"), &outside);
    // A test of something that calls out plays the other side.
    named.retain(|place| !place.contains("_tests.rs:"));
    keep("`axum` outside src/http and src/console", &named);
}

#[test]
fn only_the_composition_root_and_the_configuration_name_a_platform() {
    let names = |code: &str| {
        let code = code.to_lowercase();
        let words = code.split(|c: char| !c.is_ascii_alphabetic());
        code.contains("slack") || code.contains("feishu") || words.into_iter().any(|word| word == "lark")
    };
    keep(
        "a platform's name in code outside src/app.rs, src/config and the presses of a bench",
        &naming(names, &["src/app", "src/config", "src/bench"]),
    );
}

#[test]
fn every_file_says_what_it_is() {
    let all = ["src", "channels", "tests", "benches"]
        .into_iter()
        .flat_map(sources);
    // The tests of a file, in a sibling of its name, are about that file.
    let silent = all.filter(|source| !source.path.ends_with("_tests.rs") && !source.text.starts_with("//!"));
    keep(
        "files that do not start with `//!`",
        &silent.map(|source| source.path).collect::<Vec<_>>(),
    );
}

#[test]
fn no_file_is_too_long() {
    let mut breaches = Vec::new();
    let mut known = LONG_FILES.iter().copied().collect::<BTreeMap<_, _>>();
    for source in ["src", "channels", "tests", "benches"]
        .into_iter()
        .flat_map(sources)
    {
        let lines = source.text.lines().count();
        let most = known.remove(source.path.as_str());
        if lines > most.unwrap_or(MOST_LINES) {
            breaches.push(format!("{}: {lines} lines; split it by concept", source.path));
        } else if most.is_some() && lines <= MOST_LINES {
            breaches.push(format!(
                "{}: short enough now, take it out of LONG_FILES",
                source.path
            ));
        }
    }
    breaches.extend(
        known
            .keys()
            .map(|path| format!("{path}: is gone, take it out of LONG_FILES")),
    );
    keep(&format!("files over {MOST_LINES} lines"), &breaches);
}

/// People decide on the call as it stands, which a person may have changed since it was asked: `Confirmation::call`. What was asked may
/// be looked at beside it, where the change itself is shown.
#[test]
fn what_is_shown_and_decided_is_the_call_that_stands() {
    const SHOWS_THE_CHANGE: &[(&str, usize)] = &[("src/delivery/card.rs", 1), ("src/console/request.rs", 2)];
    let mut breaches = Vec::new();
    for source in sources("src").iter().filter(|source| !source.is_test()) {
        if !["delivery", "callback", "console"].contains(&source.room()) {
            continue;
        }
        let asked = |code: &str| code.contains("asked.args") || code.contains("asked.digest");
        let lines: Vec<usize> = source
            .code()
            .filter(|(_, code)| asked(code))
            .map(|(line, _)| line)
            .collect();
        let allowed = SHOWS_THE_CHANGE.iter().find(|(path, _)| *path == source.path);
        if lines.len() > allowed.map_or(0, |(_, most)| *most) {
            breaches.push(format!("{}: lines {lines:?}", source.path));
        }
    }
    keep(
        "the call as it was asked, in place of `Confirmation::call`",
        &breaches,
    );
}

#[test]
fn a_channel_depends_on_the_port_alone() {
    let mut breaches = Vec::new();
    let manifests = files_under(&root().join("channels"));
    let manifests: Vec<_> = manifests
        .into_iter()
        .filter(|path| path.ends_with("Cargo.toml"))
        .collect();
    assert!(!manifests.is_empty(), "there are channels");
    for path in manifests {
        let text = fs::read_to_string(&path).expect("a manifest");
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if line.starts_with('[') {
                line.clone_into(&mut section);
            }
            let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
            let ours = name == "gatepost" || name.starts_with("gatepost-");
            let is_port = path.ends_with("port/Cargo.toml");
            if section.contains("dependencies") && ours && (is_port || name != "gatepost-channel") {
                breaches.push(format!("{}: {line}", relative(&path)));
            }
        }
    }
    keep(
        "channels that depend on more of ours than channels/port",
        &breaches,
    );
}

/// The migrations of one database by file name.
fn migrations(database: &str) -> BTreeMap<String, Vec<u8>> {
    let files = files_under(&root().join("migrations").join(database)).into_iter();
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "sql"));
    let named = files.map(|path| {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name in UTF-8")
            .to_owned();
        (name, fs::read(&path).expect("a migration"))
    });
    named.collect()
}

#[test]
fn both_databases_have_the_same_migrations() {
    let (sqlite, postgres) = (migrations("sqlite"), migrations("postgres"));
    let one_sided: Vec<_> = sqlite
        .keys()
        .filter(|name| !postgres.contains_key(*name))
        .map(|name| format!("{name}: missing for PostgreSQL"))
        .chain(
            postgres
                .keys()
                .filter(|name| !sqlite.contains_key(*name))
                .map(|n| format!("{n}: missing for SQLite")),
        )
        .collect();
    keep("migrations on one side only", &one_sided);
    let mut breaches = Vec::new();
    for (index, name) in sqlite.keys().enumerate() {
        let number = name
            .split('_')
            .next()
            .and_then(|number| number.parse::<usize>().ok());
        if number != Some(index + 1) {
            breaches.push(format!("{name}: should have the number {}", index + 1));
        }
    }
    keep("migrations without a gapless number", &breaches);
}

/// `migrations/CHECKSUMS` has the lines of `sha256sum sqlite/*.sql postgres/*.sql`; a released line never changes.
#[test]
fn no_migration_changes_after_its_checksum_was_written() {
    let Ok(list) = fs::read_to_string(root().join("migrations/CHECKSUMS")) else {
        return;
    };
    let mut listed = BTreeMap::new();
    for line in list
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
    {
        let (sum, name) = line
            .split_once("  ")
            .unwrap_or_else(|| panic!("CHECKSUMS: not a line of sha256sum: {line}"));
        listed.insert(name.to_owned(), sum.to_owned());
    }
    let mut breaches = Vec::new();
    for database in ["sqlite", "postgres"] {
        for (name, bytes) in migrations(database) {
            let path = format!("{database}/{name}");
            let sum = hex::encode(Sha256::digest(&bytes));
            match listed.remove(&path) {
                Some(written) if written == sum => {}
                Some(_) => breaches.push(format!("{path}: was edited; write a new migration instead")),
                None => breaches.push(format!("{path}: has no line in CHECKSUMS yet: {sum}  {path}")),
            }
        }
    }
    breaches.extend(listed.keys().map(|path| format!("{path}: is listed but gone")));
    keep("migrations/CHECKSUMS", &breaches);
}

/// deny.toml says the same and more; this holds where cargo-deny is not installed.
#[test]
fn the_lock_file_holds_one_tls_provider_and_one_source() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("a lock file");
    let banned = ["openssl", "openssl-sys", "native-tls", "aws-lc-rs", "aws-lc-sys"];
    let values = |key: &str| {
        let prefix = format!("{key} = \"");
        let found = lock
            .lines()
            .filter_map(move |line| line.strip_prefix(&prefix)?.strip_suffix('"'));
        found.collect::<BTreeSet<&str>>()
    };
    let names = values("name");
    assert!(
        names.contains("ring") && names.contains("gatepost"),
        "the lock file is read"
    );
    let present: Vec<_> = banned
        .into_iter()
        .filter(|name| names.contains(name))
        .map(str::to_owned)
        .collect();
    keep("a second TLS provider in Cargo.lock", &present);
    let sources: Vec<_> = values("source").into_iter().map(str::to_owned).collect();
    assert!(
        sources.len() == 1 && sources[0].starts_with("registry+"),
        "crates from elsewhere: {sources:?}"
    );
}

#[test]
fn the_reader_of_this_file_reads_right() {
    assert_eq!(named_rooms("use crate::gate::Digest;"), ["gate"]);
    assert_eq!(
        named_rooms("use crate::{audit, gate::{Call, Digest},\n job};"),
        ["audit", "gate", "job"]
    );
    assert_eq!(
        named_rooms("fn f(a: crate::ids::Ids) -> crate::gate::Call"),
        ["ids", "gate"]
    );
    assert!(named_rooms("my_crate::gate").is_empty());
    let source = Source {
        path: "src/gate/mod.rs".to_owned(),
        text: "a // sqlx\n/// axum\nb".to_owned(),
    };
    assert_eq!(
        source.code().map(|(_, code)| code).collect::<Vec<_>>(),
        ["a ", "", "b"]
    );
    assert_eq!(source.room(), "gate");
}
