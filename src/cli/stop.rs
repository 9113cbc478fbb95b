//! How a command ends when it is not done: wrong usage (2), refused or failed (1), each with one sentence for the person.

use std::error::Error;
use std::process::ExitCode;

use super::print;

/// What a command returns.
pub type Done = Result<(), Stop>;

/// Why a command was not done.
///
/// It is no [`Error`] itself, so that `?` takes every error.
#[derive(Debug)]
pub enum Stop {
    /// The command was typed in a way that means nothing: exit code 2.
    Usage(String),
    /// It was refused or failed: exit code 1.
    Failed(String),
    /// It failed, and what is wrong is on the terminal already: exit code 1.
    Told,
}

impl Stop {
    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Refused or failed.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    /// Tells the person, if that was not done yet, and gives the exit code.
    pub fn tell(&self) -> ExitCode {
        match self {
            Self::Usage(message) => {
                print::error(message);
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                print::error(message);
                ExitCode::FAILURE
            }
            Self::Told => ExitCode::FAILURE,
        }
    }
}

impl<E: Error> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(chain(&error))
    }
}

/// An error with its causes. A cause that the error repeats already is left out.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.contains(&told) {
            text.push_str(": ");
            text.push_str(&told);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the store cannot be opened")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("the disk is full")]
    struct Inner;

    #[test]
    fn causes_are_told_once() {
        assert_eq!(
            chain(&Outer(Inner)),
            "the store cannot be opened: the disk is full"
        );
        assert_eq!(chain(&Inner), "the disk is full");
    }
}
