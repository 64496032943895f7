//! The whole way from a model file to its prepared weights.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::content::identify;
use crate::error::{Damage, StoreError, Unusable};
use crate::header::Summary;
use crate::image::Image;
use crate::key::{ContentId, Key};
use crate::share::share_out;
use crate::stamps::{self, Stamp};
use crate::store::{Store, make_directory};
use crate::writer::Writer;

/// A model whose prepared weights are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    /// The model file, open for reading.
    pub file: &'a File,
    /// What it is called.
    pub path: &'a Path,
    /// The model's name, for people.
    pub name: &'a str,
    /// How many tensors it has.
    pub tensors: usize,
    /// About how many bytes they take, prepared.
    pub bytes: u64,
    /// The instruction set that they are prepared for.
    pub isa: &'a str,
    /// Version of its kernels' layout.
    pub layout: u32,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The model file is read, to see what it holds.
    Identifying,
    /// Another process or thread prepares the same weights.
    Waiting,
    /// Weights are prepared and written.
    Preparing,
    /// A prepared file is compared with its checksums.
    Checking,
}

/// Prepared weights.
#[derive(Debug)]
pub struct Obtained {
    /// The mapped file.
    pub image: Arc<Image>,
    /// Whether this call made it; otherwise it was there.
    pub made: bool,
    /// What was wrong with the file that was there before.
    pub replaced: Option<Damage>,
}

/// Maps the model's prepared weights; where there are none, or damaged ones, makes them first, on `threads` threads.
/// `pack` prepares the tensor of an index, puts it into the writer, and returns how many bytes of the model it was.
/// `progress` hears the stage, and bytes done of bytes in all.
///
/// # Errors
/// Where the directory cannot be used, there is no room, the model file changes meanwhile, `pack` fails, or the system does
/// not map the file. The directory is then as it was, but for a file that was made and cannot be mapped.
pub fn obtain<E: From<StoreError> + Send>(
    store: &Store,
    model: &Model<'_>,
    threads: NonZeroUsize,
    pack: impl Fn(usize, &Writer) -> Result<u64, E> + Sync,
    progress: &mut dyn FnMut(Stage, u64, u64),
) -> Result<Obtained, E> {
    store.sweep(SystemTime::now());
    let stamp = stamp(model.file, model.path)?;
    let mut identifying = |done| progress(Stage::Identifying, done, stamp.bytes);
    let key = Key {
        content: content(
            store,
            (model.file, model.path),
            &stamp,
            threads,
            &mut identifying,
        )?,
        isa: model.isa.to_owned(),
        layout: model.layout,
    };
    let path = store.path(&key);
    let open = |progress: &mut dyn FnMut(Stage, u64, u64)| {
        Image::open(&path, &key, threads, &mut |done, total| {
            progress(Stage::Checking, done, total);
        })
    };
    let obtained = |image, made, replaced| Obtained {
        image: Arc::new(image),
        made,
        replaced,
    };

    if let Ok(Some(image)) = open(progress) {
        return Ok(obtained(image, false, None));
    }
    let _lock = store.lock(&key, &mut || progress(Stage::Waiting, 0, 0))?;
    // Whoever held the lock before may have made or mended it.
    let damage = match open(progress) {
        Ok(Some(image)) => return Ok(obtained(image, false, None)),
        Ok(None) => None,
        Err(Unusable::Damaged(damage)) => Some(damage),
        Err(Unusable::Refused(error)) => return Err(error.into()),
    };

    store.sweep_parts_of(&path);
    store.make_room(model.bytes, None)?;
    let summary = Summary {
        model: model.name.to_owned(),
        source: model.path.display().to_string(),
        content: key.content.to_string(),
        isa: key.isa.clone(),
        layout: key.layout,
    };
    let writer = Writer::create(&path, summary)?;
    share_out(
        threads,
        model.tensors,
        |index| pack(index, &writer),
        &mut |done| progress(Stage::Preparing, done, model.bytes),
    )?;
    if !self::stamp(model.file, model.path)?.same_content(&stamp) {
        return Err(changed(model.path).into());
    }
    writer.finish()?;
    let image = match open(progress) {
        Ok(Some(image)) => image,
        Ok(None) => return Err(unstable(&path, Damage::Foreign).into()),
        Err(Unusable::Damaged(damage)) => return Err(unstable(&path, damage).into()),
        Err(Unusable::Refused(error)) => return Err(error.into()),
    };
    // It may have come out larger than was thought. It stays in any case: it is in use.
    let _ = store.make_room(0, Some(&path));
    Ok(obtained(image, true, damage))
}

/// Says what the file at `path` holds, by reading it, on `threads` threads, only where that is not known.
///
/// # Errors
/// Where it cannot be read or changes meanwhile, or the store's directory cannot be used.
pub fn content_of(
    store: &Store,
    path: &Path,
    threads: NonZeroUsize,
) -> Result<ContentId, StoreError> {
    let file = File::open(path).map_err(StoreError::io("open", path))?;
    let stamp = stamp(&file, path)?;
    content(store, (&file, path), &stamp, threads, &mut |_| {})
}

fn stamp(file: &File, path: &Path) -> Result<Stamp, StoreError> {
    let meta = file.metadata().map_err(StoreError::io("examine", path))?;
    Ok(Stamp::of(&meta))
}

fn content(
    store: &Store,
    (file, path): (&File, &Path),
    stamp: &Stamp,
    threads: NonZeroUsize,
    progress: &mut dyn FnMut(u64),
) -> Result<ContentId, StoreError> {
    let stamps = store.stamps();
    if let Some(known) = stamps::recall(&stamps, stamp) {
        return Ok(known);
    }
    // Without a directory all would be in vain; better to know before the whole file is read.
    make_directory(&stamps).map_err(StoreError::io("create", &stamps))?;
    let content = identify(file, stamp.bytes, threads, progress);
    let content = content.map_err(StoreError::io("read", path))?;
    let now = self::stamp(file, path)?;
    if !now.same_content(stamp) {
        return Err(changed(path));
    }
    stamps::remember(&stamps, &now, content, SystemTime::now());
    Ok(content)
}

fn changed(path: &Path) -> StoreError {
    StoreError::Changed {
        path: path.to_owned(),
    }
}

fn unstable(path: &Path, damage: Damage) -> StoreError {
    StoreError::Unstable {
        path: path.to_owned(),
        damage,
    }
}
