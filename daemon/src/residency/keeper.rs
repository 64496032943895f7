//! Unloads pairs that nobody has asked for in a while.

use std::sync::Arc;
use std::time::Instant;

use super::Residency;

/// Keeps time for all pairs until the daemon ends. It sleeps until the next one is due, or something happens.
pub(crate) async fn keep(residency: Arc<Residency>) {
    let mut activity = residency.activity.watch();
    loop {
        activity.borrow_and_update();
        let mut next: Option<Instant> = None;
        for pair in residency.pairs() {
            let Some(due) = pair.unload_due() else {
                continue;
            };
            if due <= Instant::now() {
                residency.unload_idle(&pair, "idle").await;
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        let due = async {
            match next {
                Some(moment) => tokio::time::sleep_until(moment.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = due => {}
            changed = activity.changed() => if changed.is_err() { return },
            () = residency.changed.notified() => {}
        }
    }
}
