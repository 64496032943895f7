//! Keys and values of one sequence as halves, in blocks that never move.
//!
//! Within a block keys lie by sixteens of slots, element by element, so that one vector holds the same element of
//! sixteen keys and a product with a query needs no sum across lanes. Values lie slot by slot.
#![expect(
    unsafe_code,
    reason = "threads write the keys and values of different rows at the same time"
)]

use std::cell::UnsafeCell;
use std::ops::Range;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::simd::LANES;
use crate::backend::{BackendError, CacheShape};

/// Slots of a block: what a cache grows by.
pub(super) const BLOCK: usize = 256;

/// A cache line of halves: vector loads do not straddle two.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only reached by pointers")] [u16; 32]);

/// All heads of all layers, `BLOCK` slots each. In cells, because threads write different slots at the same time.
type Block = Box<[UnsafeCell<Line>]>;

/// Keys and values of one sequence, all layers. What is stored beyond the sequence's length is left over and never
/// read.
pub struct CpuCache {
    shape: CacheShape,
    blocks: Vec<Block>,
}

impl std::fmt::Debug for CpuCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CpuCache")
            .field("shape", &self.shape)
            .field("slots", &(self.blocks.len() * BLOCK))
            .finish()
    }
}

/// Halves that one slot of one head takes: values are padded to whole vectors.
fn padded(shape: CacheShape) -> (usize, usize) {
    (shape.head_dim, shape.head_dim.next_multiple_of(LANES))
}

/// Bytes that one slot takes.
pub(super) fn slot_bytes(shape: CacheShape) -> usize {
    let (key, value) = padded(shape);
    shape.layers * shape.kv_heads * (key + value) * size_of::<u16>()
}

impl CpuCache {
    pub(super) fn new(shape: CacheShape) -> Self {
        Self {
            shape,
            blocks: Vec::new(),
        }
    }

    pub(super) fn shape(&self) -> CacheShape {
        self.shape
    }

    pub(super) fn bytes(&self) -> usize {
        self.blocks.len() * BLOCK * slot_bytes(self.shape)
    }

    /// Makes room for `slots` slots in all; all of it or none.
    pub(super) fn reserve(&mut self, slots: usize) -> Result<(), BackendError> {
        let before = self.blocks.len();
        let bytes = BLOCK * slot_bytes(self.shape);
        while self.blocks.len() * BLOCK < slots {
            let mut block = Vec::new();
            if block.try_reserve_exact(bytes / size_of::<Line>()).is_err() {
                self.blocks.truncate(before);
                return Err(BackendError::Memory {
                    what: "keys and values",
                    bytes,
                });
            }
            block.resize_with(bytes / size_of::<Line>(), || UnsafeCell::new(Line([0; 32])));
            self.blocks.push(block.into_boxed_slice());
        }
        Ok(())
    }

    /// Moves the slots `from + offsets[i]` to `from + i`; offsets ascend.
    pub(super) fn keep(&mut self, from: usize, offsets: &[usize]) {
        let shape = self.shape;
        let moved = offsets
            .iter()
            .enumerate()
            .filter(|(to, offset)| to != *offset);
        for (to, offset) in moved {
            let (source, target) = (from + offset, from + to);
            for layer in 0..shape.layers {
                let view = self.layer(layer);
                for head in 0..shape.kv_heads {
                    // SAFETY: the cache is borrowed mutably, so this thread is alone with it.
                    unsafe { view.copy_slot(head, source, target) };
                }
            }
        }
    }

    /// Copies the first `slots` slots, and what else lies in their blocks.
    pub(super) fn fork(&self, slots: usize) -> Result<Self, BackendError> {
        let mut copy = Self::new(self.shape);
        copy.reserve(slots)?;
        for (old, new) in self.blocks.iter().zip(&mut copy.blocks) {
            for (old, new) in old.iter().zip(new) {
                // SAFETY: threads write only while a caller holds the cache mutably.
                *new.get_mut() = unsafe { *old.get() };
            }
        }
        Ok(copy)
    }

    /// One layer. What a view does is unsafe: threads share it.
    pub(super) fn layer(&self, layer: usize) -> LayerView<'_> {
        let (key, value) = padded(self.shape);
        let head = (key + value) * BLOCK;
        LayerView {
            blocks: &self.blocks,
            layer_at: layer * self.shape.kv_heads * head,
            head,
            head_dim: self.shape.head_dim,
            value,
        }
    }
}

/// One layer of a cache. Writers of different slots and readers of yet others may share it.
pub(super) struct LayerView<'a> {
    blocks: &'a [Block],
    /// Halves before this layer in a block, and of one head.
    layer_at: usize,
    head: usize,
    head_dim: usize,
    value: usize,
}

impl LayerView<'_> {
    /// Elements of a stored value, its padding counted.
    pub(super) fn value_width(&self) -> usize {
        self.value
    }

    /// Where a head's halves lie in the block of a slot.
    fn start(&self, head: usize, slot: usize) -> *mut u16 {
        let block = &self.blocks[slot / BLOCK];
        // SAFETY: a block has room for all heads of all layers. The pointer comes from cells, so that it may write.
        unsafe {
            let halves = UnsafeCell::raw_get(block.as_ptr()).cast::<u16>();
            halves.add(self.layer_at + head * self.head)
        }
    }

    /// The keys of the sixteen slots around `slot`, `[head_dim][16]`.
    ///
    /// # Safety
    /// No thread writes keys of these slots for as long as the result is used.
    pub(super) unsafe fn keys(&self, head: usize, slot: usize) -> &[[u16; LANES]] {
        let tile = slot % BLOCK / LANES;
        // SAFETY: a block has `BLOCK / LANES` tiles of `head_dim` vectors for each head; the caller excludes writers.
        unsafe {
            let start = self.start(head, slot).add(tile * self.head_dim * LANES);
            std::slice::from_raw_parts(start.cast(), self.head_dim)
        }
    }

    /// The values of slots that lie in one block, `[slots][value width]`.
    ///
    /// # Safety
    /// No thread writes values of these slots for as long as the result is used.
    pub(super) unsafe fn values(&self, head: usize, slots: Range<usize>) -> &[[u16; LANES]] {
        let at = slots.start % BLOCK;
        assert!(at + slots.len() <= BLOCK, "the slots lie in one block");
        // SAFETY: values follow the keys of a head, `value` halves a slot; the caller excludes writers.
        unsafe {
            let start = self.start(head, slots.start);
            let start = start.add(BLOCK * self.head_dim + at * self.value);
            std::slice::from_raw_parts(start.cast(), slots.len() * self.value / LANES)
        }
    }

    /// Stores a key and a value of `head_dim` elements each.
    ///
    /// # Safety
    /// No other thread reads or writes this slot at the same time.
    pub(super) unsafe fn write(&self, head: usize, slot: usize, key: &[f32], value: &[f32]) {
        let start = self.start(head, slot);
        let (tile, lane) = (slot % BLOCK / LANES, slot % LANES);
        let mut halves = [f16::ZERO; 64];
        for (part, key) in key.chunks(halves.len()).enumerate() {
            let halves = &mut halves[..key.len()];
            halves.convert_from_f32_slice(key);
            for (i, half) in halves.iter().enumerate() {
                let element = tile * self.head_dim + part * 64 + i;
                // SAFETY: within the head's keys; the place belongs to this slot alone.
                unsafe { start.add(element * LANES + lane).write(half.to_bits()) };
            }
        }
        // SAFETY: within the head's values; the place belongs to this slot alone, and `f16` is a `u16` by layout.
        let stored = unsafe {
            let at = start.add(BLOCK * self.head_dim + slot % BLOCK * self.value);
            std::slice::from_raw_parts_mut(at.cast::<f16>(), self.head_dim)
        };
        stored.convert_from_f32_slice(value);
    }

    /// Copies one slot of a head over another.
    ///
    /// # Safety
    /// No other thread uses these slots at the same time.
    unsafe fn copy_slot(&self, head: usize, source: usize, target: usize) {
        let (from, to) = (self.start(head, source), self.start(head, target));
        let place = |slot: usize, element: usize| {
            (slot % BLOCK / LANES * self.head_dim + element) * LANES + slot % LANES
        };
        let values = |slot: usize| BLOCK * self.head_dim + slot % BLOCK * self.value;
        // SAFETY: all within the head's keys and values in the blocks of the two slots, which differ.
        unsafe {
            for element in 0..self.head_dim {
                *to.add(place(target, element)) = *from.add(place(source, element));
            }
            from.add(values(source))
                .copy_to(to.add(values(target)), self.value);
        }
    }
}
