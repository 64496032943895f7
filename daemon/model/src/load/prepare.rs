//! Prepared weights of one model: found, made, or done without.

use std::path::PathBuf;
use std::sync::Arc;

use tandem_prepared::{Image, Model, Stage, Store, StoreError, obtain};

use super::file::ModelFile;
use super::{FileError, LoadStage, ModelOptions, WeightSource};
use crate::backend::BackendError;
use crate::backend::cpu::prepared::{self, PrepareError};
use crate::gguf::GgufError;
use crate::hardware::Device;

/// Where prepared weights are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedOptions {
    /// The directory; it is made where it does not exist.
    pub directory: PathBuf,
    /// Most bytes that all files in it may take.
    pub limit_bytes: u64,
}

/// What came of it.
pub(super) struct Prepared {
    /// `None`: the weights have to be read into memory.
    pub(super) image: Option<Arc<Image>>,
    pub(super) source: WeightSource,
    /// What went wrong, where something did.
    pub(super) warning: Option<String>,
}

/// Maps the prepared weights of a model, and makes them first where there are none. Only the CPU's kernels have a form
/// of their own; on other devices there is nothing to prepare. Whatever fails costs memory and time, not the model, unless
/// there is no room in memory.
pub(super) fn prepare(
    file: &ModelFile,
    role: &'static str,
    options: ModelOptions<'_>,
    progress: &mut dyn FnMut(LoadStage, u64, u64),
) -> Result<Prepared, FileError> {
    let without = |warning| Prepared {
        image: None,
        source: WeightSource::Memory,
        warning,
    };
    let (Device::Cpu(threads), Some(place)) = (options.device, options.prepared) else {
        return Ok(without(None));
    };
    let gguf = &file.gguf;
    let in_memory = |why: String| {
        let bytes = file.weight_bytes();
        without(Some(format!(
            "the {role}'s weights, {bytes} bytes, are packed into memory of this process, not mapped from a prepared file: \
             {why}"
        )))
    };
    let store = Store::new(&place.directory, place.limit_bytes);
    let model = Model {
        file: gguf.file(),
        path: gguf.path(),
        name: &file.summary().name,
        tensors: gguf.tensors().len(),
        bytes: file.weight_bytes(),
        isa: prepared::isa_name(),
        layout: prepared::LAYOUT_VERSION,
    };
    let obtained = obtain::<PrepareError>(
        &store,
        &model,
        threads,
        |index, writer| prepared::put(gguf, &gguf.tensors()[index], writer),
        &mut |stage, done, total| progress(stage.into(), done, total),
    );
    let obtained = match obtained {
        Ok(obtained) => obtained,
        // Where there is no room to map them, there is none to read them into.
        Err(PrepareError::Store(source @ StoreError::Unmapped { .. })) => {
            return Err(FileError::Unmapped { role, source });
        }
        // Weights that are no numbers are none in memory either.
        Err(PrepareError::Weights(BackendError::Weights(source @ GgufError::NotFinite { .. }))) => {
            return Err(FileError::File { role, source });
        }
        Err(error) => return Ok(in_memory(error.to_string())),
    };
    if let Err(tensor) = prepared::check(&obtained.image, gguf) {
        return Ok(in_memory(format!(
            "the file has no `{tensor}` as this version takes it; `tandem cache clear --all` removes it"
        )));
    }
    let replaced = obtained.replaced.map(|damage| {
        format!(
            "the prepared weights of the {role} were made anew, because the file could not be used: {damage}"
        )
    });
    Ok(Prepared {
        image: Some(obtained.image),
        source: match obtained.made {
            true => WeightSource::Prepared,
            false => WeightSource::Mapped,
        },
        warning: replaced,
    })
}

impl From<Stage> for LoadStage {
    fn from(stage: Stage) -> Self {
        match stage {
            Stage::Identifying => Self::Identifying,
            Stage::Waiting => Self::Waiting,
            Stage::Preparing => Self::Preparing,
            Stage::Checking => Self::Checking,
        }
    }
}
