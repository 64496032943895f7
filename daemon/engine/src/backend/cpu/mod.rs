//! The `cpu` backend: our own kernels on packed weights, batch-invariant to the bit.

pub mod kernels;
