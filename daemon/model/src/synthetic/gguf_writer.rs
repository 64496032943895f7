//! Writes small GGUF files.

#[cfg(feature = "candle")]
use candle_core::quantized::{GgmlDType, QTensor};
#[cfg(feature = "candle")]
use candle_core::{Result, Tensor};

const ALIGNMENT: usize = 32;

/// Builds a GGUF file in memory: version 3, alignment 32, entries in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    /// Key, number of the value's type, the value's bytes.
    metadata: Vec<(String, u32, Vec<u8>)>,
    tensors: Vec<Written>,
}

/// A tensor of a file.
#[derive(Clone, Debug)]
struct Written {
    name: String,
    shape: Vec<u64>,
    format: u32,
    data: Vec<u8>,
}

impl GgufWriter {
    /// Starts an empty file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an unsigned integer.
    #[must_use]
    pub fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    /// Adds a number.
    #[must_use]
    pub fn f32(self, key: &str, value: f32) -> Self {
        self.raw(key, 6, &value.to_le_bytes())
    }

    /// Adds a truth value.
    #[must_use]
    pub fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, 7, &[value.into()])
    }

    /// Adds a string.
    #[must_use]
    pub fn str(self, key: &str, value: &str) -> Self {
        self.raw(key, 8, &string(value.as_bytes()))
    }

    /// Adds an array of strings.
    #[must_use]
    pub fn strings<S: AsRef<[u8]>>(self, key: &str, values: &[S]) -> Self {
        self.array(key, 8, values.iter().map(|value| string(value.as_ref())))
    }

    /// Adds an array of numbers.
    #[must_use]
    pub fn f32s(self, key: &str, values: &[f32]) -> Self {
        self.array(key, 6, values.iter().map(|value| value.to_le_bytes()))
    }

    /// Adds an array of integers.
    #[must_use]
    pub fn i32s(self, key: &str, values: &[i32]) -> Self {
        self.array(key, 5, values.iter().map(|value| value.to_le_bytes()))
    }

    fn array<T: AsRef<[u8]>>(
        self,
        key: &str,
        kind: u32,
        values: impl ExactSizeIterator<Item = T>,
    ) -> Self {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend((values.len() as u64).to_le_bytes());
        values.for_each(|value| bytes.extend(value.as_ref()));
        self.raw(key, 9, &bytes)
    }

    /// Adds any value by the number of its type and its bytes in the file; both may be wrong on purpose.
    #[must_use]
    pub fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.metadata.push((key.to_owned(), kind, value.to_vec()));
        self
    }

    /// All keys, each with the number of its type and its bytes.
    pub fn entries(&self) -> impl Iterator<Item = (&str, u32, &[u8])> {
        let entries = self.metadata.iter();
        entries.map(|(key, kind, value)| (key.as_str(), *kind, value.as_slice()))
    }

    /// Takes a key out.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.metadata.retain(|(own, ..)| own != key);
        self
    }

    /// All tensors: their names, shapes and bytes.
    pub fn tensors(&self) -> impl Iterator<Item = (&str, &[u64], &[u8])> {
        let tensors = self.tensors.iter();
        tensors.map(|own| (own.name.as_str(), own.shape.as_slice(), own.data.as_slice()))
    }

    /// Takes a tensor out.
    #[must_use]
    pub fn without_tensor(mut self, name: &str) -> Self {
        self.tensors.retain(|own| own.name != name);
        self
    }

    /// Gives a tensor's bytes to be changed.
    #[must_use]
    pub fn with_changed(mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        if let Some(own) = self.tensors.iter_mut().find(|own| own.name == name) {
            change(&mut own.data);
        }
        self
    }

    /// Adds a tensor, quantized by candle to a format; its candle shape `[out, in]` becomes `[in, out]` in the file.
    ///
    /// # Errors
    /// When candle cannot quantize the tensor: its last dimension must be a multiple of the format's block.
    #[cfg(feature = "candle")]
    pub fn tensor(self, name: &str, tensor: &Tensor, format: GgmlDType) -> Result<Self> {
        let quantized = QTensor::quantize(tensor, format)?;
        let shape: Vec<u64> = tensor.dims().iter().rev().map(|&n| n as u64).collect();
        let data = quantized.data()?;
        Ok(self.raw_tensor(name, &shape, number(format), &data))
    }

    /// Adds any tensor by shape (innermost first), number of its format and bytes; all may be wrong on purpose.
    #[must_use]
    pub fn raw_tensor(mut self, name: &str, shape: &[u64], format: u32, data: &[u8]) -> Self {
        self.tensors.push(Written {
            name: name.to_owned(),
            shape: shape.to_vec(),
            format,
            data: data.to_vec(),
        });
        self
    }

    /// The bytes of the file.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.metadata.len() as u64).to_le_bytes());
        for (key, kind, value) in &self.metadata {
            file.extend(string(key.as_bytes()));
            file.extend(kind.to_le_bytes());
            file.extend(value);
        }
        let mut offset = 0;
        for tensor in &self.tensors {
            file.extend(string(tensor.name.as_bytes()));
            file.extend((tensor.shape.len() as u32).to_le_bytes());
            for extent in &tensor.shape {
                file.extend(extent.to_le_bytes());
            }
            file.extend(tensor.format.to_le_bytes());
            file.extend((offset as u64).to_le_bytes());
            offset += tensor.data.len().next_multiple_of(ALIGNMENT);
        }
        for tensor in &self.tensors {
            file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
            file.extend(&tensor.data);
        }
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

#[cfg(feature = "candle")]
fn number(format: GgmlDType) -> u32 {
    match format {
        GgmlDType::F32 => 0,
        GgmlDType::F16 => 1,
        GgmlDType::Q4_0 => 2,
        GgmlDType::Q4_1 => 3,
        GgmlDType::Q5_0 => 6,
        GgmlDType::Q5_1 => 7,
        GgmlDType::Q8_0 => 8,
        GgmlDType::Q8_1 => 9,
        GgmlDType::Q2K => 10,
        GgmlDType::Q3K => 11,
        GgmlDType::Q4K => 12,
        GgmlDType::Q5K => 13,
        GgmlDType::Q6K => 14,
        GgmlDType::Q8K => 15,
        GgmlDType::BF16 => 30,
    }
}
