//! Writes small GGUF files.

use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Result, Tensor};

const ALIGNMENT: usize = 32;

/// Builds a GGUF file in memory: version 3, alignment 32, entries in the order of the calls.
#[derive(Clone, Debug, Default)]
pub struct GgufWriter {
    keys: u64,
    metadata: Vec<u8>,
    tensors: u64,
    table: Vec<u8>,
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
        self.keys += 1;
        self.metadata.extend(string(key.as_bytes()));
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend(value);
        self
    }

    /// Adds a tensor, quantized to a format; its candle shape `[out, in]` becomes `[in, out]` in the file.
    ///
    /// # Errors
    /// When candle cannot quantize the tensor: its last dimension must be a multiple of the format's block.
    pub fn tensor(self, name: &str, tensor: &Tensor, format: GgmlDType) -> Result<Self> {
        let quantized = QTensor::quantize(tensor, format)?;
        let shape: Vec<u64> = tensor.dims().iter().rev().map(|&n| n as u64).collect();
        let data = quantized.data()?;
        Ok(self.raw_tensor(name, &shape, number(format), &data))
    }

    /// Adds any tensor by shape (innermost first), number of its format and bytes; all may be wrong on purpose.
    #[must_use]
    pub fn raw_tensor(mut self, name: &str, shape: &[u64], format: u32, data: &[u8]) -> Self {
        self.tensors += 1;
        self.table.extend(string(name.as_bytes()));
        self.table.extend((shape.len() as u32).to_le_bytes());
        shape
            .iter()
            .for_each(|n| self.table.extend(n.to_le_bytes()));
        self.table.extend(format.to_le_bytes());
        self.table.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(data);
        self.data
            .resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// The bytes of the file.
    #[must_use]
    pub fn finish(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend(self.tensors.to_le_bytes());
        file.extend(self.keys.to_le_bytes());
        file.extend(&self.metadata);
        file.extend(&self.table);
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(&self.data);
        file
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    let mut out = (bytes.len() as u64).to_le_bytes().to_vec();
    out.extend(bytes);
    out
}

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
