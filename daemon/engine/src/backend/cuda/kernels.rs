//! The compiled kernels by name.

use std::collections::HashMap;

use super::driver::{Function, Gpu};
use super::weights::Kind;
use crate::backend::BackendError;

/// The bytes of a compiled file, aligned as the driver reads them.
macro_rules! compiled {
    ($name:literal) => {{
        #[repr(align(64))]
        struct Image<T: ?Sized>(T);
        static IMAGE: &Image<[u8]> = &Image(*include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $name,
            ".fatbin"
        )));
        &IMAGE.0
    }};
}

/// How a product is cut: groups of 8 rows and tiles of 16 outputs that a warp takes, warps that share the tiles, and
/// whether the tiles are those of a gate and of what it gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) row_groups: usize,
    pub(super) tiles: usize,
    pub(super) sharing: usize,
    pub(super) gated: bool,
}

const fn shape(row_groups: usize, tiles: usize, sharing: usize, gated: bool) -> Shape {
    Shape {
        row_groups,
        tiles,
        sharing,
        gated,
    }
}

/// Every shape that was compiled; of those that fit a product, those that read the rows least often come first.
pub(super) const SHAPES: [Shape; 15] = [
    shape(1, 1, 8, false),
    shape(2, 2, 8, false),
    shape(2, 1, 8, false),
    shape(4, 2, 4, false),
    shape(4, 2, 8, false),
    shape(4, 1, 8, false),
    shape(8, 2, 4, false),
    shape(8, 2, 8, false),
    shape(8, 1, 8, false),
    shape(1, 2, 8, true),
    shape(2, 2, 8, true),
    shape(4, 2, 4, true),
    shape(4, 2, 8, true),
    shape(8, 2, 4, true),
    shape(8, 2, 8, true),
];

/// See the module.
#[derive(Debug)]
pub(super) struct Kernels {
    products: [[Function; SHAPES.len()]; 4],
    packing: HashMap<&'static str, Function>,
    pub(super) norm: Function,
    pub(super) embed: Function,
    pub(super) gather: Function,
    pub(super) halve: Function,
    pub(super) keep: Function,
    pub(super) copy: Function,
    pub(super) store: Function,
    pub(super) attend: Function,
}

impl Kernels {
    pub(super) fn load(gpu: &Gpu) -> Result<Self, BackendError> {
        let matmul = gpu.load(compiled!("matmul"))?;
        let mut products = Vec::new();
        for kind in Kind::ALL {
            let functions: Vec<Function> = SHAPES
                .iter()
                .map(|shape| {
                    matmul(&format!(
                        "{}_{}_{}_{}_{}",
                        if shape.gated { "gated" } else { "plain" },
                        kind as usize,
                        shape.row_groups,
                        shape.tiles,
                        shape.sharing
                    ))
                })
                .collect::<Result<_, _>>()?;
            products.push(functions.try_into().expect("one per shape"));
        }
        let pack = gpu.load(compiled!("pack"))?;
        let packing = [
            "pack_Q4_0",
            "pack_Q4_1",
            "pack_Q5_0",
            "pack_Q8_0",
            "pack_Q4_K",
            "pack_Q6_K",
            "pack_half",
        ];
        let packing = packing.into_iter().map(|name| Ok((name, pack(name)?)));
        let (rows, attention) = (
            gpu.load(compiled!("rows"))?,
            gpu.load(compiled!("attention"))?,
        );
        Ok(Self {
            products: products.try_into().expect("one per kind"),
            packing: packing.collect::<Result<_, BackendError>>()?,
            norm: rows("rms_norm")?,
            embed: rows("embed")?,
            gather: rows("gather")?,
            halve: rows("halve")?,
            keep: rows("keep")?,
            copy: rows("copy_positions")?,
            store: attention("store")?,
            attend: attention("attend")?,
        })
    }

    /// The product of a kind of weights by the shape at `index`.
    pub(super) fn product(&self, kind: Kind, index: usize) -> Function {
        self.products[kind as usize][index]
    }

    /// The kernel that lays out a format.
    pub(super) fn packing(&self, name: &'static str) -> Result<Function, BackendError> {
        let found = self.packing.get(name).copied();
        found.ok_or_else(|| BackendError::Unsupported(format!("the kernel {name}")))
    }
}
