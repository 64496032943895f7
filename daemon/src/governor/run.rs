//! Looks at memory whenever there is something to see, and does what the governor says.

use std::sync::Arc;
use std::time::Instant;

use tandem_proto::v1;
use tandem_proto::v1::watch_response::Event;
use tokio::sync::watch;

use super::{Governor, Hysteresis, Situation, Stage};
use crate::config::format_bytes;
use crate::convert::{memory_stage, pressure};
use crate::platform::{Pressure, PressureWatch};
use crate::residency::{Admission, Residency};

/// What others may know of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryView {
    pub(crate) pressure: Pressure,
    pub(crate) stage: Stage,
}

/// Governs until the daemon ends. While the system is calm, nothing is given up and no request runs, it sleeps until
/// something of that changes.
pub(crate) async fn govern(residency: Arc<Residency>, view: watch::Sender<MemoryView>) {
    let (mut pressure, _watching) = watch_pressure(&residency);
    let mut activity = residency.activity.watch();
    let began = Instant::now();
    // A reload may change it.
    let hysteresis = || Hysteresis::new(residency.config().memory.restore_after);
    let mut governor = Governor::new(&hysteresis());
    let mut was_busy = false;
    loop {
        let hysteresis = hysteresis();
        let level = *pressure.borrow_and_update();
        let busy = *activity.borrow_and_update() > 0;
        let mut seen = Situation {
            at: began.elapsed(),
            pressure: level,
            footprint: residency.footprint().await.unwrap_or(0),
            budget: residency.budget(),
            restore: residency.shed_bytes(),
        };
        // What requests left behind in the allocator is free, and no shortage.
        let at_rest = was_busy && !busy;
        if at_rest || seen.is_nearly_full() {
            residency.give_back().await;
            seen.footprint = residency.footprint().await.unwrap_or(0);
        }
        was_busy = busy;
        let before = governor.stage();
        let (next, entered) = governor.look(&seen, &hysteresis);
        governor = next;
        let stage = governor.stage();
        let now = MemoryView {
            pressure: level,
            stage,
        };
        let changed = view.send_if_modified(|view| {
            let changed = *view != now;
            *view = now;
            changed
        });
        if changed {
            tell(&residency, now, &seen);
        }
        if entered.is_some() {
            perform(&residency, before, stage).await;
        }
        if stage == Stage::Unloaded {
            unload_idle(&residency).await;
        }
        let watchful = busy || stage != Stage::Free || level != Pressure::Normal;
        let next_look = async {
            if watchful {
                tokio::time::sleep(hysteresis.look).await;
            } else {
                std::future::pending().await
            }
        };
        // Neither begins a new look for every request, nor is left with one to do when all are done.
        let turned = async {
            if busy {
                activity.wait_for(|requests| *requests == 0).await.is_ok()
            } else if watchful {
                std::future::pending().await
            } else {
                activity.changed().await.is_ok()
            }
        };
        tokio::select! {
            () = next_look => {}
            changed = pressure.changed() => if changed.is_err() { return },
            alive = turned => if !alive { return },
        }
    }
}

/// Keeps the levels coming.
struct Watching {
    /// Stays even where the system tells nothing, so that who waits for a level waits, rather than finds an end.
    _sender: watch::Sender<Pressure>,
    _watch: Option<PressureWatch>,
}

/// Returns the level as it changes, for as long as the second value lives.
fn watch_pressure(residency: &Residency) -> (watch::Receiver<Pressure>, Watching) {
    let platform = &residency.platform;
    let level = platform.pressure().unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot read how short of memory the system is");
        Pressure::Normal
    });
    let (sender, receiver) = watch::channel(level);
    let teller = sender.clone();
    let on_change = Box::new(move |level| {
        teller.send_replace(level);
    });
    let watch = platform.watch_pressure(on_change);
    let watch = watch.map_err(|error| {
        tracing::warn!(%error, "the system does not tell when memory gets short; only the own footprint counts");
    });
    let watching = Watching {
        _sender: sender,
        _watch: watch.ok(),
    };
    (receiver, watching)
}

fn tell(residency: &Residency, view: MemoryView, seen: &Situation) {
    tracing::info!(
        pressure = ?view.pressure,
        stage = ?view.stage,
        footprint = format_bytes(seen.footprint),
        budget = format_bytes(seen.budget),
        "memory"
    );
    let event = v1::MemoryChanged {
        pressure: pressure(view.pressure).into(),
        stage: memory_stage(view.stage).into(),
        footprint: seen.footprint,
        budget: seen.budget,
    };
    residency.events.tell("", Event::Memory(event));
}

/// Goes from one stage to another.
async fn perform(residency: &Arc<Residency>, before: Stage, stage: Stage) {
    residency.admit(match stage {
        Stage::Free | Stage::Held => Admission::Open,
        Stage::Shed => Admission::Plain,
        Stage::Refusing | Stage::Unloaded => Admission::Closed,
    });
    residency.worker.hold(stage >= Stage::Held);
    if stage >= Stage::Shed && before < Stage::Shed {
        let shed = residency.shed_drafts().await;
        tracing::info!(
            drafts = shed.drafts,
            freed_bytes = shed.freed,
            freed = format_bytes(shed.freed),
            "shed all drafts"
        );
    }
    if stage >= Stage::Held && before < Stage::Held {
        residency.worker.trim().await;
    }
    if stage < Stage::Shed && before >= Stage::Shed {
        residency.restore_drafts();
    }
}

async fn unload_idle(residency: &Arc<Residency>) {
    for pair in residency.pairs() {
        residency.unload_idle(&pair, "memory").await;
    }
}
