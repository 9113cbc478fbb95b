//! `gatepost approve ID --edit | --args`: the arguments as a person changes them, from an editor, a file, or the command line.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::answer::Answer;
use super::print;
use super::stop::Stop;
use crate::gate::json::ReadLimits;
use crate::gate::{Arguments, editable};
use crate::ids::{Ids as _, SystemIds};

/// The most bytes of arguments that are read from a file.
const MOST: usize = 4 * 1024 * 1024;

/// Reads `--args`: a JSON object as it stands there, or else the name of a file that holds one.
pub fn given(text: &str) -> Result<Arguments, Stop> {
    if text.trim_start().starts_with('{') {
        return read(text.as_bytes(), "--args");
    }
    let bytes = fs::read(text).map_err(|error| {
        Stop::usage(format!(
            "--args: {} is no JSON object, and no file of this name can be read: {error}",
            print::foreign(text)
        ))
    })?;
    read(&bytes, &print::foreign(text))
}

/// The arguments of a request as they stand, to be changed: those of its last edit, or as they were proposed. Hidden values stay hidden,
/// and stay as they are.
fn standing(request: &Answer) -> Option<String> {
    let edit = request.exact("edit");
    let edited = edit.as_ref().and_then(|edit| edit.get("tool_args").cloned());
    let args = edited.or_else(|| request.exact("tool_args"))?;
    editable(&args.canonical(), &[])
}

/// Has the person change the arguments of a request in their editor.
pub fn in_editor(request: &Answer, editor: &str) -> Result<Arguments, Stop> {
    let before = standing(request)
        .ok_or_else(|| Stop::failed("the arguments of the request cannot be read; nothing was decided"))?;
    let path = std::env::temp_dir().join(format!("gatepost-{}.json", SystemIds.fresh()));
    write(&path, &before).map_err(|error| {
        Stop::failed(format!(
            "{} cannot be written: {error}; nothing was decided",
            path.display()
        ))
    })?;
    let edited = edit(&path, editor, &before);
    if edited.is_ok() {
        let _removed = fs::remove_file(&path);
    }
    edited
}

fn write(path: &PathBuf, text: &str) -> std::io::Result<()> {
    // The arguments are for this person's eyes.
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}

fn edit(path: &Path, editor: &str, before: &str) -> Result<Arguments, Stop> {
    let mut words = editor.split_whitespace();
    let program = words
        .next()
        .ok_or_else(|| Stop::usage("there is no editor: set EDITOR, or give the arguments with --args"))?;
    let kept = |what: &str| {
        Stop::failed(format!(
            "{what}; nothing was decided. What you wrote is kept in {}",
            path.display()
        ))
    };
    let ended = Command::new(program).args(words).arg(path).status();
    match ended {
        Ok(status) if status.success() => {}
        Ok(_) => return Err(kept("the editor failed")),
        Err(error) => return Err(kept(&format!("the editor cannot be started: {error}"))),
    }
    let after = fs::read(path).map_err(|error| kept(&format!("the file cannot be read: {error}")))?;
    let args = read(&after, &path.display().to_string())?;
    if read(before.as_bytes(), "the request")? == args {
        let _removed = fs::remove_file(path);
        return Err(Stop::failed(
            "you changed nothing, so nothing was decided; approve the call as it is without --edit",
        ));
    }
    Ok(args)
}

fn read(bytes: &[u8], from: &str) -> Result<Arguments, Stop> {
    Arguments::read(bytes, ReadLimits::bytes(MOST))
        .map_err(|problem| Stop::usage(format!("{from}: {problem}; nothing was decided")))
}

/// The edit that stands on a request, by its number; nothing where there is none.
pub fn number(request: &Answer) -> Option<u64> {
    request.value["edit"]["number"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Answer {
        Answer::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn what_is_edited_is_exact_and_shows_what_would_not_be_seen() {
        let plain = request(r#"{"tool_args":{"n":12345678901234567890.123,"s":"a\u202eb"},"edit":null}"#);
        let text = standing(&plain).unwrap();
        assert!(
            text.contains("12345678901234567890.123") && text.contains(r"a\u202eb"),
            "{text}"
        );
        assert_eq!(number(&plain), None);
        let edited = request(r#"{"tool_args":{"n":1},"edit":{"number":2,"tool_args":{"n":3}}}"#);
        assert_eq!(
            standing(&edited).unwrap().replace(char::is_whitespace, ""),
            r#"{"n":3}"#
        );
        assert_eq!(number(&edited), Some(2));
    }

    #[test]
    fn arguments_stand_on_the_command_line_or_in_a_file_and_nothing_is_guessed() {
        assert_eq!(given(r#" {"a":1}"#).unwrap().canonical(), r#"{"a":1}"#);
        let path = std::env::temp_dir().join(format!("gatepost-{}.json", SystemIds.fresh()));
        write(&path, r#"{"a":2}"#).unwrap();
        assert_eq!(given(path.to_str().unwrap()).unwrap().canonical(), r#"{"a":2}"#);
        fs::remove_file(path).unwrap();
        for bad in ["", "no/such/file", r#"{"a":1,"a":2}"#, "[1]", "{"] {
            assert!(given(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_editor_that_changes_nothing_or_fails_decides_nothing() {
        let asked = request(r#"{"tool_args":{"n":1},"edit":null}"#);
        for editor in ["true", "false", "/no/such/editor", " "] {
            assert!(in_editor(&asked, editor).is_err(), "{editor}");
        }
        assert_eq!(
            in_editor(&asked, "sed -i s/1/2/").unwrap().canonical(),
            r#"{"n":2}"#
        );
    }
}
