//! Standard input of a hook: one JSON object. Its end is told by the object itself, since some hosts never close the pipe.

use std::io::Read;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::timeout;

use crate::host::MAX_BODY;

/// How long a host may take to write its question.
pub const WITHIN: Duration = Duration::from_secs(3);
/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// A piece of what was read; nothing more comes after an error or the end.
pub type Chunk = std::io::Result<Vec<u8>>;

/// Why there is no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unheard {
    /// It did not come in time.
    #[error("no whole question came on standard input in time")]
    Late,
    /// The input ended before the object did.
    #[error("standard input ended before the question did")]
    Ended,
    /// It is too large.
    #[error("the question is too large")]
    TooLarge,
    /// It does not start like an object.
    #[error("standard input does not hold a JSON object")]
    NotAnObject,
    /// The system refused.
    #[error("standard input could not be read")]
    Unreadable,
}

/// Reads in a thread of its own, which nobody waits for: a read of a pipe that stays open cannot be taken back.
pub fn pump(mut input: impl Read + Send + 'static) -> Receiver<Chunk> {
    let (sender, chunks) = channel(4);
    let read = move || {
        let mut buffer = vec![0; CHUNK];
        loop {
            let chunk = match input.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => Ok(buffer.get(..read).unwrap_or_default().to_vec()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let last = chunk.is_err();
            if sender.blocking_send(chunk).is_err() || last {
                return;
            }
        }
    };
    // Without a thread the sender is dropped, which reads as an input that ended.
    drop(std::thread::Builder::new().name("stdin".to_owned()).spawn(read));
    chunks
}

/// Everything that came until the object was whole. What stands behind it in the same piece is kept: the strict reader of
/// the server refuses it.
pub async fn object(chunks: Receiver<Chunk>, within: Duration) -> Result<Vec<u8>, Unheard> {
    timeout(within, collect(chunks))
        .await
        .unwrap_or(Err(Unheard::Late))
}

async fn collect(mut chunks: Receiver<Chunk>) -> Result<Vec<u8>, Unheard> {
    let mut body = Vec::new();
    let mut scan = Scan::default();
    while let Some(chunk) = chunks.recv().await {
        let chunk = chunk.map_err(|_| Unheard::Unreadable)?;
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Unheard::TooLarge);
        }
        let whole = scan.takes(&chunk)?;
        body.extend_from_slice(&chunk);
        if whole {
            return Ok(body);
        }
    }
    Err(Unheard::Ended)
}

/// Counts brackets outside of strings: enough to know where an object ends, not whether it is one.
#[derive(Debug, Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Scan {
    /// Whether the object is whole somewhere within this piece.
    fn takes(&mut self, piece: &[u8]) -> Result<bool, Unheard> {
        for &byte in piece {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'{' => self.depth += 1,
                b'[' if self.depth > 0 => self.depth += 1,
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Ok(true);
                    }
                }
                b'"' if self.depth > 0 => self.in_string = true,
                _ if self.depth == 0 && !byte.is_ascii_whitespace() => return Err(Unheard::NotAnObject),
                _ => {}
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A sender that stays open is a pipe that nobody closes.
    async fn heard(pieces: &[&str], stays_open: bool) -> Result<Vec<u8>, Unheard> {
        let (sender, chunks) = channel(pieces.len().max(1));
        for piece in pieces {
            sender.send(Ok(piece.as_bytes().to_vec())).await.unwrap();
        }
        let _open = stays_open.then_some(sender);
        object(chunks, Duration::from_millis(50)).await
    }

    #[tokio::test]
    async fn an_object_ends_by_itself_though_the_pipe_stays_open() {
        for pieces in [
            &["{}"][..],
            &["\n {\"a\"", ":[{\"b\":\"}\\\"", "]\"}]", "}\n"],
            &["{\"a\":\"\\", "\\\"}"],
        ] {
            assert_eq!(heard(pieces, true).await, Ok(pieces.concat().into_bytes()));
        }
    }

    #[tokio::test]
    async fn what_is_no_whole_object_is_told_apart() {
        assert_eq!(heard(&["{\"a\":"], true).await, Err(Unheard::Late));
        assert_eq!(heard(&[], true).await, Err(Unheard::Late));
        assert_eq!(heard(&["{\"a\":"], false).await, Err(Unheard::Ended));
        assert_eq!(heard(&[" "], false).await, Err(Unheard::Ended));
        for other in ["[]", "null", "]", "\u{feff}{}", "hello"] {
            assert_eq!(heard(&[other], true).await, Err(Unheard::NotAnObject), "{other}");
        }
        let long = format!("{{\"a\":\"{}", "x".repeat(MAX_BODY));
        assert_eq!(heard(&[&long], true).await, Err(Unheard::TooLarge));
    }

    #[tokio::test]
    async fn the_pump_hands_on_what_is_read() {
        let body = format!("{{\"a\":\"{}\"}}", "y".repeat(3 * CHUNK)).into_bytes();
        assert_eq!(object(pump(Cursor::new(body.clone())), WITHIN).await, Ok(body));
    }
}
