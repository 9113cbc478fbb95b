use std::sync::Mutex;

use tokio::sync::oneshot;

use super::*;
use crate::UtcMillis;

fn board(wanted: usize) -> Board {
    Board::new(wanted, Arc::new(|| UtcMillis(7)))
}

fn departure(end: End, failures: u32) -> Departure {
    Departure {
        end,
        was_live: false,
        failures,
    }
}

#[test]
fn waits_double_to_a_bound_are_spread_and_add_to_the_platforms_wish() {
    let most: Chance = Arc::new(|bytes| bytes.fill(0xff));
    let least: Chance = Arc::new(|bytes| bytes.fill(0));
    for (failures, seconds) in [(0, 1), (1, 2), (5, 32), (6, 60), (u32::MAX, 60)] {
        let lost = departure(End::lost("x"), failures);
        assert_eq!(lost.backoff(&most), Duration::from_secs(seconds));
        assert_eq!(lost.backoff(&least), Duration::ZERO);
    }
    let later = End::Later {
        after: Duration::from_secs(30),
        why: "x".into(),
    };
    assert_eq!(departure(later, 0).backoff(&most), Duration::from_secs(31));
}

/// Sessions that greet at once and end when the test says how.
#[derive(Default)]
struct Stage {
    seats: Mutex<Vec<(Seat, Option<oneshot::Sender<End>>)>>,
}

impl Stage {
    async fn play(&self, seat: Seat) -> Ended {
        let (send, end) = oneshot::channel();
        self.seats.lock().unwrap().push((seat.clone(), Some(send)));
        seat.live(None);
        tokio::select! {
            end = end => end.unwrap().into(),
            () = seat.stopping() => End::LetGo.into(),
        }
    }

    fn opened(&self) -> usize {
        self.seats.lock().unwrap().len()
    }

    fn end(&self, index: usize, end: End) {
        let ender = self.seats.lock().unwrap()[index].1.take();
        let _ = ender.unwrap().send(end);
    }
}

async fn later(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_platform_that_takes_and_drops_at_once_is_left_alone_longer_and_longer() {
    let (board, stage) = (board(1), Stage::default());
    let seen = Mutex::new(Vec::new());
    let wait = |departure: &Departure| {
        seen.lock().unwrap().push(departure.failures);
        Duration::from_secs(u64::from(departure.failures))
    };
    let play = async {
        later(1).await;
        for index in 0..3 {
            stage.end(index, End::lost("dropped"));
            later(4).await;
        }
        later(20).await;
        stage.end(3, End::lost("dropped"));
        later(1).await;
    };
    tokio::select! {
        () = keep(&board, Box::pin(std::future::pending()), wait, |seat| stage.play(seat)) => {}
        () = play => {}
    }
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 0], "a steady session forgives");
    let status = board.status();
    assert_eq!((status.connected, status.reconnects, status.wanted), (1, 4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_leaving_session_is_let_go_only_when_enough_others_stand() {
    let (board, stage) = (board(2), Stage::default());
    let play = async {
        later(20).await;
        let old = stage.seats.lock().unwrap()[0].0.clone();
        old.leave();
        old.leave();
        assert_eq!(board.status().connected, 1);
        tokio::time::timeout(Duration::from_mins(1), old.replaced())
            .await
            .unwrap();
        assert_eq!((board.status().connected, stage.opened()), (2, 3));
        stage.end(0, End::LetGo);
        later(60).await;
        assert_eq!(stage.opened(), 3, "its end is no loss");
    };
    tokio::select! {
        () = keep(&board, Box::pin(std::future::pending()), |_| Duration::ZERO, |seat| stage.play(seat)) => {}
        () = play => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_for_good_opens_no_more_and_a_stop_ends_all() {
    let (board, stage) = (board(2), Stage::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let play = async {
        later(1).await;
        stage.end(0, End::Stop { why: "gone".into() });
        later(600).await;
        assert_eq!(stage.opened(), 2);
        assert_eq!(board.status().connected, 1, "what stands is served on");
        assert!(!board.status().healthy());
        stop.send(()).unwrap();
    };
    let stop = Box::pin(async move {
        let _ = stopped.await;
    });
    tokio::join!(
        keep(&board, stop, |_| Duration::ZERO, |seat| stage.play(seat)),
        play
    );
    assert_eq!(board.status().connected, 0);
}
