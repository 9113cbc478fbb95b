//! One rule for every secret, whatever its spelling and source; no message repeats one.

use super::super::{Platform, ProblemKind, SlackMode, secret::Secret, secret::SecretFault};
use super::{BASE, Config, Folder, parse, refusal, refusals, spoilt};

const SECRET: &str = "d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e";

fn signing_secret(text: &str, folder: &Folder, env: &str) -> Result<(String, Vec<String>), String> {
    let env = |name: &str| (name == "SIGNING").then(|| env.to_owned());
    match Config::parse(text, "gatepost.yaml", &folder.0, &env) {
        Ok(loaded) => {
            let Platform::Slack(slack) = &loaded.config.channels[0].platform else {
                panic!("not slack")
            };
            let SlackMode::Webhook { signing_secrets } = &slack.mode else {
                panic!("not webhook")
            };
            let warned = loaded.warnings.iter().map(ToString::to_string).collect();
            Ok((signing_secrets[0].expose().to_owned(), warned))
        }
        Err(problems) => Err(problems.to_string()),
    }
}

#[test]
fn the_warning_says_what_became_of_a_line_end() {
    let folder = Folder::new();
    let text = spoilt(
        &format!("signing_secret: {SECRET}"),
        "signing_secret: {file: signing.txt}",
    );
    for (raw, says) in [
        (
            format!("{SECRET}\n"),
            "signing.txt is not part of it and was left out",
        ),
        (
            format!("{SECRET}\r\n"),
            "signing.txt is not part of it and was left out",
        ),
        (format!("{SECRET}\n\n"), "around the secret in the file"),
        (format!(" {SECRET}\n"), "around the secret in the file"),
    ] {
        folder.write("signing.txt", &raw);
        let (secret, warned) = signing_secret(&text, &folder, "").unwrap();
        assert_eq!(secret, SECRET);
        assert!(
            matches!(warned.as_slice(), [one] if one.contains(says)),
            "{warned:?}"
        );
    }
}

#[test]
fn a_secret_is_cleaned_with_a_warning_or_refused() {
    // The spellings of RH-601 and their kin; `None` is refused.
    let spellings: [(&str, Option<usize>); 16] = [
        ("{}", Some(0)),
        ("{}\n", Some(1)),
        ("{}\r\n", Some(1)),
        ("\u{feff}{}", Some(1)),
        ("  {}  ", Some(1)),
        ("\t{}\n\n", Some(1)),
        ("\"{}\"", None),
        ("'{}'", None),
        ("“{}”", None),
        ("{}\u{a0}", None),
        ("{}\nSECOND\n", None),
        ("{}\\n", None),
        ("{}\u{200b}", None),
        ("{}\0", None),
        ("", None),
        ("   ", None),
    ];
    let folder = Folder::new();
    let from_env = spoilt(
        &format!("signing_secret: {SECRET}"),
        "signing_secret: {env: SIGNING}",
    );
    let from_file = spoilt(
        &format!("signing_secret: {SECRET}"),
        "signing_secret: {file: signing.txt}",
    );
    for (spelling, warnings) in spellings {
        let raw = spelling.replace("{}", SECRET);
        folder.write("signing.txt", &raw);
        for (text, names) in [(&from_env, "SIGNING"), (&from_file, "signing.txt")] {
            match (signing_secret(text, &folder, &raw), warnings) {
                (Ok((secret, warned)), Some(expected)) => {
                    assert_eq!(secret, SECRET, "{spelling:?}");
                    assert_eq!(warned.len(), expected, "{spelling:?}: {warned:?}");
                    assert!(
                        warned
                            .iter()
                            .all(|w| w.contains("channels[0].signing_secret") && w.contains(names))
                    );
                    assert!(!warned.concat().contains(SECRET));
                }
                (Err(told), None) => {
                    assert!(
                        told.contains(names) && told.contains(":20:5: channels[0].signing_secret"),
                        "{told}"
                    );
                    assert!(!told.contains(SECRET), "{told}");
                }
                (found, expected) => panic!("{spelling:?}: {found:?} instead of {expected:?}"),
            }
        }
    }
}

#[test]
fn a_file_that_is_no_text_or_no_file_is_refused() {
    let folder = Folder::new();
    folder.write("utf16.txt", [0xff, 0xfe, 0x61, 0x00]);
    folder.write("long.txt", "x".repeat(100_000));
    for (source, expected) in [
        ("{file: utf16.txt}", "not UTF-8"),
        ("{file: long.txt}", "longer than"),
        ("{file: missing.txt}", "cannot be read"),
        ("{file: .}", "not a regular file"),
        ("{env: UNSET}", "UNSET is not set"),
        ("{env: SIGNING, file: x}", "exactly one"),
        ("{}", "exactly one"),
        ("{env: not-a-name}", "not the name of an environment variable"),
        ("1234567890123456", "a number"),
        ("", "nothing (null)"),
    ] {
        let text = spoilt(
            &format!("signing_secret: {SECRET}"),
            &format!("signing_secret: {source}"),
        );
        let told = signing_secret(&text, &folder, "x").unwrap_err();
        assert!(told.contains(expected), "{source}: {told}");
    }
}

#[test]
fn every_secret_of_a_channel_must_be_there() {
    for (line, key) in [
        ("    bot_token: xoxb-bot-of-ops\n", "channels[0].bot_token"),
        (
            "    signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e\n",
            "channels[0].signing_secret",
        ),
        ("    app_secret: app-secret-of-pay\n", "channels[1].app_secret"),
        ("    encrypt_key: encrypt-key-of-pay\n", "channels[1].encrypt_key"),
        (
            "    verification_token: verification-token-of-pay\n",
            "channels[1].verification_token",
        ),
    ] {
        let missing = refusal(&spoilt(line, ""));
        assert_eq!(
            (missing.kind, missing.key.as_str()),
            (ProblemKind::MissingKey, key)
        );
        let name = line.split(':').next().unwrap();
        for empty in ["''", "'   '", "\"\\n\""] {
            let problem = refusal(&spoilt(line, &format!("{name}: {empty}\n")));
            assert_eq!(
                (problem.kind, problem.key.as_str()),
                (ProblemKind::BadSecret, key),
                "{empty}"
            );
            assert!(problem.message.contains("empty"), "{problem}");
        }
    }
    let none = refusal(&spoilt(
        "signing_secret: d0c5e1f2a3b4c5d6e7f8091a2b3c4d5e",
        "signing_secret: []",
    ));
    assert_eq!(none.kind, ProblemKind::BadSecret);
    let socket = spoilt(
        "    channel: C0123456789\n",
        "    channel: C0123456789\n    mode: socket\n",
    );
    assert_eq!(refusal(&socket).key, "channels[0].app_token");
}

#[test]
fn the_database_address_obeys_the_same_rule() {
    for (url, expected) in [
        ("'\"sqlite://a.db\"'", "quotes"),
        ("''", "empty"),
        ("mysql://root:hunter2@host/db", "neither sqlite: nor postgres"),
        ("'postgres://u:hunter2@ho st:99999/db'", "cannot be read"),
        ("\"postgres://u:hunter2@host/db\\nx\"", "more than one line"),
    ] {
        let problems = refusals(&format!("storage:\n  url: {url}\n{BASE}"));
        assert_eq!(problems[0].key, "storage.url");
        assert!(problems[0].message.contains(expected), "{}", problems[0]);
        assert!(!format!("{problems:?}").contains("hunter2"));
    }
    let loaded = parse(&format!("storage: {{url: ' postgres://u@host/db '}}\n{BASE}")).unwrap();
    assert_eq!(loaded.config.storage.url.expose(), "postgres://u@host/db");
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    for (from, to) in [
        ("    kind: slack\n", "    kind: xoxb-1234-s3cr3t\n"),
        ("      role: agent\n", "      role: s3cr3ts3cr3ts3cr3ts3cr3t00\n"),
        ("https://gate.example.com", "https://user:s3cr3t@host"),
        ("secret: agent-secret-0123456789", "secret: [s3cr3t]"),
        ("secret: agent-secret-0123456789", "secret: {env: s3cr3t-s3cr3t}"),
    ] {
        let told: String = refusals(&spoilt(from, to))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(!told.contains("s3cr3t"), "{told}");
    }
}

#[test]
fn a_secret_does_not_show_itself() {
    let (secret, _) = Secret::accept(SECRET).unwrap();
    assert_eq!(format!("{secret:?}"), "Secret(…)");
    assert!(secret.same_as(&Secret::verbatim(SECRET)));
    assert!(!secret.same_as(&Secret::verbatim("d0c5")));
    assert!(matches!(
        Secret::accept("a b").unwrap().0.for_header(),
        Err(SecretFault::NotForHeader)
    ));
    assert!(matches!(
        Secret::accept("é").unwrap().0.for_header(),
        Err(SecretFault::NotForHeader)
    ));
}
