//! A model of made-up tensors, a directory for it, and what obtaining it came to.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tandem_prepared::{Image, Model, Obtained, Stage, Store, StoreError, Writer, obtain};
use tempfile::TempDir;

pub(crate) const TENSORS: usize = 5;
pub(crate) const THREADS: NonZeroUsize = NonZeroUsize::new(2).expect("two");

/// What a tensor of a model with these bytes is prepared to: nothing that another tensor or model has.
pub(crate) fn tensor(model: &[u8], index: usize) -> Vec<u8> {
    let len = 100 * index + 7;
    let bytes = model.iter().cycle().take(len);
    bytes.map(|byte| byte.wrapping_add(index as u8)).collect()
}

/// A directory with a store and a model file.
pub(crate) struct World {
    directory: TempDir,
    pub(crate) store: Store,
    pub(crate) path: PathBuf,
}

/// What one call did.
pub(crate) struct Run {
    pub(crate) result: Result<Obtained, StoreError>,
    /// How many tensors were packed.
    pub(crate) packed: usize,
    pub(crate) stages: Vec<Stage>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_limit(1 << 20)
    }

    pub(crate) fn with_limit(limit_bytes: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let world = Self {
            store: Store::new(directory.path().join("prepared"), limit_bytes),
            path: directory.path().join("model.gguf"),
            directory,
        };
        fs::write(&world.path, b"a model").unwrap();
        world
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn model(&self) -> Vec<u8> {
        fs::read(&self.path).unwrap()
    }

    /// Obtains the model's weights for an instruction set called `isa`, in version 1 of its layout.
    pub(crate) fn obtain_for(&self, isa: &str) -> Run {
        obtain_with(&self.store, &self.path, isa, &|_| {})
    }

    pub(crate) fn obtain(&self) -> Run {
        self.obtain_for("test")
    }

    /// The prepared files.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let entries = self.store.list().unwrap();
        entries.into_iter().map(|entry| entry.path).collect()
    }

    /// Names of everything in the store's directory that is no directory.
    pub(crate) fn names(&self) -> Vec<String> {
        let Ok(directory) = fs::read_dir(self.store.directory()) else {
            return Vec::new();
        };
        directory
            .map(|item| item.unwrap())
            .filter(|item| item.file_type().unwrap().is_file())
            .map(|item| item.file_name().into_string().unwrap())
            .collect()
    }
}

/// Obtains a model's weights; `before` is called before each tensor is put.
pub(crate) fn obtain_with(
    store: &Store,
    path: &Path,
    isa: &str,
    before: &(dyn Fn(usize) + Sync),
) -> Run {
    let bytes = fs::read(path).unwrap();
    let file = File::open(path).unwrap();
    let (packed, mut stages) = (AtomicUsize::new(0), Vec::new());
    let model = Model {
        file: &file,
        path,
        name: "made up",
        tensors: TENSORS,
        bytes: (0..TENSORS)
            .map(|index| tensor(&bytes, index).len() as u64)
            .sum(),
        isa,
        layout: 1,
    };
    let pack = |index: usize, writer: &Writer| {
        before(index);
        packed.fetch_add(1, Ordering::Relaxed);
        let data = tensor(&bytes, index);
        writer.put(&format!("t{index}"), "Q9", &[data.len() as u64], &data)?;
        Ok(data.len() as u64)
    };
    let result = obtain(store, &model, THREADS, pack, &mut |stage, done, total| {
        assert!(done <= total, "{stage:?}: {done} of {total}");
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
    });
    Run {
        result,
        packed: packed.into_inner(),
        stages,
    }
}

/// Checks every tensor of an image against what the model's are prepared to.
pub(crate) fn assert_right(image: &Image, model: &[u8]) {
    for index in 0..TENSORS {
        let entry = image.tensor(&format!("t{index}")).unwrap();
        let data = image.data(entry).unwrap();
        assert_eq!(data, tensor(model, index), "tensor {index}");
        assert_eq!(data.as_ptr().align_offset(64), 0, "tensor {index}");
    }
}

impl Run {
    /// Checks that it made the file, because of what was wrong with the one before.
    pub(crate) fn assert_made(&self, model: &[u8], because: &str) {
        let obtained = self.result.as_ref().unwrap();
        let damage = obtained.replaced.as_ref().map(ToString::to_string);
        assert!(
            obtained.made && damage.clone().unwrap_or_default().contains(because),
            "made: {}, because {damage:?}, expected {because:?}",
            obtained.made
        );
        assert_eq!(damage.is_none(), because.is_empty());
        assert_right(&obtained.image, model);
    }

    /// Checks that it found the file.
    pub(crate) fn assert_found(&self, model: &[u8]) {
        let obtained = self.result.as_ref().unwrap();
        assert!(!obtained.made && obtained.replaced.is_none());
        assert_eq!(self.packed, 0);
        assert_right(&obtained.image, model);
    }
}

/// Waits until the last change of a file lies so far back that its stamp is trusted.
pub(crate) fn settle(path: &Path) {
    use std::os::unix::fs::MetadataExt;
    let meta = fs::metadata(path).unwrap();
    let changed = UNIX_EPOCH
        + Duration::new(
            meta.ctime().try_into().unwrap(),
            meta.ctime_nsec().try_into().unwrap(),
        );
    let settled = changed + Duration::from_millis(2050);
    while let Ok(left) = settled.duration_since(SystemTime::now()) {
        std::thread::sleep(left);
    }
}
