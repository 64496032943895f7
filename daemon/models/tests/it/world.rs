//! A hub, an empty cache and a store between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tandem_models::{Event, ModelRef, PullError, Store, StoreOptions};
use tempfile::TempDir;

use crate::hub::{FakeHub, REPO};

pub(crate) struct World {
    pub(crate) hub: FakeHub,
    pub(crate) options: StoreOptions,
    _dir: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("there is room for tests");
        let hub = FakeHub::start();
        let options = StoreOptions {
            hub_cache: dir.path().join("hub"),
            models_dir: dir.path().join("models"),
            home: Some(dir.path().to_owned()),
            endpoint: hub.endpoint(),
            token: None,
            proxy: None,
            no_proxy: Vec::new(),
            patience: Duration::from_secs(60),
            offline: false,
            python: PathBuf::from("/nonexistent/python3"),
        };
        Self {
            hub,
            options,
            _dir: dir,
        }
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.options.clone())
    }

    pub(crate) fn locate(&self, model: &str) -> Option<PathBuf> {
        self.store()
            .locate(&parse(model))
            .expect("nothing is ambiguous")
    }

    /// Pulls and returns what was reported too, in the words of [`tell`].
    pub(crate) fn pull(&self, model: &str) -> (Result<PathBuf, PullError>, Vec<String>) {
        let mut told = Vec::new();
        let result = self.store().pull(&parse(model), &mut |event: Event<'_>| {
            told.push(tell(&event))
        });
        (result, told)
    }

    /// The folder of the test repository in the cache.
    pub(crate) fn repo_dir(&self) -> PathBuf {
        self.options
            .hub_cache
            .join(format!("models--{}", REPO.replace('/', "--")))
    }
}

pub(crate) fn parse(model: &str) -> ModelRef {
    model.parse().expect("the test writes it right")
}

fn tell(event: &Event<'_>) -> String {
    match event {
        Event::Source { .. } => "source".to_owned(),
        Event::SourceFailed { .. } => "source failed".to_owned(),
        Event::Waiting { .. } => "waiting".to_owned(),
        Event::Started { done_bytes, .. } => format!("started at {done_bytes}"),
        Event::Advanced { .. } => "advanced".to_owned(),
        Event::Retrying { .. } => "retrying".to_owned(),
        Event::TokenRefused { .. } => "token refused".to_owned(),
        Event::Kept { .. } => "kept".to_owned(),
        Event::Finished => "finished".to_owned(),
        _ => "something new".to_owned(),
    }
}

/// The names of the files below `folder`, links included, sorted.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            names.extend(files(&path));
        } else {
            names.push(entry.file_name().display().to_string());
        }
    }
    names.sort();
    names
}

/// Bytes that no two places of a file have in common.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(len).collect()
}
