//! Prepared files, and the notes beside them: what lies in a directory that others can write.

use std::fs::{self, File};
use std::hash::Hasher as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use tandem_fuzz::{TIMES, Target, check};
use tandem_prepared::{Model, Store, StoreError, Writer, obtain};
use tempfile::TempDir;
use twox_hash::XxHash3_64;

use crate::chain;

/// Bytes before the first tensor.
const PREFIX: usize = 64;

/// Why a file was not made: the fuzzer wants to know what is said of the one that is there.
#[derive(Debug, thiserror::Error)]
enum Stopped {
    #[error("it would be made anew")]
    Here,
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[test]
fn prepared_files() {
    let world = World::new();
    let whole = fs::read(&world.file).unwrap();
    let table = u64::from_le_bytes(whole[16..24].try_into().unwrap()) as usize;
    let (tensors, json) = (whole[PREFIX..table].to_vec(), whole[table..].to_vec());
    assert_eq!(
        sealed(&tensors, &json),
        whole,
        "the form of files is another by now"
    );
    let note = fs::read(&world.note).unwrap();
    let target = Target {
        name: "prepared",
        words: &[
            b"TandemPW",
            b"\"tensors\":[",
            b"\"offset\":",
            b"\"bytes\":",
            b"\"checksum\":",
            b"18446744073709551615",
            b"18446744073709551552",
            b"-1",
            b"1e19",
            b"null",
            b"{\"name\":",
            b"\"shape\":[",
            b"[[[[[[[[[[[[[[[[",
            b"\\u0000",
        ],
        // Hashing reads in parts of a fixed size.
        fixed_bytes: 20 << 20,
        times: TIMES,
        seeds: vec![
            [&[0], &whole[..]].concat(),
            [&[1], &json[..]].concat(),
            [&[2], &note[..]].concat(),
        ],
    };
    check(&target, |input| {
        let (first, rest) = input.split_first().unwrap_or((&0, &[]));
        match first % 3 {
            0 => fs::write(&world.file, rest).unwrap(),
            // A table that is read needs the right checksums around it.
            1 => fs::write(&world.file, sealed(&tensors, rest)).unwrap(),
            _ => {
                fs::write(&world.file, &whole).unwrap();
                // One that is read needs its own checksum, on a line of its own.
                let end = rest.iter().position(|&byte| byte == b'\n');
                let json = &rest[..end.unwrap_or(rest.len())];
                let note = [json, format!("\n{:016x}\n", sum(json)).as_bytes()].concat();
                fs::write(&world.note, note).unwrap();
            }
        }
        world.read()
    });
}

/// A directory with one prepared file of one model, and the note on that model.
struct World {
    store: Store,
    model: File,
    file: PathBuf,
    note: PathBuf,
    _directory: TempDir,
}

impl World {
    fn new() -> Self {
        let directory = crate::scratch();
        // Any file: what it holds does not matter, and it is old enough to be noted.
        let model = File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
        let mut world = Self {
            store: Store::new(directory.path(), 1 << 40),
            model,
            file: PathBuf::new(),
            note: PathBuf::new(),
            _directory: directory,
        };
        let made = world.obtain(|index, writer| {
            let name = format!("t{index}");
            writer.put(&name, "Q9", &[index as u64 + 5], &vec![7; index + 5])?;
            Ok(1)
        });
        made.unwrap();
        let only = |directory: &Path| {
            let mut entries = fs::read_dir(directory).unwrap();
            entries.next().unwrap().unwrap().path()
        };
        world.file.clone_from(&world.store.list().unwrap()[0].path);
        world.note = only(&world.store.directory().join("stamps"));
        world
    }

    fn obtain(
        &self,
        pack: impl Fn(usize, &Writer) -> Result<u64, Stopped> + Sync,
    ) -> Result<bool, Stopped> {
        let model = Model {
            file: &self.model,
            path: Path::new("m.gguf"),
            name: "m",
            tensors: 2,
            bytes: 100,
            isa: "fuzz",
            layout: 1,
        };
        let one = NonZeroUsize::MIN;
        obtain(&self.store, &model, one, pack, &mut |_, _, _| {}).map(|obtained| {
            let image = obtained.image;
            for name in ["t0", "t1", ""] {
                if let Some(entry) = image.tensor(name) {
                    let bytes = image.data(entry).expect("a checked file has its tensors");
                    assert_eq!(bytes.len() as u64, entry.bytes);
                }
            }
            image.tensor_bytes() > 0
        })
    }

    /// Reads what lies there, by the list and by the way that a daemon takes.
    fn read(&self) -> String {
        let listed = match self
            .store
            .list()
            .unwrap()
            .first()
            .map(|entry| &entry.summary)
        {
            Some(Ok(_)) => "listed".to_owned(),
            Some(Err(damage)) => chain(damage),
            None => "none".to_owned(),
        };
        match self.obtain(|_, _| Err(Stopped::Here)) {
            Ok(has_tensors) => format!("{listed}, used {has_tensors}"),
            Err(error) => format!("{listed}, {}", chain(&error)),
        }
    }
}

/// Puts a table behind tensors, with the checksums that it needs to be read at all.
fn sealed(tensors: &[u8], json: &[u8]) -> Vec<u8> {
    let mut file = b"TandemPW\x01\0\0\0\0\0\0\0".to_vec();
    file.extend(((PREFIX + tensors.len()) as u64).to_le_bytes());
    file.extend((json.len() as u64).to_le_bytes());
    file.extend(sum(json).to_le_bytes());
    file.resize(56, 0);
    file.extend(sum(&file).to_le_bytes());
    file.extend(tensors);
    file.extend(json);
    file
}

fn sum(bytes: &[u8]) -> u64 {
    let mut hasher = XxHash3_64::new();
    hasher.write(bytes);
    hasher.finish()
}
