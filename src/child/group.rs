//! The end of a child: of its process group, and of descendants that left the group for a session of their own.
//!
//! A descendant that left the group can be found only while its ancestors live, so it is looked for before they are ended.

use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tokio::process::Child;

/// A process group that is killed when this is dropped, unless it was ended before.
#[derive(Debug)]
pub struct Group {
    leader: Option<Pid>,
    strays: Vec<Stray>,
}

/// A descendant outside of the group. Its start tells it from a later process with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stray {
    pid: Pid,
    began: u64,
}

impl Group {
    /// The group that this child leads.
    pub fn of(child: &Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            leader: leader.filter(|id| *id > 1).map(Pid::from_raw),
            strays: Vec::new(),
        }
    }

    /// Asks all of it to end, waits at most `grace` for the child, then kills and reaps.
    pub async fn end(&mut self, child: &mut Child, grace: Duration) {
        self.look_for_strays();
        self.send(Signal::SIGTERM);
        self.send(Signal::SIGCONT);
        // The error of a wait means that there is nothing to wait for.
        let _ = tokio::time::timeout(grace, child.wait()).await;
        self.look_for_strays();
        self.kill();
        let _ = child.wait().await;
    }

    /// Kills what is left of it. The child itself is reaped by who waits for it.
    pub fn kill(&mut self) {
        self.send(Signal::SIGKILL);
        self.leader = None;
        self.strays.clear();
    }

    fn send(&self, signal: Signal) {
        // A group or process that is gone already is what was wanted.
        if let Some(leader) = self.leader {
            let _ = killpg(leader, signal);
        }
        for stray in &self.strays {
            if process(stray.pid).is_some_and(|found| found.began == stray.began) {
                let _ = kill(stray.pid, signal);
            }
        }
    }

    /// The group is stopped first: what is stopped starts nobody, so nobody slips away while the list is read.
    fn look_for_strays(&mut self) {
        let Some(leader) = self.leader else { return };
        self.send(Signal::SIGSTOP);
        let all = processes();
        let mut family = vec![leader];
        family.extend(self.strays.iter().map(|stray| stray.pid));
        let mut at = 0;
        while let Some(parent) = family.get(at).copied() {
            let children = all.iter().filter(|process| process.parent == parent);
            let fresh: Vec<&Process> = children
                .filter(|process| !family.contains(&process.pid))
                .collect();
            for process in fresh {
                family.push(process.pid);
                if process.group != leader {
                    self.strays.push(Stray {
                        pid: process.pid,
                        began: process.began,
                    });
                }
            }
            at += 1;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.leader.is_some() {
            self.look_for_strays();
            self.kill();
        }
    }
}

/// A process as `/proc` shows it.
struct Process {
    pid: Pid,
    parent: Pid,
    group: Pid,
    began: u64,
}

/// All processes; none where there is no `/proc`.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| process(Pid::from_raw(pid)))
        .collect()
}

/// Reads `/proc/PID/stat` (proc_pid_stat(5)): the fields after the name, which ends at the last parenthesis.
fn process(pid: Pid) -> Option<Process> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(1);
    let mut number = || fields.next()?.parse().ok().map(Pid::from_raw);
    let (parent, group) = (number()?, number()?);
    // Field 22; field 6 is the first that was not read.
    let began = fields.nth(16)?.parse().ok()?;
    Some(Process {
        pid,
        parent,
        group,
        began,
    })
}
