//! Room within the limits that the system sets this process (`ulimit -v`, `ulimit -d`). A program that meets such a limit in
//! the midst of some small thing is ended, so what takes much looks first whether it leaves enough for everything else.

use tandem_engine::pair::{LoadOptions, ModelPair, PairFiles};
use tandem_model::load::LoadProgress;

use super::{LoadFailure, Loader, Read, load, size};
use crate::platform;

/// Bytes that are left for everything else: threads, messages, buffers.
pub(crate) const SPARE: u64 = 32 << 20;
/// Bytes for reading headers, of which tokenizers are made.
const HEADERS: u64 = 64 << 20;

impl Loader {
    /// Loads a pair where the process's limits leave room for it, and for everything else beside it.
    pub(super) fn load_within(
        &self,
        files: &PairFiles,
        options: &LoadOptions,
        progress: &mut dyn FnMut(LoadProgress),
    ) -> Result<Read, LoadFailure> {
        require(HEADERS)?;
        // Mapping fails by itself where there is no room, and says so.
        if platform::room().is_some() && options.prepared.is_none() {
            let report = ModelPair::inspect(files, options)?;
            require(size(&report).weights.saturating_add(SPARE))?;
        }
        let read = load(files, options, progress)?;
        require(SPARE)?;
        Ok(read)
    }
}

/// Fails where the process may not have so many bytes more.
pub(super) fn require(needed: u64) -> Result<(), LoadFailure> {
    match platform::room() {
        Some(room) if room < needed => Err(LoadFailure::Room { room, needed }),
        _ => Ok(()),
    }
}
