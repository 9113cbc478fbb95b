//! The load generator: prepared bytes over kept-alive HTTP/1.1 connections, one answer at a time each. It signs nothing and
//! builds nothing while the clock runs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::BenchError;
use super::sample::Sample;

/// Sends every request once over so many connections, and times each from its first byte to the end of its answer.
pub async fn fire(to: SocketAddr, requests: Vec<Vec<u8>>, connections: usize) -> Result<Sample, BenchError> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        let stream = TcpStream::connect(to).await.map_err(BenchError::net)?;
        stream.set_nodelay(true).map_err(BenchError::net)?;
        open.push(stream);
    }
    let waiting = Arc::new(Mutex::new(VecDeque::from(requests)));
    let mut lanes = JoinSet::new();
    let began = Instant::now();
    for stream in open {
        lanes.spawn(lane(stream, Arc::clone(&waiting)));
    }
    let mut times = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        times.extend(lane.map_err(|error| BenchError::other(&error))??);
    }
    Ok(Sample::new(times, began.elapsed()))
}

async fn lane(
    mut stream: TcpStream,
    waiting: Arc<Mutex<VecDeque<Vec<u8>>>>,
) -> Result<Vec<Duration>, BenchError> {
    let mut times = Vec::new();
    let mut answer = Vec::with_capacity(4096);
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(request) = next else {
            return Ok(times);
        };
        let began = Instant::now();
        stream.write_all(&request).await.map_err(BenchError::net)?;
        answer.clear();
        let end = loop {
            match whole(&answer)? {
                Some(end) => break end,
                None => {
                    if stream.read_buf(&mut answer).await.map_err(BenchError::net)? == 0 {
                        return Err(BenchError::Answer("the connection ended".to_owned()));
                    }
                }
            }
        };
        times.push(began.elapsed());
        if answer.len() != end {
            return Err(BenchError::Answer("more than one answer came".to_owned()));
        }
    }
}

/// Where the answer ends, once all of it is there. Only 200 is an answer.
fn whole(answer: &[u8]) -> Result<Option<usize>, BenchError> {
    let Some(head) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&answer[..head])
        .map_err(|_| BenchError::Answer("a head that is no text".to_owned()))?;
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        return Err(BenchError::Answer(status.to_owned()));
    }
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .ok_or_else(|| BenchError::Answer("an answer without a length".to_owned()))?;
    let end = head + 4 + length;
    Ok((answer.len() >= end).then_some(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_to_its_end_and_only_success_counts() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(whole(&answer[..20]).expect("a part"), None);
        assert_eq!(whole(&answer[..answer.len() - 1]).expect("a part"), None);
        assert_eq!(whole(answer).expect("whole"), Some(answer.len()));
        assert!(whole(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n").is_err());
        assert!(whole(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    }
}
