//! Keys and values as preallocated tensors that are written in place.

use candle_core::{DType, Device, Result, Tensor};

use crate::backend::CacheShape;

/// Positions by which a cache grows: few reallocations, little waste.
const GROWTH: usize = 256;

/// One layer's keys and values, each `[kv_heads, capacity, head_dim]`.
#[derive(Debug)]
struct Layer {
    keys: Tensor,
    values: Tensor,
}

/// Keys and values of one sequence. What is stored beyond the sequence's length is left over and never read.
#[derive(Debug)]
pub struct CandleCache {
    layers: Vec<Layer>,
    shape: CacheShape,
    capacity: usize,
    dtype: DType,
    device: Device,
}

impl CandleCache {
    pub(super) fn new(shape: CacheShape, dtype: DType, device: &Device) -> Result<Self> {
        let mut cache = Self {
            layers: Vec::new(),
            shape,
            capacity: 0,
            dtype,
            device: device.clone(),
        };
        cache.reserve(1)?;
        Ok(cache)
    }

    pub(super) fn reserve(&mut self, positions: usize) -> Result<()> {
        if positions <= self.capacity {
            return Ok(());
        }
        let capacity = positions.next_multiple_of(GROWTH);
        let grow = |old: Option<&Tensor>| {
            let new = Tensor::zeros(
                (self.shape.kv_heads, capacity, self.shape.head_dim),
                self.dtype,
                &self.device,
            )?;
            if let Some(old) = old {
                new.slice_set(old, 1, 0)?;
            }
            Ok::<_, candle_core::Error>(new)
        };
        // All layers or none: a failed allocation leaves the cache as it was.
        let mut layers = Vec::with_capacity(self.shape.layers);
        for layer in 0..self.shape.layers {
            let old = self.layers.get(layer);
            layers.push(Layer {
                keys: grow(old.map(|l| &l.keys))?,
                values: grow(old.map(|l| &l.values))?,
            });
        }
        self.layers = layers;
        self.capacity = capacity;
        Ok(())
    }

    /// Writes keys and values, each `[rows, kv_heads · head_dim]`, from position `at` on, and returns all up to the
    /// last one written as f32 `[kv_heads, at + rows, head_dim]`.
    pub(super) fn append(
        &mut self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
        at: usize,
    ) -> Result<(Tensor, Tensor)> {
        self.store(layer, keys, values, at)?;
        let end = at + keys.dim(0)?;
        let all = |stored: &Tensor| stored.narrow(1, 0, end)?.to_dtype(DType::F32);
        let layer = &self.layers[layer];
        Ok((all(&layer.keys)?, all(&layer.values)?))
    }

    /// Writes keys and values, each `[rows, kv_heads · head_dim]`, from position `at` on.
    pub(super) fn store(
        &mut self,
        layer: usize,
        keys: &Tensor,
        values: &Tensor,
        at: usize,
    ) -> Result<()> {
        let layer = &self.layers[layer];
        for (target, new) in [(&layer.keys, keys), (&layer.values, values)] {
            let new = new
                .reshape(((), self.shape.kv_heads, self.shape.head_dim))?
                .transpose(0, 1)?;
            target.slice_set(&new.to_dtype(self.dtype)?.contiguous()?, 1, at)?;
        }
        Ok(())
    }

    pub(super) fn keep(&mut self, from: usize, offsets: &[usize]) -> Result<()> {
        if offsets.iter().enumerate().all(|(to, offset)| to == *offset) {
            return Ok(());
        }
        let places: Vec<u32> = offsets
            .iter()
            .map(|offset| (from + offset) as u32)
            .collect();
        let places = Tensor::new(places, &self.device)?;
        for layer in &self.layers {
            for tensor in [&layer.keys, &layer.values] {
                // The selection is a copy, so reading and writing do not overlap.
                tensor.slice_set(&tensor.index_select(&places, 1)?, 1, from)?;
            }
        }
        Ok(())
    }

    pub(super) fn fork(&self, positions: usize) -> Result<Self> {
        let mut copy = Self::new(self.shape, self.dtype, &self.device)?;
        copy.reserve(positions)?;
        if positions == 0 {
            return Ok(copy);
        }
        for (old, new) in self.layers.iter().zip(&copy.layers) {
            for (old, new) in [(&old.keys, &new.keys), (&old.values, &new.values)] {
                new.slice_set(&old.narrow(1, 0, positions)?.contiguous()?, 1, 0)?;
            }
        }
        Ok(copy)
    }

    pub(super) fn bytes(&self) -> u64 {
        let position = 2
            * self.shape.layers
            * self.shape.kv_heads
            * self.shape.head_dim
            * self.dtype.size_in_bytes();
        (position * self.capacity) as u64
    }
}
