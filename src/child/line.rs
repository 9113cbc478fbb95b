//! Lines of bounded length from a stream.

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Reads lines; what came after a line is kept for the next.
pub struct Lines<R> {
    from: R,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    most: usize,
}

/// Why there is no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLine {
    /// The stream ended, perhaps within a line.
    Ended,
    /// The line is longer than it may be.
    TooLong,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `most` bytes.
    pub const fn new(from: R, most: usize) -> Self {
        Self {
            from,
            buffer: Vec::new(),
            searched: 0,
            most,
        }
    }

    /// The next line without its end. Whoever stops waiting loses nothing: the next call goes on where this one was.
    pub async fn next(&mut self) -> Result<Vec<u8>, NoLine> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(found) = unsearched.iter().position(|byte| *byte == b'\n') {
                let end = self.searched + found;
                if end > self.most {
                    return Err(NoLine::TooLong);
                }
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                self.searched = 0;
                return Ok(line);
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.most {
                return Err(NoLine::TooLong);
            }
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Err(NoLine::Ended),
                Ok(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(text: &[u8], most: usize) -> (Vec<Vec<u8>>, NoLine) {
        let mut lines = Lines::new(text, most);
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(line) => read.push(line),
                Err(why) => return (read, why),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_taken_apart_and_a_partial_one_is_none() {
        let (read, why) = all(b"a\n\nbc\npart", 8).await;
        assert_eq!(read, [b"a".to_vec(), b"".to_vec(), b"bc".to_vec()]);
        assert_eq!(why, NoLine::Ended);
    }

    #[tokio::test]
    async fn a_line_over_the_bound_is_refused_whether_it_ends_or_not() {
        assert_eq!(all(b"12345678\n", 8).await.0.len(), 1);
        assert_eq!(all(b"123456789\n", 8).await.1, NoLine::TooLong);
        assert_eq!(all(&vec![b'x'; 100_000], 8).await.1, NoLine::TooLong);
    }
}
