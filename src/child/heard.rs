//! What is kept of an output: bounded, the beginning or the end of it. The rest is read and dropped, so that no child blocks on
//! a full pipe.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Which part of an output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first bytes.
    Head(usize),
    /// The last bytes.
    Tail(usize),
}

/// An output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    keep: Keep,
    bytes: Vec<u8>,
    more: bool,
}

impl Heard {
    /// Nothing heard yet.
    pub const fn new(keep: Keep) -> Self {
        Self {
            keep,
            bytes: Vec::new(),
            more: false,
        }
    }

    /// What was kept.
    pub fn bytes(&self) -> &[u8] {
        let (Keep::Head(most) | Keep::Tail(most)) = self.keep;
        match self.keep {
            Keep::Head(_) => self.bytes.get(..most).unwrap_or(&self.bytes),
            Keep::Tail(_) => {
                let from = self.bytes.len().saturating_sub(most);
                self.bytes.get(from..).unwrap_or_default()
            }
        }
    }

    /// Whether there was more than was kept.
    pub const fn is_cut(&self) -> bool {
        self.more
    }

    /// Takes the next bytes.
    pub fn take(&mut self, read: &[u8]) {
        match self.keep {
            Keep::Head(most) => {
                let room = most.saturating_sub(self.bytes.len());
                self.more |= read.len() > room;
                self.bytes.extend_from_slice(read.get(..room).unwrap_or(read));
            }
            Keep::Tail(most) => {
                self.more |= self.bytes.len() + read.len() > most;
                let from = read.len().saturating_sub(most);
                self.bytes.extend_from_slice(read.get(from..).unwrap_or_default());
                // Twice the bound before it is moved down, so that each byte is moved once at most.
                if self.bytes.len() > most.saturating_mul(2) {
                    self.bytes.drain(..self.bytes.len() - most);
                }
            }
        }
    }

    /// Reads a pipe to its end, or until `full` is told that the bound is reached and nobody wants the rest.
    pub(super) async fn listen(
        &mut self,
        pipe: Option<impl AsyncRead + Unpin>,
        full: Option<&tokio::sync::Notify>,
    ) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = pipe.read(&mut chunk).await {
            self.take(chunk.get(..count).unwrap_or_default());
            if let (true, Some(full)) = (self.more, full) {
                full.notify_one();
                return;
            }
        }
    }
}
