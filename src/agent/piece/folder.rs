//! The folder of pieces: YAML files, one piece each.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::Path;

use super::{Piece, Pieces, lint};
use crate::config::context::Complaint;
use crate::config::shown::shown_path;
use crate::config::{Location, Problem, ProblemKind, yaml};

/// The most files in a folder.
const MAX_FILES: usize = 1_000;

impl Pieces {
    /// Reads a folder. `tools` are the names of the tools there are.
    ///
    /// # Errors
    /// Every problem of every file.
    pub fn load(folder: &Path, tools: &BTreeSet<String>) -> Result<Self, Vec<Problem>> {
        let unreadable = |path: &Path, what: String| {
            Complaint::new(ProblemKind::Unreadable, what)
                .remedy("name a readable folder of YAML files in agent.pieces")
                .at(&shown_path(path), None, "")
        };
        let entries = std::fs::read_dir(folder)
            .map_err(|error| vec![unreadable(folder, format!("cannot be read: {error}"))])?;
        let mut files = Vec::new();
        for entry in entries {
            let path = entry
                .map_err(|error| vec![unreadable(folder, format!("cannot be read: {error}"))])?
                .path();
            let is_yaml = path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml");
            if is_yaml {
                files.push(path);
            }
        }
        if files.len() > MAX_FILES {
            return Err(vec![unreadable(
                folder,
                format!("holds more than {MAX_FILES} pieces"),
            )]);
        }
        files.sort();
        let mut pieces = Self::default();
        let mut labels = BTreeMap::new();
        let mut problems = Vec::new();
        for path in &files {
            let label = shown_path(path);
            let text = match read_text(path) {
                Ok(text) => text,
                Err(error) => {
                    problems.push(unreadable(path, format!("cannot be read: {error}")));
                    continue;
                }
            };
            match Piece::read_in(&text, &label, folder, tools) {
                Err(found) => problems.extend(found),
                Ok((piece, _)) if pieces.all.contains_key(&piece.name) => {
                    let what = format!("a second piece named `{}`", piece.name);
                    problems.push(
                        Complaint::new(ProblemKind::Conflict, what)
                            .remedy("give each piece its own name")
                            .at(&label, Some(Location { line: 1, column: 1 }), "name"),
                    );
                }
                Ok((piece, warnings)) => {
                    labels.insert(piece.name.clone(), label);
                    pieces.warnings.extend(warnings);
                    pieces.all.insert(piece.name.clone(), piece);
                }
            }
        }
        // Only now is it known which pieces there are.
        if problems.is_empty() {
            problems.extend(lint::unknown_pieces(&pieces.all, &labels));
        }
        if problems.is_empty() {
            Ok(pieces)
        } else {
            Err(problems)
        }
    }
}

/// A regular file of UTF-8 text within the bounds of the YAML reader.
fn read_text(path: &Path) -> std::io::Result<String> {
    let limit = u64::try_from(yaml::MAX_BYTES).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > yaml::MAX_BYTES {
        return Err(std::io::Error::other("it is too large"));
    }
    String::from_utf8(bytes)
        .map_err(|_| std::io::Error::new(std::io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}
