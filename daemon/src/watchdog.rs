//! Notices when the engine hangs, and says where.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::sync::watch;

use crate::residency::Residency;

/// How often it looks at most, and at least while requests run.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_secs(1)];

/// Watches until the daemon ends, and says in `hanging` what has been going on for too long, where something has. It
/// sleeps while no request runs.
pub(crate) async fn watch(residency: Arc<Residency>, hanging: watch::Sender<Option<String>>) {
    let mut activity = residency.activity.watch();
    loop {
        // What hung may end together with the last request.
        let hangs = hanging.borrow().is_some();
        let busy = activity.wait_for(|requests| hangs || *requests > 0);
        if busy.await.is_err() {
            return;
        }
        let limit = residency.config().server.hang_after;
        tokio::time::sleep((limit / 4).clamp(LOOKS[0], LOOKS[1])).await;
        let found = residency.worker.progress().hanging(Instant::now(), limit);
        let pair = found.as_ref().map(|doing| doing.pair().to_owned());
        let place = found.map(|doing| doing.to_string());
        let changed = hanging.send_if_modified(|before| {
            let changed = *before != place;
            before.clone_from(&place);
            changed
        });
        if !changed {
            continue;
        }
        match &place {
            Some(place) => {
                tracing::error!(place, limit_s = limit.as_secs_f64(), "the engine hangs");
            }
            None => tracing::info!("the engine goes on"),
        }
        let event = v1::Hanging {
            r#where: place.unwrap_or_default(),
        };
        let pair = pair.unwrap_or_default();
        residency.events.tell(&pair, Event::Hanging(event));
    }
}
