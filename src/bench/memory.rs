//! How much memory this process holds, where the system tells.

/// Resident bytes; `None` where there is no `/proc`.
pub fn resident() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    of_status(&status)
}

fn of_status(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::of_status;

    #[test]
    fn the_line_is_read() {
        assert_eq!(
            of_status("Name:\tx\nVmRSS:\t   1234 kB\nThreads:\t2\n"),
            Some(1234 * 1024)
        );
        assert_eq!(of_status("Name:\tx\n"), None);
    }
}
