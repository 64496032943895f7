//! `grpc.health.v1`: serving while requests of the default pair are served, be it after a load, and the daemon is not ending.

use std::sync::Arc;

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use tandem_proto::SERVICE_NAME;

use crate::governor::Stage;
use crate::phase::Phase;
use crate::residency::PairState;
use crate::service::Daemon;

/// The names under which health can be asked for: the whole server's and the service's.
const NAMES: [&str; 2] = ["", SERVICE_NAME];

/// Keeps the reported health up to date until the daemon ends.
pub(crate) async fn follow(daemon: Arc<Daemon>, reporter: HealthReporter) {
    let mut phase = daemon.lifecycle.watch();
    let mut config = daemon.residency.watch_config();
    let (mut memory, mut hanging) = (daemon.memory.subscribe(), daemon.hanging.subscribe());
    loop {
        // Which pair is the default one can change as well.
        config.borrow_and_update();
        let Ok(pair) = daemon.pair("") else { return };
        let mut state = pair.watch();
        let now = *phase.borrow_and_update();
        let refuses = memory.borrow_and_update().stage >= Stage::Refusing;
        let hangs = hanging.borrow_and_update().is_some();
        let serves = serves(&state.borrow_and_update());
        let status = if serves && now == Phase::Serving && !refuses && !hangs {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for name in NAMES {
            reporter.set_service_status(name, status).await;
        }
        if now == Phase::Ended {
            return;
        }
        let changed = tokio::select! {
            changed = state.changed() => changed,
            changed = phase.changed() => changed,
            changed = config.changed() => changed,
            changed = memory.changed() => changed,
            changed = hanging.changed() => changed,
        };
        if changed.is_err() {
            return;
        }
    }
}

/// Whether a request would be served, if need be after a load of its own. One that waits for the first load, or for what
/// takes the place of a pair that is being replaced, has to wait for others.
fn serves(state: &PairState) -> bool {
    match state {
        PairState::Warm(_) | PairState::Cold(None) | PairState::Unloading => true,
        PairState::Cold(Some(_))
        | PairState::Loading
        | PairState::Draining(_)
        | PairState::Removed => false,
    }
}
