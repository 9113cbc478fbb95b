//! The server's own key: 32 random bytes in a file of mode 0600, made once at the first start.
//!
//! It knows no section. The file appears complete or not at all, and two servers that start together end with one key.

use std::{
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use zeroize::Zeroizing;

/// The length of the key, in bytes.
pub const KEY_BYTES: usize = 32;
/// More than the hex text with a line end; a longer file is not a key.
const LONGEST_FILE: u64 = 256;

/// The key that seals and signs what must not be readable from the database alone.
#[derive(Clone)]
pub struct ServerKey(Zeroizing<[u8; KEY_BYTES]>);

impl ServerKey {
    /// The key of these bytes.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key of 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        hex::decode_to_slice(text, bytes.as_mut_slice()).ok()?;
        // All zeros is what a broken source of chance or an example file holds.
        (bytes.iter().any(|byte| *byte != 0)).then_some(Self(bytes))
    }

    /// The key itself.
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl fmt::Debug for ServerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerKey(…)")
    }
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file could not be read or made.
    #[error("the key file {path} cannot be {action}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner can read it.
    #[error(
        "the key file {path} has mode {mode:04o}: others can read it; run `chmod 600` on it and think of it as known"
    )]
    Readable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is a folder, a device or a pipe.
    #[error("the key file {path} is not a regular file")]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// Its content is no key.
    #[error(
        "the key file {path} does not hold 64 hexadecimal digits; restore it, or remove it to have a new one made (what was sealed with the old one is then lost)"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
    },
}

/// Reads the key, or makes it if the file does not exist. `random` fills a buffer with chance fit for keys.
///
/// # Errors
/// [`KeyError`] when the file is unreadable, readable by others, or no key.
pub fn load_or_create(path: &Path, random: &dyn Fn(&mut [u8])) -> Result<ServerKey, KeyError> {
    let failed = |action| {
        move |source| KeyError::Io {
            path: path.to_owned(),
            action,
            source,
        }
    };
    match std::fs::metadata(path) {
        // Not opened before it is known to be a file: opening a pipe would wait for a writer.
        Ok(metadata) if !metadata.is_file() => {
            return Err(KeyError::NotAFile {
                path: path.to_owned(),
            });
        }
        Ok(_) => return load(path, File::open(path).map_err(failed("read"))?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("read")(error)),
    }
    create(path, random).map_err(failed("made"))?;
    // Whoever linked first made the key; everybody reads what stands there now.
    load(path, File::open(path).map_err(failed("read"))?)
}

fn load(path: &Path, file: File) -> Result<ServerKey, KeyError> {
    let failed = |source| KeyError::Io {
        path: path.to_owned(),
        action: "read",
        source,
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(KeyError::NotAFile {
            path: path.to_owned(),
        });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::Readable {
            path: path.to_owned(),
            mode,
        });
    }
    let mut bytes = Zeroizing::new(Vec::new());
    file.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(failed)?;
    std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| ServerKey::from_hex(text.trim()))
        .ok_or_else(|| KeyError::Malformed {
            path: path.to_owned(),
        })
}

/// Writes a complete file beside the target and links it into place; a link never replaces what is there.
fn create(path: &Path, random: &dyn Fn(&mut [u8])) -> io::Result<()> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    random(key.as_mut_slice());
    if key.iter().all(|byte| *byte == 0) {
        return Err(io::Error::other("the source of chance gave nothing"));
    }
    let mut tail = [0; 8];
    random(&mut tail);
    let mut name = path
        .file_name()
        .ok_or_else(|| io::Error::other("not the name of a file"))?
        .to_owned();
    name.push(format!(".{}.new", hex::encode(tail)));
    let beside = path.with_file_name(name);
    let written = write_new(&beside, &key).and_then(|()| std::fs::hard_link(&beside, path));
    let removed = std::fs::remove_file(&beside);
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => removed,
        Err(error) => Err(error),
        Ok(()) => removed.and_then(|()| sync_folder(path)),
    }
}

fn write_new(path: &Path, key: &[u8; KEY_BYTES]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    let text = Zeroizing::new(hex::encode(key) + "\n");
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}
