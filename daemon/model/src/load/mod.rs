//! One file on its way into memory: checked by its header before a weight is read, then loaded, prepared weights first.

mod error;
mod exit;
mod file;
mod prepare;
mod summary;

pub use error::FileError;
pub use exit::ExitFile;
pub use file::{LoadedModel, ModelFile, ModelOptions};
pub use prepare::PreparedOptions;
pub use summary::{LoadProgress, LoadStage, ModelSummary, WeightSource};
pub use tandem_prepared::{Damage as WeightsDamage, MappedWeights};
