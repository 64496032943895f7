//! Products of rows and matrices: which kernels, over what.

use super::CudaBackend;
use super::kernels::{Product, SHAPES, Shape};
use super::memory::Buffer;
use super::recorder::Start;
use super::rows::CudaHidden;
use super::weights::{CudaMatrix, CudaVector, Kind};
use crate::backend::{Activation, BackendError};

/// Spans that the inputs are cut into, each for a warp of a block.
pub(super) const SPANS: usize = 8;
/// A gated pair's result is divided by this to fit halves, as `kernels/matmul.cu` has it.
const GATED_DIVISOR: f32 = 64.0;

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Map {
    quants: u64,
    scales: u64,
    bias: u64,
    out: u64,
    tiles: i32,
    outputs: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct MatmulArgs {
    maps: [Map; 3],
    x: u64,
    factor: f32,
    count: i32,
    rows: i32,
    inputs: i32,
    steps: i32,
    gelu: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct HalveArgs {
    x: u64,
    up: u64,
    out: u64,
    factor: f32,
    count: i32,
    width: i32,
    groups: i32,
    gelu: i32,
    none: i32,
}

fn map(matrix: &CudaMatrix, bias: Option<&CudaVector>, out: &Buffer) -> Map {
    Map {
        quants: matrix.quants.pointer,
        scales: matrix.scales.pointer,
        bias: bias.map_or(0, |bias| bias.0.pointer),
        out: out.pointer,
        tiles: matrix.tiles as i32,
        outputs: matrix.outputs as i32,
    }
}

impl CudaBackend {
    /// `x · wᵀ + bias` for each map.
    pub(super) fn multiply(
        &self,
        x: &CudaHidden,
        maps: &[(&CudaMatrix, Option<&CudaVector>)],
    ) -> Result<Vec<CudaHidden>, BackendError> {
        let outs: Vec<CudaHidden> = maps
            .iter()
            .map(|(matrix, _)| self.floats(x.rows, matrix.outputs))
            .collect::<Result<_, _>>()?;
        // Maps of one kind go together.
        let mut taken = vec![false; maps.len()];
        for first in 0..maps.len() {
            let kind = maps[first].0.kind;
            let same: Vec<usize> = (first..maps.len())
                .filter(|at| !taken[*at] && maps[*at].0.kind == kind)
                .take(3)
                .collect();
            if same.is_empty() || same[0] != first {
                continue;
            }
            let mut together = [Map::default(); 3];
            for (place, at) in together.iter_mut().zip(&same) {
                taken[*at] = true;
                *place = map(maps[*at].0, maps[*at].1, &outs[*at].data);
            }
            let tiles: Vec<usize> = same.iter().map(|at| maps[*at].0.tiles).collect();
            self.product(x, maps[first].0, together, &tiles, None);
        }
        Ok(outs)
    }

    /// `activation(gate(x)) · up(x)` as halves.
    pub(super) fn gated(
        &self,
        x: &CudaHidden,
        [gate, up]: [&CudaMatrix; 2],
        activation: Activation,
    ) -> Result<CudaHidden, BackendError> {
        if gate.kind != up.kind || gate.outputs != up.outputs {
            let pair = self.multiply(x, &[(gate, None), (up, None)])?;
            return self.halve(&pair[0], Some((&pair[1], activation)), GATED_DIVISOR);
        }
        let out = self.halves(x.rows, gate.outputs, GATED_DIVISOR)?;
        let maps = [
            map(gate, None, &out.data),
            map(up, None, &out.data),
            Map::default(),
        ];
        self.product(x, gate, maps, &[gate.tiles], Some(activation));
        Ok(out)
    }

    /// Rows as halves, or activated and multiplied by others; what is stored is divided by `divisor`.
    pub(super) fn halve(
        &self,
        x: &CudaHidden,
        up: Option<(&CudaHidden, Activation)>,
        divisor: f32,
    ) -> Result<CudaHidden, BackendError> {
        let out = self.halves(x.rows, x.width, divisor)?;
        let count = x.rows * x.width;
        let arguments = HalveArgs {
            x: x.data.pointer,
            up: up.map_or(0, |(up, _)| up.data.pointer),
            out: out.data.pointer,
            factor: divisor.recip(),
            count: count as i32,
            width: x.width as i32,
            groups: x.rows.div_ceil(8) as i32,
            gelu: up
                .is_some_and(|(_, activation)| activation == Activation::Gelu)
                .into(),
            none: 0,
        };
        let grid = [count.div_ceil(256), 1, 1];
        self.recorder
            .borrow_mut()
            .launch(self.kernels.halve, grid, 256, &arguments);
        Ok(out)
    }

    fn product(
        &self,
        x: &CudaHidden,
        like: &CudaMatrix,
        maps: [Map; 3],
        tiles: &[usize],
        gated: Option<Activation>,
    ) {
        let arguments = MatmulArgs {
            maps,
            x: x.data.pointer,
            factor: x.divisor,
            count: tiles.len() as i32,
            rows: x.rows as i32,
            inputs: like.inputs as i32,
            steps: like.steps as i32,
            gelu: (gated == Some(Activation::Gelu)).into(),
        };
        let (product, grid) = self.choose(x.rows, like.kind, tiles, gated.is_some());
        let start = Start {
            function: product.function,
            grid,
            threads: 32 * SPANS,
            room: product.room,
            fills: true,
        };
        self.recorder.borrow_mut().record(start, &arguments);
    }

    /// Which shape, and the grid: the first that keeps the device busy, or else the one of most blocks. Few rows are read
    /// quickly and need many blocks; of many rows, reading them is what takes time.
    fn choose(
        &self,
        rows: usize,
        kind: Kind,
        tiles: &[usize],
        gated: bool,
    ) -> (Product, [usize; 3]) {
        let row_groups = match rows {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            _ => 8,
        };
        let busy = self.gpu.multiprocessors;
        let enough = |blocks: usize| match row_groups {
            1 | 2 => 5 * blocks >= 7 * busy,
            _ => 2 * blocks >= busy,
        };
        let fitting = SHAPES.iter().enumerate().filter_map(|(index, shape)| {
            let fits = shape.row_groups == row_groups && shape.gated == gated;
            let product = self.kernels.product(kind, index).filter(|_| fits)?;
            let grid = [blocks(*shape, tiles), rows.div_ceil(8 * row_groups), 1];
            Some((product, grid))
        });
        let mut last = None;
        for (product, grid) in fitting {
            last = Some((product, grid));
            if enough(grid[0] * grid[1]) {
                break;
            }
        }
        last.expect("the smallest shapes fit every device")
    }
}

/// Blocks along the outputs.
fn blocks(shape: Shape, tiles: &[usize]) -> usize {
    let own = match shape.gated {
        true => shape.tiles / 2,
        false => shape.tiles,
    };
    tiles.iter().map(|tiles| tiles.div_ceil(own)).sum()
}
