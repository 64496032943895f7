//! Out-of-band data on a socket is what poll(2) reports as POLLPRI besides triggers, and tests can send it.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, channel};

use rustix::net::{RecvFlags, SendFlags, recv, send};
use tempfile::TempDir;

use super::*;

const LIMIT: Duration = Duration::from_secs(60);

/// A source of a level, and the two ends to make it ready and quiet.
struct Stalls {
    sender: TcpStream,
    receiver: TcpStream,
    /// A group whose limit is reached, so that stalls count as they are told.
    _full: TempDir,
}

impl Stalls {
    fn source(level: Pressure) -> (Source, Self) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let receiver = listener.accept().unwrap().0;
        let file = File::from(OwnedFd::from(receiver.try_clone().unwrap()));
        let full = tempfile::tempdir().unwrap();
        for (name, text) in [("max", "100"), ("current", "100"), ("stat", "anon 100")] {
            std::fs::write(full.path().join(format!("memory.{name}")), text).unwrap();
        }
        let space = Space::Group(Group::find(full.path(), "0::/").unwrap());
        (
            Source::Trigger(file, level, space),
            Self {
                sender,
                receiver,
                _full: full,
            },
        )
    }

    fn begin(&self) {
        send(&self.sender, b"!", SendFlags::OOB).unwrap();
    }

    fn end(&self) {
        recv(&self.receiver, &mut [0; 1], RecvFlags::OOB).unwrap();
    }
}

fn heard(sources: Vec<Source>, hold: Duration) -> (PressureWatch, Receiver<Pressure>) {
    let (tell, heard) = channel();
    let watch = watch(
        sources,
        hold,
        Box::new(move |level| {
            // The test may have heard enough.
            let _gone = tell.send(level);
        }),
    );
    (watch.unwrap(), heard)
}

#[test]
fn stalls_are_told_and_their_end_too() {
    let (source, stalls) = Stalls::source(Pressure::Critical);
    let (watch, heard) = heard(vec![source], Duration::from_millis(20));
    stalls.begin();
    assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Critical));
    stalls.end();
    assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Normal));
    drop(watch);
    // The thread drops the sender when it ends.
    assert!(heard.recv_timeout(LIMIT).is_err());
}

#[test]
fn the_higher_level_counts() {
    let (some, warn) = Stalls::source(Pressure::Warn);
    let (full, critical) = Stalls::source(Pressure::Critical);
    let (watch, heard) = heard(vec![some, full], LIMIT);
    warn.begin();
    assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Warn));
    critical.begin();
    assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Critical));
    warn.end();
    critical.end();
    drop(watch);
    assert!(heard.recv_timeout(LIMIT).is_err(), "nothing else was told");
}

#[test]
fn counts_of_a_group_are_told_apart_from_what_was_before() {
    let root = tempfile::tempdir().unwrap();
    let write = |text: &str| std::fs::write(root.path().join("memory.events"), text).unwrap();
    let limits = || Source::limits(Group::find(root.path(), "0::/").unwrap());
    assert!(limits().is_none(), "no limits, no counts");
    write("high 7\nmax 0\noom 0\n");
    let mut source = limits().unwrap();
    assert_eq!(source.look().unwrap(), Pressure::Normal);
    write("high 8\nmax 0\noom 0\n");
    assert_eq!(source.look().unwrap(), Pressure::Warn);
    write("high 8\nmax 1\noom 1\n");
    assert_eq!(source.look().unwrap(), Pressure::Critical);
    assert_eq!(source.look().unwrap(), Pressure::Normal);
}
