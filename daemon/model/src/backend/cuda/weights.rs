//! Weights out of a model file, laid out for the matrix units by a kernel.

use half::f16;
use tandem_kernels::{Format, Isa};

use super::CudaBackend;
use super::memory::Buffer;
use crate::backend::BackendError;
use crate::backend::cpu::weights::{pack, read_vector};
use crate::gguf::{Gguf, TensorInfo};

/// Outputs of a tile.
const TILE: usize = 16;
/// Inputs of a step.
const STEP: usize = 64;

/// How weights are stored; `kernels/layout.cuh` counts them the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// 4 bits; a scale and an offset per 32 inputs.
    Q4Affine,
    /// 4 bits less 8; a scale per 32 inputs.
    Q4Centred,
    /// 8 bits less 128; a scale per 16 inputs.
    Q8Centred,
    /// 16-bit floats.
    Half,
}

impl Kind {
    /// Every kind, in the order of the kernels.
    pub(super) const ALL: [Self; 4] =
        [Self::Q4Affine, Self::Q4Centred, Self::Q8Centred, Self::Half];

    /// Bytes of a tile and step, and of its scales.
    fn bytes(self) -> (usize, usize) {
        match self {
            Self::Q4Affine => (512, 128),
            Self::Q4Centred => (512, 64),
            Self::Q8Centred => (1024, 128),
            Self::Half => (2048, 0),
        }
    }

    /// Bytes of shared memory in which a warp keeps a tile and step, scales once for every lane that takes them.
    pub(super) fn step_bytes(self) -> usize {
        match self {
            Self::Q4Affine => 32 * (16 + 8),
            Self::Q4Centred => 32 * (16 + 4),
            Self::Q8Centred => 32 * (32 + 4),
            Self::Half => 32 * 64,
        }
    }

    /// How a format is stored, and the kernel that brings it there; `None`: as halves, by way of the CPU.
    fn of(format: Format) -> Option<(Self, &'static str)> {
        Some(match format {
            Format::Q4_0 => (Self::Q4Centred, "pack_Q4_0"),
            Format::Q4_1 => (Self::Q4Affine, "pack_Q4_1"),
            Format::Q5_0 => (Self::Q8Centred, "pack_Q5_0"),
            Format::Q8_0 => (Self::Q8Centred, "pack_Q8_0"),
            Format::Q4K => (Self::Q4Affine, "pack_Q4_K"),
            Format::Q6K => (Self::Q8Centred, "pack_Q6_K"),
            Format::F16 => (Self::Half, "pack_half"),
            _ => return None,
        })
    }
}

/// Linear weights `[outputs, inputs]` on the device.
#[derive(Debug)]
pub struct CudaMatrix {
    pub(super) kind: Kind,
    pub(super) quants: Buffer,
    pub(super) scales: Buffer,
    pub(super) outputs: usize,
    pub(super) inputs: usize,
    pub(super) tiles: usize,
    pub(super) steps: usize,
}

/// Weights of a norm or a bias on the device, f32.
#[derive(Debug)]
pub struct CudaVector(pub(super) Buffer);

#[repr(C)]
#[derive(Clone, Copy)]
struct PackArgs {
    source: u64,
    quants: u64,
    scales: u64,
    outputs: i32,
    inputs: i32,
    tiles: i32,
    steps: i32,
}

impl CudaBackend {
    pub(super) fn load_matrix(
        &self,
        gguf: &Gguf,
        tensor: &TensorInfo,
    ) -> Result<CudaMatrix, BackendError> {
        let inputs = tensor.shape.first().copied().unwrap_or(0);
        let outputs: usize = tensor.shape.iter().skip(1).product();
        // A lane takes 16 inputs at once.
        if inputs == 0 || outputs == 0 || !inputs.is_multiple_of(16) {
            return Err(BackendError::Unsupported(format!(
                "`{}`: matrices of {inputs} inputs on CUDA devices; their number must be a multiple of 16",
                tensor.name
            )));
        }
        let (tiles, steps) = (outputs.div_ceil(TILE), inputs.div_ceil(STEP));
        let (kind, kernel) = Kind::of(tensor.format).unwrap_or((Kind::Half, "pack_half"));
        let chunks = tiles * steps;
        let (quant_bytes, scale_bytes) = kind.bytes();
        let matrix = CudaMatrix {
            kind,
            quants: Buffer::new(&self.gpu, chunks * quant_bytes)?,
            scales: Buffer::new(&self.gpu, chunks * scale_bytes)?,
            outputs,
            inputs,
            tiles,
            steps,
        };
        let content = match Kind::of(tensor.format) {
            Some(_) => gguf.read_tensor(tensor)?,
            None => halves(gguf, tensor, outputs, inputs)?,
        };
        let source = Buffer::holding(&self.gpu, &content)?;
        let arguments = PackArgs {
            source: source.pointer,
            quants: matrix.quants.pointer,
            scales: matrix.scales.pointer,
            outputs: outputs as i32,
            inputs: inputs as i32,
            tiles: tiles as i32,
            steps: steps as i32,
        };
        let mut recorder = self.recorder.borrow_mut();
        let grid = [(chunks * 32).div_ceil(256), 1, 1];
        recorder.launch(self.kernels.packing(kernel)?, grid, 256, &arguments);
        recorder.flush()?;
        Ok(matrix)
    }

    pub(super) fn load_vector(
        &self,
        gguf: &Gguf,
        tensor: &TensorInfo,
    ) -> Result<CudaVector, BackendError> {
        let values = read_vector(gguf, tensor)?;
        Buffer::holding(&self.gpu, super::driver::bytes(&values)).map(CudaVector)
    }
}

/// Weights of any format as 16-bit floats, row by row.
fn halves(
    gguf: &Gguf,
    tensor: &TensorInfo,
    outputs: usize,
    inputs: usize,
) -> Result<Vec<u8>, BackendError> {
    let packed = pack(Isa::Portable, gguf, tensor, outputs, inputs)?;
    let mut row = vec![0.0_f32; inputs];
    let mut bytes = Vec::with_capacity(2 * outputs * inputs);
    for output in 0..outputs {
        packed.dequantize_row(output, &mut row);
        for value in &row {
            let most = f32::from(f16::MAX);
            bytes.extend(f16::from_f32(value.clamp(-most, most)).to_le_bytes());
        }
    }
    Ok(bytes)
}
