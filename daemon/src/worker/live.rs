//! A request inside an engine, and how it ends.

use std::time::Instant;

use tandem_engine::{FinishReason, RequestStats};
use tonic::Status;

use super::Job;
use crate::errors;
use crate::record::{Outcome, Record};
use crate::replies::{Finished, Sink};
use crate::residency::{Lease, Reservation};

/// A request inside the engine.
pub(super) struct Live {
    pub(super) record: Record,
    pub(super) sink: Sink,
    pub(super) hold: Hold,
    /// Number by arrival, until it runs.
    pub(super) waits: Option<u64>,
}

/// What a request holds while it is in the engine. It goes before the client hears of the end, so that it finds room, and
/// nobody left, when it asks at once.
pub(super) struct Hold {
    pub(super) _reservation: Reservation,
    pub(super) _lease: Lease,
}

impl Live {
    pub(super) fn fail(self, status: Status) {
        let Self {
            record, sink, hold, ..
        } = self;
        record.end(Outcome::Failed(status.code()), None);
        drop(hold);
        sink.fail(status);
    }

    pub(super) fn finish(self, reason: FinishReason, stats: RequestStats, now: Instant) {
        let Self {
            record, sink, hold, ..
        } = self;
        let times = record.times(now);
        let logged = match reason {
            FinishReason::StopToken(_) => "stop_token",
            FinishReason::StopString(_) => "stop_string",
            FinishReason::Length => "length",
            FinishReason::TimeLimit => "time_limit",
        };
        record.end(Outcome::Finished(logged), Some(&stats));
        drop(hold);
        sink.finish(Finished {
            reason,
            stats,
            times,
        });
    }
}

/// Answers a request whose pair was lost on its way here.
pub(super) fn refuse_lost(job: Job) {
    let Job {
        record,
        sink,
        reservation,
        lease,
        ..
    } = job;
    record.end(Outcome::Failed(tonic::Code::Internal), None);
    drop((reservation, lease));
    sink.fail(errors::internal(
        "the pair's engine stopped before the request reached it",
    ));
}
