//! One session over one WebSocket: read, answer, ping, notice silence, leave in order. What frames mean is a [`Dialect`]'s
//! business, which does no input or output and so can be tested frame by frame.
//!
//! Clicks are handed to the intake while reading goes on, at most [`MOST_CLICKS`] at once. Whatever was handed in is finished,
//! even when the connection is lost meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep_until, timeout};

use super::keep::{End, Ended, Seat};
use super::websocket::{Frame, Gone, Outgoing, Socket};
use super::{Answer, Intake};
use crate::ask::Ask;
use crate::channel::AppKey;
use crate::command::Command;
use crate::inbound::Click;
use crate::verify::{Refusal, Verified};

/// Clicks in the hands of the intake at once; beyond, reading waits.
pub const MOST_CLICKS: usize = 64;
/// The platforms give three seconds for the whole answer. A click without an answer by then is shown as failed.
pub const ANSWER_WITHIN: Duration = Duration::from_millis(2_500);
/// How long a platform may take to greet.
const GREETING_WITHIN: Duration = Duration::from_secs(10);
/// A replaced session is read on for this long: the platform may not have noticed yet.
const LINGER: Duration = Duration::from_secs(15);

/// How often to ask whether the peer lives, and when to give it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tempo {
    /// From one ping to the next.
    pub ping_every: Duration,
    /// A peer from which nothing came for this long is gone.
    pub silent_after: Duration,
    /// A peer that does not answer a ping within this is gone, where the dialect tells pongs.
    pub pong_within: Option<Duration>,
}

/// What a frame asks for. `S` is what the answer to a click needs.
#[derive(Debug)]
pub enum Step<S> {
    /// Nothing.
    Nothing,
    /// The platform greeted: the session takes clicks.
    Greeted {
        /// How many connections of the app the platform counts, this one included.
        counted: Option<u32>,
    },
    /// The answer to a ping.
    Pong,
    /// Write this.
    Write(Outgoing),
    /// Somebody pressed a button.
    Click(Box<Verified<Click>>, S),
    /// Somebody spoke to the bot; answered like a click.
    Command(Box<Verified<Command>>, S),
    /// Somebody asked to be shown something; answered like a click.
    Ask(Box<Verified<Ask>>, S),
    /// What came in is refused; this may be written.
    Refused(Refusal, Option<Outgoing>),
    /// The platform will close the session soon.
    Leave,
    /// The session is over.
    End(End),
}

/// What the frames of one platform mean, for one session. No input, no output, no waiting.
pub trait Dialect: Send {
    /// What is kept of a click until it is answered.
    type Slip: Send + 'static;

    /// Whether the platform greets; if not, the session takes clicks as soon as it is open, and is pinged at once.
    const GREETS: bool;

    /// Reads a frame that came in at `now`.
    fn read(&mut self, frame: Frame, now: Instant) -> Step<Self::Slip>;

    /// The answer to a click; `None` in, when there was none in time. `took` is the time since the click was read.
    fn answer(&self, slip: Self::Slip, answer: Option<Answer>, took: Duration) -> Option<Outgoing>;

    /// A ping.
    fn ping(&self) -> Outgoing;

    /// The rhythm, which the platform may change at any time.
    fn tempo(&self) -> Tempo;
}

/// A click in the hands of the intake.
type Pending<S> = BoxFuture<'static, (S, Option<Answer>, Instant)>;

/// Serves an open socket until the session ends.
pub async fn serve<D: Dialect>(
    mut socket: Socket,
    mut dialect: D,
    seat: &Seat,
    app: &AppKey,
    intake: &Arc<dyn Intake>,
) -> Ended {
    let mut clicks = FuturesUnordered::new();
    let end = talk(&mut socket, &mut dialect, seat, app, intake, &mut clicks)
        .await
        .unwrap_or_else(|Gone(why)| End::lost(why));
    seat.down(&end);
    if !matches!(end, End::Lost { .. }) && answer_all(&mut socket, &dialect, &mut clicks).await.is_ok() {
        socket.close().await;
        return end.into();
    }
    drop(socket);
    let rest = async move { while clicks.next().await.is_some() {} };
    Ended {
        end,
        rest: Some(Box::pin(rest)),
    }
}

/// The session while it stands.
async fn talk<D: Dialect>(
    socket: &mut Socket,
    dialect: &mut D,
    seat: &Seat,
    app: &AppKey,
    intake: &Arc<dyn Intake>,
    clicks: &mut FuturesUnordered<Pending<D::Slip>>,
) -> Result<End, Gone> {
    let opened = Instant::now();
    let mut pulse = Pulse {
        heard: opened,
        // Where the platform does not greet, a first ping asks for its wishes.
        pinged: Some(opened).filter(|_| D::GREETS),
        pong_by: None,
        greet_by: Some(opened + GREETING_WITHIN).filter(|_| D::GREETS),
    };
    if !D::GREETS {
        seat.live(None);
    }
    let mut gone_by = None;
    loop {
        let tempo = dialect.tempo();
        let (ping_at, dead_at) = (pulse.ping_at(tempo), pulse.dead_at(tempo));
        tokio::select! {
            biased;
            () = seat.stopping() => return Ok(End::LetGo),
            () = at(gone_by) => return Ok(End::LetGo),
            () = seat.replaced(), if gone_by.is_none() => gone_by = Some(Instant::now() + LINGER),
            Some((slip, answer, since)) = clicks.next(), if !clicks.is_empty() => {
                if let Some(frame) = dialect.answer(slip, answer, since.elapsed()) {
                    socket.send(frame).await?;
                }
            }
            () = sleep_until(dead_at) => {
                return Ok(End::lost(if pulse.greet_by.is_some() { "no_greeting" } else { "silent" }));
            }
            () = sleep_until(ping_at) => {
                pulse.ping(tempo);
                socket.send(dialect.ping()).await?;
            }
            frame = socket.next(), if clicks.len() < MOST_CLICKS => {
                let now = Instant::now();
                pulse.heard = now;
                seat.heard();
                match dialect.read(frame?, now) {
                    Step::Nothing => {}
                    Step::Greeted { counted } => {
                        pulse.greet_by = None;
                        seat.live(counted);
                        let strangers = seat.strangers();
                        if strangers > 0 {
                            tracing::warn!(app = %app.id, strangers, "the platform counts connections of this app that are not ours");
                        }
                    }
                    Step::Pong => pulse.pong_by = None,
                    Step::Write(frame) => socket.send(frame).await?,
                    Step::Click(click, slip) => clicks.push(Box::pin(decide(
                        Arc::clone(intake), app.clone(), *click, slip, now,
                    ))),
                    Step::Command(command, slip) => clicks.push(Box::pin(obey(
                        Arc::clone(intake), app.clone(), *command, slip, now,
                    ))),
                    Step::Ask(ask, slip) => clicks.push(Box::pin(show(
                        Arc::clone(intake), app.clone(), *ask, slip, now,
                    ))),
                    Step::Refused(refusal, frame) => {
                        intake.refused(app, &refusal);
                        if let Some(frame) = frame {
                            socket.send(frame).await?;
                        }
                    }
                    Step::Leave => seat.leave(),
                    Step::End(end) => return Ok(end),
                }
            }
        }
    }
}

async fn decide<S>(
    intake: Arc<dyn Intake>,
    app: AppKey,
    click: Verified<Click>,
    slip: S,
    since: Instant,
) -> (S, Option<Answer>, Instant) {
    let answer = timeout(ANSWER_WITHIN, intake.click(&app, click)).await.ok();
    (slip, answer, since)
}

async fn obey<S>(
    intake: Arc<dyn Intake>,
    app: AppKey,
    command: Verified<Command>,
    slip: S,
    since: Instant,
) -> (S, Option<Answer>, Instant) {
    let answer = timeout(ANSWER_WITHIN, intake.command(&app, command)).await.ok();
    (slip, answer, since)
}

async fn show<S>(
    intake: Arc<dyn Intake>,
    app: AppKey,
    ask: Verified<Ask>,
    slip: S,
    since: Instant,
) -> (S, Option<Answer>, Instant) {
    let answer = timeout(ANSWER_WITHIN, intake.ask(&app, ask)).await.ok();
    (slip, answer, since)
}

/// Finishes what was taken, while the socket takes the answers.
async fn answer_all<D: Dialect>(
    socket: &mut Socket,
    dialect: &D,
    clicks: &mut FuturesUnordered<Pending<D::Slip>>,
) -> Result<(), Gone> {
    while let Some((slip, answer, since)) = clicks.next().await {
        if let Some(frame) = dialect.answer(slip, answer, since.elapsed()) {
            socket.send(frame).await?;
        }
    }
    Ok(())
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

/// The signs of life.
#[derive(Debug)]
struct Pulse {
    heard: Instant,
    pinged: Option<Instant>,
    pong_by: Option<Instant>,
    greet_by: Option<Instant>,
}

impl Pulse {
    /// When the peer is given up unless it is heard.
    fn dead_at(&self, tempo: Tempo) -> Instant {
        [self.pong_by, self.greet_by]
            .into_iter()
            .flatten()
            .fold(self.heard + tempo.silent_after, Instant::min)
    }

    /// When the peer is asked next; the platform may have changed the rhythm since the last time.
    fn ping_at(&self, tempo: Tempo) -> Instant {
        self.pinged.map_or(self.heard, |pinged| pinged + tempo.ping_every)
    }

    fn ping(&mut self, tempo: Tempo) {
        let now = Instant::now();
        self.pinged = Some(now);
        if self.pong_by.is_none() {
            self.pong_by = tempo.pong_within.map(|within| now + within);
        }
    }
}
