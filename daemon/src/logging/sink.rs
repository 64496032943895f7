//! The thread that carries lines to standard error, and the way to it, which never waits.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::file::Destination;

/// Lines that may wait to be written; further ones are lost, and counted.
const MOST_LINES: usize = 4096;

/// The one of this process.
static SINK: OnceLock<Sink> = OnceLock::new();

enum Item {
    Line(Vec<u8>),
    /// Everything before it has been written when this is dropped.
    Mark(SyncSender<()>),
}

/// Takes whole lines, and is never in the way.
#[derive(Clone)]
pub(super) struct Sink {
    items: SyncSender<Item>,
    lost: Arc<AtomicU64>,
}

/// Starts the thread; none where the system has no thread to give.
pub(super) fn start(own: Option<PathBuf>) -> Option<Sink> {
    let destination = Destination::standard_error(own);
    let sink = spawn(destination).ok()?;
    Some(SINK.get_or_init(|| sink).clone())
}

fn spawn(destination: Destination) -> io::Result<Sink> {
    let (items, receiver) = sync_channel(MOST_LINES);
    let lost = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&lost);
    std::thread::Builder::new()
        .name("tandem-log".to_owned())
        .spawn(move || carry(&receiver, &counted, destination))?;
    Ok(Sink { items, lost })
}

fn carry(items: &Receiver<Item>, lost: &AtomicU64, mut destination: Destination) {
    while let Ok(item) = items.recv() {
        match item {
            Item::Line(line) => destination.write(&line),
            Item::Mark(mark) => drop(mark),
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let line =
                format!("{lost} log lines were lost: standard error took none for a while\n");
            destination.write(line.as_bytes());
        }
    }
}

impl Sink {
    fn put(&self, item: Item) {
        if self.items.try_send(item).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&self, limit: Duration) {
        let (mark, written) = sync_channel(0);
        self.put(Item::Mark(mark));
        let _either_way = written.recv_timeout(limit);
    }
}

impl Write for Sink {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.put(Item::Line(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes a line as it is, after those that were logged.
pub(crate) fn tell(line: &str) {
    let line = format!("{line}\n");
    match SINK.get() {
        Some(sink) => sink.put(Item::Line(line.into_bytes())),
        None => drop(io::stderr().write_all(line.as_bytes())),
    }
}

/// Waits until what was logged so far is written, and at most this long.
pub(crate) fn flush(limit: Duration) {
    if let Some(sink) = SINK.get() {
        sink.flush(limit);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_reader_that_does_not_read_holds_up_nobody_and_hears_how_much_it_missed() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut sink = spawn(Destination::to(writer.into())).unwrap();
        let line = [b'x'; 1023];
        // More than the pipe and the queue take together.
        for _ in 0..MOST_LINES + 200 {
            assert_eq!(sink.write(&[&line[..], b"\n"].concat()).unwrap(), 1024);
        }
        let lost = sink.lost.load(Ordering::Relaxed);
        assert!(lost > 0, "a pipe takes no four megabytes");
        sink.flush(Duration::from_millis(1));
        drop(sink);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text.contains("log lines were lost"), "{} bytes", text.len());
    }

    #[test]
    fn nobody_hears_of_what_cannot_be_written() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let mut sink = spawn(Destination::to(writer.into())).unwrap();
        sink.write_all(b"to nobody\n").unwrap();
        Sink::flush(&sink, Duration::from_secs(60));
        sink.write_all(b"and again\n").unwrap();
    }
}
