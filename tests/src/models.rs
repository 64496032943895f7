//! The default pair's files, fetched once into the ordinary cache.

use std::path::PathBuf;
use std::sync::LazyLock;

use tandem_models::{DEFAULT_DRAFT, DEFAULT_TARGET, Event, Store};

/// Files of the default pair.
#[derive(Clone, Debug)]
pub struct PairFiles {
    /// The target.
    pub target: PathBuf,
    /// The draft.
    pub draft: PathBuf,
}

/// Returns the default pair's files, and fetches the target where it is missing. The store has a lock for that, so test
/// processes may do so at the same time.
///
/// # Panics
/// When no source has the target; the message names each one that was tried.
pub fn default_pair() -> &'static PairFiles {
    static FILES: LazyLock<PairFiles> = LazyLock::new(|| PairFiles {
        target: pull(DEFAULT_TARGET),
        draft: pull(DEFAULT_DRAFT),
    });
    &FILES
}

fn pull(model: &str) -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows its own file");
    let bundled = tests
        .parent()
        .expect("a file has a directory")
        .join("tandem-test-models");
    let store = Store::from_env(bundled).expect("a home directory or HF_HOME is set");
    let reference = model.parse().expect("the default names are valid");
    let mut report = |event: Event<'_>| {
        if let Event::Source { name } | Event::SourceFailed { name, .. } = event {
            eprintln!("fetching {model}: {name}");
        }
    };
    store
        .pull(&reference, &mut report)
        .unwrap_or_else(|error| panic!("the default pair is needed: {error}"))
}
