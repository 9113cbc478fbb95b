//! Server-sent events, as far as MCP needs them: the data of each event, bounded. (WHATWG HTML, section 9.2.6.)

/// Takes the bytes of a stream apart.
pub(super) struct Events {
    buffer: Vec<u8>,
    data: Vec<u8>,
    /// Whether the event under way has any data.
    open: bool,
    /// The last line ended with a carriage return: a line feed right after it belongs to it.
    after_return: bool,
    most: usize,
}

/// An event is longer than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

impl Events {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            buffer: Vec::new(),
            data: Vec::new(),
            open: false,
            after_return: false,
            most,
        }
    }

    /// Takes the next bytes; gives back the data of every event that they complete.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' | b'\r' => {
                    self.after_return = byte == b'\r';
                    events.extend(self.line());
                }
                byte => self.buffer.push(byte),
            }
            if self.buffer.len() + self.data.len() > self.most {
                return Err(TooLong);
            }
        }
        Ok(events)
    }

    /// A whole line: the data of an event, when it ends one.
    fn line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.buffer);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.open).then_some(data);
        }
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
        let data = match line.strip_prefix(b"data") {
            Some([]) => Some(&[][..]),
            Some([b':', b' ', rest @ ..] | [b':', rest @ ..]) => Some(rest),
            _ => None,
        };
        if let Some(data) = data {
            if self.open {
                self.data.push(b'\n');
            }
            self.open = true;
            self.data.extend_from_slice(data);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8], step: usize) -> Vec<String> {
        let mut events = Events::new(100);
        text.chunks(step)
            .flat_map(|chunk| events.take(chunk).unwrap())
            .map(|data| String::from_utf8(data).unwrap())
            .collect()
    }

    #[test]
    fn events_are_taken_apart_wherever_the_stream_is_cut() {
        let text = b"\xEF\xBB\xBF: hello\nevent: message\nid: 4\ndata: {\"a\":\ndata: 1}\n\ndata:x\r\n\r\ndata\r\rretry: 5\n\ndata: part";
        for step in 1..text.len() {
            assert_eq!(all(text, step), ["{\"a\":\n1}", "x", ""], "{step}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        assert_eq!(Events::new(100).take(&[b'x'; 200]), Err(TooLong));
        assert_eq!(
            Events::new(100).take(&b"data: xxxxxxxxxx\n".repeat(20)),
            Err(TooLong)
        );
    }

    proptest! {
        #[test]
        fn no_stream_breaks_it(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Events::new(64).take(&bytes);
        }
    }
}
