//! Brings drafts back that failed while they worked: for a fault in their files, or for one of ours. A pair goes on plainly
//! meanwhile.

use std::sync::Arc;
use std::time::Instant;

use super::{Admission, Residency};

/// Mends until the daemon ends. It sleeps while no draft is lost, and while nobody asks for anything: a draft that fails again
/// and again is tried only while there are requests.
pub(crate) async fn mend(residency: Arc<Residency>) {
    let mut activity = residency.activity.watch();
    let lost = residency.worker.draft_losses();
    loop {
        let busy = *activity.borrow_and_update() > 0;
        let mut next: Option<Instant> = None;
        // Memory that is short comes first; drafts that come back then bring the lost ones along with the next request.
        if residency.admission() == Admission::Open {
            for (pair, resident) in residency.lost_drafts() {
                let Some(due) = resident.draft_due() else {
                    continue;
                };
                if due <= Instant::now() {
                    // It says itself how it went, and whether it is due again.
                    drop(residency.mend(pair, resident));
                } else {
                    next = Some(next.map_or(due, |next| next.min(due)));
                }
            }
        }
        let waiting = !residency.lost_drafts().is_empty();
        let due = async {
            match next.filter(|_| busy) {
                Some(moment) => tokio::time::sleep_until(moment.into()).await,
                None => std::future::pending().await,
            }
        };
        let asked = async {
            match waiting {
                true => activity.changed().await.is_ok(),
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            () = lost.notified() => {}
            () = due => {}
            alive = asked => if !alive { return },
        }
    }
}
