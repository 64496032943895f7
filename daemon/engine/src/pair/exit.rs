//! The layer after which a target leaves to draft for itself without an adapter: named, or measured.

use tandem_model::load::FileError;
use tandem_model::model::{Exit, LanguageModel};
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

use super::{DraftSource, LoadError, PairFiles, PairReport};
use crate::draft::choose_exit;

/// What layers are measured on: plain words of several kinds.
const TEXT: &str = "The old lighthouse stood at the edge of the cliff, and every evening the keeper climbed its stairs to \
    light the lamp. To sort a list of numbers in Python, call `numbers.sort()`. Water boils at 100 degrees Celsius at sea \
    level.";

/// The exit without an adapter, where there is to be one; a measured one is entered into the report.
pub(super) fn layer(
    files: &PairFiles,
    target: &mut dyn LanguageModel,
    tokenizer: &Tokenizer,
    report: &mut PairReport,
) -> Result<Option<Exit>, LoadError> {
    match files.draft {
        DraftSource::Layer(layers) => Ok(Some(Exit::Layer(layers))),
        DraftSource::MeasuredLayer => {
            let mut text = tokenizer.encode(TEXT, SpecialTokens::AsText);
            text.truncate(report.context_length);
            let best = choose_exit(target, &text).map_err(|source| FileError::Model {
                role: "target",
                path: files.target.clone(),
                source,
            })?;
            if let Exit::Layer(layers) = best.exit {
                report.exit_layer = Some(layers);
            }
            Ok(Some(best.exit))
        }
        DraftSource::None | DraftSource::Model(_) | DraftSource::Adapter(_) => Ok(None),
    }
}
