//! The compiled kernels by name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::attention;
use super::driver::Gpu;
use super::module::{Function, Module};
use super::products::SPANS;
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

/// How a product is cut: groups of 8 rows and tiles of 16 outputs that a block takes, and whether the tiles are those of a
/// gate and of what it gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) row_groups: usize,
    pub(super) tiles: usize,
    pub(super) gated: bool,
}

const fn shape(row_groups: usize, tiles: usize, gated: bool) -> Shape {
    Shape {
        row_groups,
        tiles,
        gated,
    }
}

/// Every shape that was compiled; of those that fit a product, those that read the rows least often come first.
pub(super) const SHAPES: [Shape; 17] = [
    shape(1, 1, false),
    shape(2, 2, false),
    shape(2, 1, false),
    shape(4, 4, false),
    shape(4, 2, false),
    shape(4, 1, false),
    shape(8, 4, false),
    shape(8, 2, false),
    shape(8, 1, false),
    shape(1, 4, true),
    shape(1, 2, true),
    shape(2, 4, true),
    shape(2, 2, true),
    shape(4, 4, true),
    shape(4, 2, true),
    shape(8, 4, true),
    shape(8, 2, true),
];

impl Shape {
    /// Bytes of shared memory that a block needs, as `kernels/matmul.cu` lays it out: steps on their way, and later sums.
    fn room(self, kind: Kind) -> usize {
        let stages = match (self.tiles, self.row_groups) {
            (1, _) | (2, ..=2) => 4,
            _ => 2,
        };
        let ring = SPANS * stages * self.tiles * kind.step_bytes();
        ring.max(SPANS * self.tiles * self.row_groups.min(2) * 512)
    }
}

/// A product of a kind of weights in a shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Product {
    pub(super) function: Function,
    /// Bytes of shared memory.
    pub(super) room: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Kernels {
    /// `None`: the device has too little shared memory for it.
    products: [[Option<Product>; SHAPES.len()]; 4],
    packing: HashMap<&'static str, Function>,
    pub(super) norm: Function,
    pub(super) embed: Function,
    pub(super) gather: Function,
    pub(super) halve: Function,
    pub(super) keep: Function,
    pub(super) copy: Function,
    pub(super) store: Function,
    pub(super) attend: Function,
    pub(super) lead: Function,
    /// Where they come from.
    _modules: [Module; 6],
}

/// Those that are loaded, while any backend has them: the target and the draft have the same.
static LOADED: Mutex<Weak<Kernels>> = Mutex::new(Weak::new());

impl Kernels {
    /// The kernels of the process, loaded where nobody has them yet.
    pub(super) fn shared(gpu: &Arc<Gpu>) -> Result<Arc<Self>, BackendError> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernels) = loaded.upgrade() {
            return Ok(kernels);
        }
        let kernels = Arc::new(Self::load(gpu)?);
        *loaded = Arc::downgrade(&kernels);
        Ok(kernels)
    }

    fn load(gpu: &Arc<Gpu>) -> Result<Self, BackendError> {
        let matmul = Module::load(gpu, compiled!("matmul"))?;
        let mut products = Vec::new();
        for kind in Kind::ALL {
            let of_kind: Vec<Option<Product>> = SHAPES
                .iter()
                .map(|shape| {
                    let room = shape.room(kind);
                    if room > gpu.shared_memory {
                        return Ok(None);
                    }
                    let form = if shape.gated { "gated" } else { "plain" };
                    let (groups, tiles) = (shape.row_groups, shape.tiles);
                    let name = format!("{form}_{}_{groups}_{tiles}", kind as usize);
                    let function = matmul.function_with(&name, room)?;
                    Ok(Some(Product { function, room }))
                })
                .collect::<Result<_, BackendError>>()?;
            products.push(of_kind.try_into().expect("one per shape"));
        }
        let pack = Module::load(gpu, compiled!("pack"))?;
        let packing = [
            "pack_Q4_0",
            "pack_Q4_1",
            "pack_Q5_0",
            "pack_Q8_0",
            "pack_Q4_K",
            "pack_Q6_K",
            "pack_half",
        ];
        let packing = packing
            .into_iter()
            .map(|name| Ok((name, pack.function(name)?)));
        let rows = Module::load(gpu, compiled!("rows"))?;
        let cache = Module::load(gpu, compiled!("cache"))?;
        let attention = Module::load(gpu, compiled!("attention"))?;
        let lead = Module::load(gpu, compiled!("lead"))?;
        Ok(Self {
            products: products.try_into().expect("one per kind"),
            packing: packing.collect::<Result<_, BackendError>>()?,
            norm: rows.function("rms_norm")?,
            embed: rows.function("embed")?,
            gather: rows.function("gather")?,
            halve: rows.function("halve")?,
            keep: cache.function("keep")?,
            copy: cache.function("copy_positions")?,
            store: cache.function("store")?,
            attend: attention.function_with("attend", attention::room(attention::WIDEST))?,
            lead: lead.function("lead")?,
            _modules: [matmul, pack, rows, cache, attention, lead],
        })
    }

    /// The product of a kind of weights by the shape at `index`, where the device can compute it.
    pub(super) fn product(&self, kind: Kind, index: usize) -> Option<Product> {
        self.products[kind as usize][index]
    }

    /// The kernel that lays out a format.
    pub(super) fn packing(&self, name: &'static str) -> Result<Function, BackendError> {
        let found = self.packing.get(name).copied();
        found.ok_or_else(|| BackendError::Unsupported(format!("the kernel {name}")))
    }
}
