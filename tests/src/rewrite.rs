//! Model files written again with something changed: the odd files that people have.

use std::fs;
use std::path::{Path, PathBuf};

/// Where tensors begin: at multiples of this.
const ALIGNMENT: usize = 32;

/// A model file in memory.
#[derive(Clone, Debug)]
pub struct Model {
    metadata: Vec<Entry>,
    tensors: Vec<Tensor>,
}

#[derive(Clone, Debug)]
struct Entry {
    key: String,
    /// Number of the value's type in the file.
    kind: u32,
    value: Vec<u8>,
}

/// A tensor of a file.
#[derive(Clone, Debug)]
pub struct Tensor {
    name: String,
    /// Innermost extent first.
    pub shape: Vec<u64>,
    format: u32,
    /// Its data; what pads it in the file may follow.
    pub data: Vec<u8>,
}

/// Reads a file from its front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(bytes);
        self.0 = rest;
        taken
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take(8).try_into().expect("eight bytes"))
    }

    fn size(&mut self) -> usize {
        usize::try_from(self.u64()).expect("it fits memory")
    }

    fn string(&mut self) -> String {
        let bytes = self.size();
        String::from_utf8_lossy(self.take(bytes)).into_owned()
    }

    fn skip_value(&mut self, kind: u32) {
        let fixed = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            8 => self.size(),
            9 => {
                let (kind, count) = (self.u32(), self.u64());
                (0..count).for_each(|_| self.skip_value(kind));
                0
            }
            _ => 8,
        };
        self.take(fixed);
    }
}

impl Model {
    /// Reads a sound model file.
    ///
    /// # Panics
    /// When it cannot be read, or is not sound.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let bytes = fs::read(path).expect("the model can be read");
        let mut from = Reader(&bytes);
        from.take(8);
        let (tensors, keys) = (from.u64(), from.u64());
        let entry = |_| {
            let (key, kind) = (from.string(), from.u32());
            let before = from.0;
            from.skip_value(kind);
            let value = before[..before.len() - from.0.len()].to_vec();
            Entry { key, kind, value }
        };
        let metadata = (0..keys).map(entry).collect();
        let table: Vec<_> = (0..tensors)
            .map(|_| {
                let name = from.string();
                let rank = from.u32();
                let shape: Vec<u64> = (0..rank).map(|_| from.u64()).collect();
                (name, shape, from.u32(), from.size())
            })
            .collect();
        let start = (bytes.len() - from.0.len()).next_multiple_of(ALIGNMENT);
        let data = &bytes[start..];
        let mut begins: Vec<usize> = table.iter().map(|(.., begin)| *begin).collect();
        begins.push(data.len());
        begins.sort_unstable();
        let tensor = |(name, shape, format, begin): (String, Vec<u64>, u32, usize)| {
            let end = begins[begins.partition_point(|other| *other <= begin)];
            Tensor {
                name,
                shape,
                format,
                data: data[begin..end].to_vec(),
            }
        };
        Self {
            metadata,
            tensors: table.into_iter().map(tensor).collect(),
        }
    }

    fn set(mut self, key: &str, kind: u32, value: Vec<u8>) -> Self {
        self.metadata.retain(|entry| entry.key != key);
        let key = key.to_owned();
        self.metadata.push(Entry { key, kind, value });
        self
    }

    /// Sets a string.
    #[must_use]
    pub fn text(self, key: &str, value: &str) -> Self {
        let length = (value.len() as u64).to_le_bytes();
        self.set(key, 8, [&length, value.as_bytes()].concat())
    }

    /// Sets a number with a fraction.
    #[must_use]
    pub fn float(self, key: &str, value: f32) -> Self {
        self.set(key, 6, value.to_le_bytes().to_vec())
    }

    /// Sets a whole number.
    #[must_use]
    pub fn number(self, key: &str, value: u32) -> Self {
        self.set(key, 4, value.to_le_bytes().to_vec())
    }

    /// Takes a key out.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|entry| entry.key != key);
        self
    }

    /// Changes a tensor.
    ///
    /// # Panics
    /// When the model has none of that name.
    #[must_use]
    pub fn change(mut self, name: &str, change: impl FnOnce(&mut Tensor)) -> Self {
        let mut tensors = self.tensors.iter_mut();
        let tensor = tensors.find(|tensor| tensor.name == name);
        change(tensor.unwrap_or_else(|| panic!("there is no tensor {name}")));
        self
    }

    /// Adds a tensor of one dimension.
    #[must_use]
    pub fn floats(mut self, name: &str, values: &[f32]) -> Self {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: vec![values.len() as u64],
            format: 0,
            data: values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect(),
        });
        self
    }

    /// Writes the file.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write(&self, path: PathBuf) -> PathBuf {
        let mut file = b"GGUF".to_vec();
        let string = |file: &mut Vec<u8>, text: &str| {
            file.extend((text.len() as u64).to_le_bytes());
            file.extend(text.as_bytes());
        };
        file.extend(3u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for Entry { key, kind, value } in &self.metadata {
            string(&mut file, key);
            file.extend(kind.to_le_bytes());
            file.extend(value);
        }
        let mut begin = 0;
        for tensor in &self.tensors {
            string(&mut file, &tensor.name);
            file.extend(
                u32::try_from(tensor.shape.len())
                    .expect("few")
                    .to_le_bytes(),
            );
            for extent in &tensor.shape {
                file.extend(extent.to_le_bytes());
            }
            file.extend(tensor.format.to_le_bytes());
            file.extend((begin as u64).to_le_bytes());
            begin += tensor.data.len().next_multiple_of(ALIGNMENT);
        }
        for tensor in &self.tensors {
            file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
            file.extend(&tensor.data);
        }
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        fs::write(&path, file).expect("the model can be written");
        path
    }
}
