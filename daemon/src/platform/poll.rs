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
