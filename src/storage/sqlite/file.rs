//! The database file: private to its owner, and used by one server process at a time.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use crate::storage::open::OpenError;

/// Only the owner reads and writes: the file holds arguments of calls.
const PRIVATE: u32 = 0o600;

/// Held as long as the store is open. The lock lies on a file beside the database: closing a second handle on the database
/// itself would drop SQLite's own locks (POSIX).
#[derive(Debug)]
pub(super) struct Claim(#[expect(dead_code, reason = "held for its lock")] Flock<File>);

/// Claims the database for this process, or says that another one has it.
pub(super) fn claim(path: &Path) -> Result<Claim, OpenError> {
    let beside = beside(path, "lock");
    let file = private()
        .create(true)
        .truncate(false)
        .open(&beside)
        .map_err(|error| OpenError::file(&beside, &error))?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Claim(lock)),
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => Err(OpenError::InUse(path.to_owned())),
        Err((_, errno)) => Err(OpenError::file(&beside, &errno.into())),
    }
}

/// Creates the file if there is none; tells whether it did. SQLite gives its log the same permissions.
pub(super) fn create(path: &Path) -> Result<bool, OpenError> {
    match private().create_new(true).open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let size = std::fs::metadata(path)
                .map_err(|error| OpenError::file(path, &error))?
                .len();
            Ok(size == 0)
        }
        Err(error) => Err(OpenError::file(path, &error)),
    }
}

/// An empty private file beside the database, for a copy of it.
pub(super) fn place_for_copy(path: &Path, suffix: &str) -> Result<PathBuf, OpenError> {
    let copy = beside(path, suffix);
    private()
        .create(true)
        .truncate(true)
        .open(&copy)
        .map_err(|error| OpenError::file(&copy, &error))?;
    Ok(copy)
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(PRIVATE);
    options
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
