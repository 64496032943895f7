//! `grpc.health.v1`: serving exactly while the default pair is warm and the daemon is not ending.

use std::sync::Arc;

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use tandem_proto::SERVICE_NAME;

use crate::pair::PairState;
use crate::phase::Phase;
use crate::service::Daemon;

/// The names under which health can be asked for: the whole server's and the service's.
const NAMES: [&str; 2] = ["", SERVICE_NAME];

/// Keeps the reported health up to date until the daemon ends.
pub(crate) async fn follow(daemon: Arc<Daemon>, reporter: HealthReporter) {
    let Ok(pair) = daemon.pair("") else { return };
    let (mut state, mut phase) = (pair.watch(), daemon.lifecycle.watch());
    loop {
        let warm = matches!(*state.borrow_and_update(), PairState::Warm(_));
        let now = *phase.borrow_and_update();
        let status = if warm && now == Phase::Serving {
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
        tokio::select! {
            changed = state.changed() => if changed.is_err() { return },
            changed = phase.changed() => if changed.is_err() { return },
        }
    }
}
