//! Watches by looking now and then, where a system tells nothing by itself.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use super::{OnPressure, Pressure, PressureWatch};

/// Reads the level every `interval` and tells of changes.
pub(super) fn watch(
    interval: Duration,
    read: impl Fn() -> io::Result<Pressure> + Send + 'static,
    on_change: OnPressure,
) -> io::Result<PressureWatch> {
    read()?;
    let (alive, ended) = sync_channel::<()>(0);
    thread::Builder::new()
        .name("tandem-pressure".to_owned())
        .spawn(move || {
            let mut last = Pressure::default();
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                if let Ok(level) = read()
                    && level != last
                {
                    last = level;
                    on_change(level);
                }
            }
        })?;
    Ok(PressureWatch::new(move || drop(alive)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc::channel;

    use super::super::psi;
    use super::*;

    #[test]
    fn changes_of_a_file_are_told() {
        const LIMIT: Duration = Duration::from_secs(60);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let stalls = |some: u32, full: u32| {
            let text = format!("some avg10={some}.00 total=1\nfull avg10={full}.00 total=1\n");
            // Whole or not at all: the watch reads at any time.
            fs::write(path.with_extension("new"), text).unwrap();
            fs::rename(path.with_extension("new"), &path).unwrap();
        };
        stalls(0, 0);
        let (tell, heard) = channel();
        let read = {
            let path = path.clone();
            move || psi::level(&path)
        };
        let on_change = Box::new(move |level| {
            let _gone = tell.send(level);
        });
        let watch = watch(Duration::from_millis(5), read, on_change).unwrap();
        stalls(20, 0);
        assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Warn));
        stalls(20, 20);
        assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Critical));
        stalls(0, 0);
        assert_eq!(heard.recv_timeout(LIMIT), Ok(Pressure::Normal));
        drop(watch);
        assert!(heard.recv_timeout(LIMIT).is_err(), "the thread has ended");
    }

    #[test]
    fn what_cannot_be_read_cannot_be_watched() {
        let read = || Err(io::Error::from(io::ErrorKind::NotFound));
        assert!(watch(Duration::from_millis(5), read, Box::new(|_| {})).is_err());
    }
}
