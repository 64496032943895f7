//! How pairs and memory are doing, as it is sent.

use std::time::Duration;

use tandem_model::load::{LoadProgress, LoadStage};
use tandem_proto::v1;

use crate::config::KeepAlive;
use crate::governor::Stage;
use crate::platform::Pressure;

/// Writes how far a load is.
pub(crate) fn load_progress(progress: LoadProgress) -> v1::LoadProgress {
    let stage = match progress.stage {
        LoadStage::Identifying => v1::LoadStage::Identifying,
        LoadStage::Waiting => v1::LoadStage::Waiting,
        LoadStage::Preparing => v1::LoadStage::Preparing,
        LoadStage::Checking => v1::LoadStage::Checking,
        LoadStage::Reading => v1::LoadStage::Reading,
    };
    v1::LoadProgress {
        model: progress.role.to_owned(),
        stage: stage.into(),
        done_bytes: progress.done_bytes,
        total_bytes: progress.total_bytes,
    }
}

/// Writes how short of memory the system is.
pub(crate) fn pressure(pressure: Pressure) -> v1::Pressure {
    match pressure {
        Pressure::Normal => v1::Pressure::Normal,
        Pressure::Warn => v1::Pressure::Warn,
        Pressure::Critical => v1::Pressure::Critical,
    }
}

/// Writes what is being done about it.
pub(crate) fn memory_stage(stage: Stage) -> v1::MemoryStage {
    match stage {
        Stage::Free => v1::MemoryStage::Free,
        Stage::Held => v1::MemoryStage::Held,
        Stage::Shed => v1::MemoryStage::Shed,
        Stage::Refusing => v1::MemoryStage::Refusing,
        Stage::Unloaded => v1::MemoryStage::Unloaded,
    }
}

/// Writes how long a pair stays loaded; for ever is negative.
pub(crate) fn keep_alive(keep_alive: KeepAlive) -> prost_types::Duration {
    match keep_alive {
        KeepAlive::For(limit) => super::duration(limit),
        KeepAlive::Forever => prost_types::Duration {
            seconds: -1,
            nanos: 0,
        },
    }
}

/// Reads how long a pair is to stay loaded; `None`: it is no duration.
pub(crate) fn read_keep_alive(wire: prost_types::Duration) -> Option<KeepAlive> {
    match Duration::try_from(wire) {
        Ok(limit) => Some(KeepAlive::For(limit)),
        Err(prost_types::DurationError::NegativeDuration(_)) => Some(KeepAlive::Forever),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keep_alive_goes_there_and_back() {
        for said in [
            KeepAlive::Forever,
            KeepAlive::For(Duration::ZERO),
            KeepAlive::For(Duration::from_millis(90_500)),
        ] {
            assert_eq!(read_keep_alive(keep_alive(said)), Some(said));
        }
    }
}
