//! What is left of a body when its answer is ready. A server that answers and closes while the client still sends resets the
//! connection, and most clients then see no answer at all; a host would take that as consent. So the rest is read and thrown
//! away first, up to a bound in bytes and in time.
//!
//! It knows neither routes nor answers.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody as _};
use axum::extract::Request;
use axum::http::header;
use futures_util::{Stream, StreamExt as _};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The most that is thrown away, in bytes; far more than an honest client sends by mistake.
const MOST: usize = 16 * 1024 * 1024;
/// How long it may take.
const WITHIN: Duration = Duration::from_secs(1);

/// Where a body comes back to when its reader is done with it.
#[derive(Debug)]
pub struct Rest(Option<oneshot::Receiver<BodyDataStream>>);

/// Lends the body of a request to whoever handles it. A client that waits for leave to send (`Expect`) sends nothing that
/// would have to be thrown away.
pub fn lend(request: Request) -> (Request, Rest) {
    if request.body().is_end_stream() || request.headers().contains_key(header::EXPECT) {
        return (request, Rest(None));
    }
    let (back, rest) = oneshot::channel();
    let request = request.map(|body| {
        Body::from_stream(Lent {
            left: Some(body.into_data_stream()),
            back: Some(back),
        })
    });
    (request, Rest(Some(rest)))
}

impl Rest {
    /// Reads what nobody read, within the bounds. To be called when the answer is ready.
    pub async fn discard(self) {
        self.discard_within(WITHIN).await;
    }

    async fn discard_within(self, within: Duration) {
        let Some(mut left) = self.0.and_then(|mut back| back.try_recv().ok()) else {
            return;
        };
        let _ = timeout(within, async {
            let mut taken = 0;
            while let Some(Ok(chunk)) = left.next().await {
                taken += chunk.len();
                if taken > MOST {
                    return;
                }
            }
        })
        .await;
    }
}

/// A body that goes back when it is dropped before its end.
struct Lent {
    left: Option<BodyDataStream>,
    back: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for Lent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(left) = &mut self.left else {
            return Poll::Ready(None);
        };
        let item = ready!(left.poll_next_unpin(context));
        if !matches!(item, Some(Ok(_))) {
            self.left = None;
        }
        Poll::Ready(item)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(left), Some(back)) = (self.left.take(), self.back.take()) {
            // Nobody waits for it any more: the request was given up.
            let _ = back.send(left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::stream;

    use super::*;

    /// A request of so many chunks of 64 KiB, and how many of them were taken.
    fn sends(chunks: usize) -> (Request, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        let sent = stream::repeat_with(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 64 * 1024]))
        });
        (Request::new(Body::from_stream(sent.take(chunks))), taken)
    }

    #[tokio::test]
    async fn what_nobody_read_is_thrown_away_within_bounds() {
        for (chunks, read, expected) in [(40, 0, 40), (40, 3, 40), (10_000, 0, MOST / (64 * 1024) + 1)] {
            let (request, taken) = sends(chunks);
            let (request, rest) = lend(request);
            let mut body = request.into_body().into_data_stream();
            for _ in 0..read {
                body.next().await.unwrap().unwrap();
            }
            drop(body);
            assert_eq!(taken.load(Ordering::Relaxed), read);
            rest.discard().await;
            assert_eq!(taken.load(Ordering::Relaxed), expected);
        }
    }

    #[tokio::test]
    async fn who_sends_nothing_more_holds_nobody_up() {
        let never = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let (request, rest) = lend(Request::new(never));
        drop(request);
        let patience = Duration::from_secs(10);
        let discarded = timeout(patience, rest.discard_within(Duration::ZERO)).await;
        assert!(discarded.is_ok());
    }

    #[tokio::test]
    async fn a_reader_gets_all_and_leave_to_send_is_not_given() {
        let (request, rest) = lend(sends(2).0);
        let all = axum::body::to_bytes(request.into_body(), usize::MAX)
            .await
            .unwrap();
        assert_eq!(all.len(), 128 * 1024);
        rest.discard().await;

        let (mut request, taken) = sends(2);
        request
            .headers_mut()
            .insert(header::EXPECT, "100-continue".parse().unwrap());
        let (request, rest) = lend(request);
        drop(request);
        rest.discard().await;
        assert_eq!(taken.load(Ordering::Relaxed), 0);
    }
}
