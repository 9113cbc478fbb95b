//! A folder of its own for one test, removed with the value.

use std::path::{Path, PathBuf};

/// An empty folder under the system's temporary one.
#[derive(Debug)]
pub struct TempDir(PathBuf);

impl TempDir {
    /// Makes the folder, readable by this user only.
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("gatepost-it-{}", random_hex()));
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).expect("a new temporary folder");
        Self(path)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A folder that cannot be removed is no reason to fail a test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// 128 random bits in hex, for names that must not clash.
pub fn random_hex() -> String {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).expect("the system's randomness");
    hex::encode(bytes)
}
