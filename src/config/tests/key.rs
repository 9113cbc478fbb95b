//! The server's key: made once, complete or not at all, and nobody else's to read.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::super::{
    KeySource,
    server_key::{KeyError, load_or_create},
};
use super::{Folder, loaded, refusal, spoilt};

fn counting(buffer: &mut [u8]) {
    for (byte, value) in buffer.iter_mut().zip(1..) {
        *byte = value;
    }
}

#[test]
fn is_made_once_with_mode_0600() {
    let folder = Folder::new();
    let path = folder.0.join("gatepost.key");
    let made = load_or_create(&path, &counting).unwrap();
    assert_eq!(made.expose()[..3], [1, 2, 3]);
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
    let again = load_or_create(&path, &|buffer| buffer.fill(7)).unwrap();
    assert_eq!(again.expose(), made.expose());
    let left: Vec<_> = std::fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, ["gatepost.key"], "nothing is left beside it");
    assert!(!format!("{made:?}").contains('1'));
}

#[test]
fn two_starts_end_with_one_key() {
    let folder = Folder::new();
    let path = folder.0.join("gatepost.key");
    let keys: Vec<[u8; 32]> = std::thread::scope(|scope| {
        let starts: Vec<_> = (1..=16u8)
            .map(|seed| {
                let path = &path;
                scope.spawn(move || {
                    *load_or_create(path, &|buffer| buffer.fill(seed))
                        .unwrap()
                        .expose()
                })
            })
            .collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
}

#[test]
fn a_key_that_others_can_read_or_that_is_none_is_refused() {
    let folder = Folder::new();
    let path = folder.write("gatepost.key", "ab".repeat(32));
    for mode in [0o644, 0o640, 0o604, 0o660] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let error = load_or_create(&path, &counting).unwrap_err();
        assert!(matches!(error, KeyError::Readable { .. }));
        assert!(
            error.to_string().contains("chmod 600") && !error.to_string().contains("abab"),
            "{error}"
        );
    }
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(load_or_create(&path, &counting).unwrap().expose(), &[0xab; 32]);
    for content in ["", "abcd", &"zz".repeat(32), &"00".repeat(32), &"ab".repeat(33)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        folder.write("gatepost.key", content);
        assert!(
            matches!(load_or_create(&path, &counting), Err(KeyError::Malformed { .. })),
            "{content}"
        );
    }
    assert!(matches!(
        load_or_create(&folder.0, &counting),
        Err(KeyError::NotAFile { .. })
    ));
    let nowhere = folder.0.join("missing/gatepost.key");
    assert!(matches!(
        load_or_create(&nowhere, &counting),
        Err(KeyError::Io { .. })
    ));
    let broken = load_or_create(&folder.0.join("new.key"), &|_| {});
    assert!(
        broken.is_err(),
        "a source of chance that gives nothing makes no key"
    );
}

#[test]
fn may_be_given_instead() {
    let given = |key: &str| spoilt("listen: 127", &format!("key: {key}, listen: 127"));
    let config = loaded(&given(&"ab".repeat(32))).config;
    assert!(matches!(config.server.key, KeySource::Given(key) if key.expose() == &[0xab; 32]));
    assert_eq!(refusal(&given("abcd")).key, "server.key");
    let config = loaded(&given("{file: my.key}")).config;
    assert!(
        matches!(config.server.key, KeySource::File(path) if path.ends_with("my.key")),
        "need not exist yet"
    );
}
