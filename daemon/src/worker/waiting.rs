//! A draft that waits for its engine to be able to take it.

use tandem_engine::pair::LoadedDraft;
use tokio::sync::oneshot;

use super::{Decode, Restored};

/// At most one draft, and who wants to hear of it.
#[derive(Debug, Default)]
pub(super) struct WaitingDraft(Option<(LoadedDraft, oneshot::Sender<Restored>)>);

impl WaitingDraft {
    pub(super) fn put(&mut self, draft: LoadedDraft, done: oneshot::Sender<Restored>) {
        self.0 = Some((draft, done));
    }

    /// Forgets it; who wanted to hear finds that it came to nothing.
    pub(super) fn drop_it(&mut self) {
        self.0 = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Gives it to the engine where that takes it. Returns whether something changed.
    pub(super) fn offer(&mut self, engine: &mut dyn Decode) -> bool {
        let Some((draft, done)) = self.0.take() else {
            return false;
        };
        let answer = match engine.restore_draft(draft) {
            Ok(None) => Ok(()),
            Ok(Some(draft)) => {
                self.0 = Some((draft, done));
                return false;
            }
            Err(error) => Err(error),
        };
        let _gone = done.send(answer);
        true
    }
}
