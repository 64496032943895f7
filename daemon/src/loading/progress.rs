//! How far a load is: for the status and those who watch, and now and then for the log.

use std::sync::Arc;

use tandem_model::load::{LoadProgress, LoadStage};
use tandem_proto::v1::watch_response::Event;

use crate::config::format_bytes;
use crate::convert::load_progress;
use crate::events::Events;
use crate::residency::Pair;

/// Notes every progress with the pair. A stage that a user would wonder about is logged when it begins, and each tenth
/// of a stage for those who look closely.
pub(crate) fn reporter(pair: Arc<Pair>, events: Events) -> impl FnMut(LoadProgress) {
    let mut last = None;
    move |progress| {
        pair.set_load_progress(Some(progress));
        let LoadProgress { role, stage, .. } = progress;
        let tenths = progress.done_bytes.saturating_mul(10) / progress.total_bytes.max(1);
        let now = ((role, stage), tenths);
        if last == Some(now) {
            return;
        }
        events.tell(&pair.name, Event::Loading(load_progress(progress)));
        if last.is_none_or(|(before, _)| before != (role, stage)) {
            if let Some(what) = announcement(stage) {
                tracing::info!(pair = %pair.name, model = role, "{what}");
            }
        } else {
            tracing::debug!(
                pair = %pair.name,
                model = role,
                ?stage,
                "{tenths}0 % of {}",
                format_bytes(progress.total_bytes)
            );
        }
        last = Some(now);
    }
}

fn announcement(stage: LoadStage) -> Option<&'static str> {
    match stage {
        LoadStage::Identifying => Some("the model file is new here: reading it whole, once"),
        LoadStage::Waiting => Some("another process prepares the same weights: waiting for it"),
        LoadStage::Preparing => Some("preparing weights, which later starts will find"),
        LoadStage::Checking | LoadStage::Reading => None,
    }
}
