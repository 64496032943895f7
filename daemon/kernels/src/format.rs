//! The weight formats of GGUF: their numbers there and their block sizes.

/// A GGUF tensor format for weights.
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
    /// 4 bits, of uneven steps, and a scale per 32 weights.
    IQ4NL,
    /// 4 bits, of uneven steps; 6-bit scales per 32 weights.
    IQ4XS,
    /// Four weights in the 9 bits of a point, and signs; 4-bit scales per 32 weights.
    IQ3S,
    /// Four weights in the 8 bits of a point, and 7 signs per 8; 4-bit scales per 32 weights.
    IQ3XXS,
    /// Eight weights in the 10 bits of a point, and signs; 4-bit scales per 16 weights.
    IQ2S,
    /// Eight weights in the 9 bits of a point and 7 signs; 4-bit scales per 16 weights.
    IQ2XS,
    /// Eight weights in the 8 bits of a point and 7 signs; 4-bit scales per 32 weights.
    IQ2XXS,
    /// Eight weights in the 11 bits of a point; 3-bit scales per 16 weights.
    IQ1M,
    /// Eight weights in the 11 bits of a point; 3-bit scales per 32 weights.
    IQ1S,
    /// −1, 0 or 1, five to a byte; a scale per 256 weights.
    TQ1_0,
    /// −1, 0 or 1 in 2 bits; a scale per 256 weights.
    TQ2_0,
    /// 4-bit floats; a power of two per 32 weights.
    MXFP4,
}

impl Format {
    /// Every format, in the order of their declaration.
    pub const ALL: [Format; 25] = [
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
        Format::IQ4NL,
        Format::IQ4XS,
        Format::IQ3S,
        Format::IQ3XXS,
        Format::IQ2S,
        Format::IQ2XS,
        Format::IQ2XXS,
        Format::IQ1M,
        Format::IQ1S,
        Format::TQ1_0,
        Format::TQ2_0,
        Format::MXFP4,
    ];

    /// Its number in GGUF files.
    pub const fn number(self) -> u32 {
        match self {
            Format::F32 => 0,
            Format::F16 => 1,
            Format::Q4_0 => 2,
            Format::Q4_1 => 3,
            Format::Q5_0 => 6,
            Format::Q5_1 => 7,
            Format::Q8_0 => 8,
            Format::Q2K => 10,
            Format::Q3K => 11,
            Format::Q4K => 12,
            Format::Q5K => 13,
            Format::Q6K => 14,
            Format::IQ2XXS => 16,
            Format::IQ2XS => 17,
            Format::IQ3XXS => 18,
            Format::IQ1S => 19,
            Format::IQ4NL => 20,
            Format::IQ3S => 21,
            Format::IQ2S => 22,
            Format::IQ4XS => 23,
            Format::IQ1M => 29,
            Format::BF16 => 30,
            Format::TQ1_0 => 34,
            Format::TQ2_0 => 35,
            Format::MXFP4 => 39,
        }
    }

    /// The format of that number, if it is one of these.
    pub fn from_number(number: u32) -> Option<Format> {
        let mut all = Format::ALL.into_iter();
        all.find(|format| format.number() == number)
    }

    /// Weights of one row that share a GGUF block.
    pub const fn block_weights(self) -> usize {
        match self {
            Format::F32 | Format::F16 | Format::BF16 => 1,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0 => 32,
            Format::IQ4NL | Format::MXFP4 => 32,
            _ => 256,
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
            Format::IQ4NL => 18,
            Format::IQ4XS => 136,
            Format::IQ3S => 110,
            Format::IQ3XXS => 98,
            Format::IQ2S => 82,
            Format::IQ2XS => 74,
            Format::IQ2XXS => 66,
            Format::IQ1M => 56,
            Format::IQ1S => 50,
            Format::TQ1_0 => 54,
            Format::TQ2_0 => 66,
            Format::MXFP4 => 17,
        }
    }

    /// Whether products take the activations as floats ([`QuantizedRows`](super::QuantizedRows) must then keep them):
    /// the float formats, and those too rare for an integer kernel.
    pub const fn takes_floats(self) -> bool {
        let plain = matches!(
            self,
            Format::Q4_0 | Format::Q4_1 | Format::Q5_0 | Format::Q5_1 | Format::Q8_0
        );
        let nested = matches!(self, Format::Q4K | Format::Q5K | Format::Q6K);
        let nonlinear = matches!(self, Format::IQ4NL | Format::IQ4XS);
        !(plain || nested || nonlinear)
    }
}
