//! Waiting for a state, with a limit.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// How long anything may take before a test gives up: much longer than it should take on a slow, busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// Calls `probe` until it returns a value, and returns that.
///
/// # Panics
/// When [`LIMIT`] passes first, naming `what`.
pub async fn eventually<T>(what: &str, mut probe: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + LIMIT;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(
            Instant::now() < end,
            "{what} did not come within {} s",
            LIMIT.as_secs()
        );
        sleep(Duration::from_millis(10)).await;
    }
}
