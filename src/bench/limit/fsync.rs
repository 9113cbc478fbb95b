//! L1: what the disk takes to make 4 KiB last.

use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use crate::bench::BenchError;
use crate::bench::sample::Sample;

/// Appends so many pages of 4 KiB, each made to last before the next.
pub async fn appends(dir: &Path, pages: usize) -> Result<Sample, BenchError> {
    let path = dir.join("fsync.raw");
    let timed = tokio::task::spawn_blocking(move || -> std::io::Result<Sample> {
        let mut file = std::fs::File::create(&path)?;
        let page = [0x5a_u8; 4096];
        let mut times = Vec::with_capacity(pages);
        let began = Instant::now();
        for _ in 0..pages {
            let start = Instant::now();
            file.write_all(&page)?;
            file.sync_data()?;
            times.push(start.elapsed());
        }
        let took = began.elapsed();
        drop(file);
        std::fs::remove_file(&path)?;
        Ok(Sample::new(times, took))
    });
    timed
        .await
        .map_err(|error| BenchError::other(&error))?
        .map_err(BenchError::file)
}
