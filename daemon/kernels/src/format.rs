//! The weight formats of GGUF that this backend multiplies with, and their block sizes.

/// A GGUF tensor format. The `IQ` formats have no kernels here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// 32-bit floats.
    F32,
    /// 16-bit IEEE floats.
    F16,
    /// 16-bit brain floats.
    BF16,
    /// 4 bits and a scale per 32 weights.
    Q4_0,
    /// 4 bits, a scale and a minimum per 32 weights.
    Q4_1,
    /// 5 bits and a scale per 32 weights.
    Q5_0,
    /// 5 bits, a scale and a minimum per 32 weights.
    Q5_1,
    /// 8 bits and a scale per 32 weights.
    Q8_0,
    /// 2 bits; 4-bit scales and minima per 16 weights.
    Q2K,
    /// 3 bits; 6-bit scales per 16 weights.
    Q3K,
    /// 4 bits; 6-bit scales and minima per 32 weights.
    Q4K,
    /// 5 bits; 6-bit scales and minima per 32 weights.
    Q5K,
    /// 6 bits; 8-bit scales per 16 weights.
    Q6K,
}

impl Format {
    /// Every format, in the order of their declaration.
    pub const ALL: [Format; 13] = [
        Format::F32,
        Format::F16,
        Format::BF16,
        Format::Q4_0,
        Format::Q4_1,
        Format::Q5_0,
        Format::Q5_1,
        Format::Q8_0,
        Format::Q2K,
        Format::Q3K,
        Format::Q4K,
        Format::Q5K,
        Format::Q6K,
    ];

    /// Weights of one row that share a GGUF block.
    pub const fn block_weights(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::BF16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 32,
            Format::Q2K | Format::Q3K | Format::Q4K | Format::Q5K | Format::Q6K => 256,
        }
    }

    /// Bytes of one GGUF block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Format::F32 => 4,
            Format::F16 | Format::BF16 => 2,
            Format::Q4_0 => 18,
            Format::Q4_1 => 20,
            Format::Q5_0 => 22,
            Format::Q5_1 => 24,
            Format::Q8_0 => 34,
            Format::Q2K => 84,
            Format::Q3K => 110,
            Format::Q4K => 144,
            Format::Q5K => 176,
            Format::Q6K => 210,
        }
    }

    /// Whether products take the activations as floats ([`QuantizedRows`](super::QuantizedRows) must then keep them):
    /// the float formats, and those too rare for an integer kernel.
    pub const fn takes_floats(self) -> bool {
        matches!(
            self,
            Format::F32 | Format::F16 | Format::BF16 | Format::Q2K | Format::Q3K
        )
    }
}
