//! One fetch for all, ahead of the end, never in a hot loop.

use std::future::{Ready, ready};
use std::sync::atomic::AtomicUsize;

use gatepost_channel::Failure;

use super::*;
use crate::fixture::secret;

const START: UtcMillis = UtcMillis(1_795_953_600_000);

fn after(seconds: u64) -> UtcMillis {
    START.plus(Duration::from_secs(seconds))
}

fn fetched(token: &str, life: Option<u64>) -> Ready<Result<Fresh, CallError>> {
    ready(Ok(Fresh {
        token: secret(token),
        life: life.map(Duration::from_secs),
    }))
}

fn failed() -> Ready<Result<Fresh, CallError>> {
    ready(Err(CallError::NotAsked("no connection")))
}

async fn held(cache: &TokenCache, at: UtcMillis) -> String {
    let none = || async { panic!("nothing is to be fetched") };
    cache.get(at, none).await.unwrap().expose().to_owned()
}

#[tokio::test]
async fn a_token_is_renewed_when_less_than_half_an_hour_is_left() {
    let cache = TokenCache::default();
    cache.get(START, || fetched("t-1", Some(7200))).await.unwrap();
    assert_eq!(held(&cache, after(5399)).await, "t-1");
    let renewed = cache
        .get(after(5400), || fetched("t-2", Some(7200)))
        .await
        .unwrap();
    assert_eq!(renewed.expose(), "t-2");
}

#[tokio::test]
async fn odd_lives_do_not_loop() {
    for life in [None, Some(1), Some(60), Some(1800), Some(u64::MAX)] {
        let cache = TokenCache::default();
        cache.get(START, || fetched("t-1", life)).await.unwrap();
        assert_eq!(held(&cache, after(59)).await, "t-1", "{life:?}");
        let late = cache.get(after(7200), || fetched("t-2", life)).await.unwrap();
        assert_eq!(late.expose(), "t-2", "{life:?}");
    }
}

#[tokio::test]
async fn a_living_token_serves_on_when_it_cannot_be_renewed() {
    let cache = TokenCache::default();
    cache.get(START, || fetched("t-1", Some(7200))).await.unwrap();
    let served = cache.get(after(5400), failed).await.unwrap();
    assert_eq!(served.expose(), "t-1");
    assert_eq!(
        held(&cache, after(5459)).await,
        "t-1",
        "the next try waits a minute"
    );
    assert!(
        cache.get(after(7200), failed).await.is_err(),
        "a dead one does not"
    );
}

#[tokio::test]
async fn only_the_refused_token_is_dropped() {
    let cache = TokenCache::default();
    cache.get(START, || fetched("t-2", Some(7200))).await.unwrap();
    cache.drop_refused(&secret("t-1")).await;
    assert_eq!(held(&cache, START).await, "t-2");
    cache.drop_refused(&secret("t-2")).await;
    let next = cache.get(START, || fetched("t-3", Some(7200))).await.unwrap();
    assert_eq!(next.expose(), "t-3");
}

#[tokio::test]
async fn who_waits_shares_the_one_fetch_and_its_failure() {
    let cache = TokenCache::default();
    let count = AtomicUsize::new(0);
    let slow = |result: bool| {
        let (cache, count) = (&cache, &count);
        async move {
            cache
                .get(START, || async {
                    count.fetch_add(1, Ordering::SeqCst);
                    tokio::task::yield_now().await;
                    if result {
                        fetched("t-1", Some(7200)).await
                    } else {
                        failed().await
                    }
                })
                .await
        }
    };
    let (a, b, c) = tokio::join!(slow(false), slow(false), slow(false));
    assert!(a.is_err() && b.is_err() && c.is_err());
    assert_eq!(
        count.load(Ordering::SeqCst),
        1,
        "a failure is shared by who waited for it"
    );
    assert!(matches!(a.unwrap_err().failure(), Failure::Retry { .. }));

    let (a, b) = tokio::join!(slow(true), slow(true));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(
        count.load(Ordering::SeqCst),
        2,
        "who comes later tries again, once"
    );
}
