//! Rotary embedding, cache write and masked attention out of candle's tensor operations.

use candle_core::{Device, Result, Tensor};

use super::input::rms_norm;
use super::{CandleBackend, CandleCache, during};
use crate::backend::{AttentionParams, BackendError, Group, RopeStyle, RowPlan};

/// See [`crate::backend::Backend::attention`].
pub(super) fn attend(
    params: &AttentionParams<'_, CandleBackend>,
    [queries, keys, values]: &[Tensor; 3],
    plan: &RowPlan,
    caches: &mut [CandleCache],
) -> Result<Tensor> {
    let rows = plan.positions.len();
    let head_dim = queries.dim(1)? / params.heads;
    let queries = (turn(params, queries, head_dim, plan)? * f64::from(params.scale))?.reshape((
        rows,
        params.heads,
        head_dim,
    ))?;
    let keys = turn(params, keys, head_dim, plan)?;

    let mut out = Vec::with_capacity(rows);
    for (group, cache) in plan.groups.iter().zip(caches) {
        if group.is_empty() {
            continue;
        }
        let (start, len) = (group.rows.start, group.len());
        let (all_keys, all_values) = cache.append(
            params.layer,
            &keys.narrow(0, start, len)?,
            &values.narrow(0, start, len)?,
            group.place(0),
        )?;
        let all_keys = all_keys.transpose(1, 2)?;
        // The CPU takes rows one by one so that a row's sums do not depend on its neighbours; a GPU takes them at once.
        let stride = if queries.device().is_cpu() { 1 } else { len };
        for first in (0..len).step_by(stride) {
            let count = stride.min(len - first);
            let seen = group.place(first + count);
            let queries = queries.narrow(0, start + first, count)?;
            let keys = all_keys.narrow(2, 0, seen)?;
            let values = all_values.narrow(1, 0, seen)?;
            let block = first..first + count;
            let mask = mask(plan, group, block, seen, params.window);
            out.push(attend_block(&queries, &keys, &values, mask, params.heads)?);
        }
    }
    Tensor::cat(&out, 0)
}

/// See [`crate::backend::Backend::remember`].
pub(super) fn remember(
    params: &AttentionParams<'_, CandleBackend>,
    [mut keys, values]: [Tensor; 2],
    plan: &RowPlan,
    caches: &mut [CandleCache],
) -> std::result::Result<(), BackendError> {
    if let Some([_, key_norm]) = &params.head_norms {
        keys = rms_norm(&keys, key_norm)?;
    }
    during("attention", store(params, [&keys, &values], plan, caches))
}

fn store(
    params: &AttentionParams<'_, CandleBackend>,
    [keys, values]: [&Tensor; 2],
    plan: &RowPlan,
    caches: &mut [CandleCache],
) -> Result<()> {
    let head_dim = 2 * params.rope.cos.dim(1)?;
    let keys = turn(params, keys, head_dim, plan)?;
    for (group, cache) in plan.groups.iter().zip(caches) {
        if !group.is_empty() {
            let own = |x: &Tensor| x.narrow(0, group.rows.start, group.len());
            cache.store(params.layer, &own(&keys)?, &own(values)?, group.place(0))?;
        }
    }
    Ok(())
}

/// Turns the heads of rows by their positions; `[rows, heads · head_dim]` before and after.
fn turn(
    params: &AttentionParams<'_, CandleBackend>,
    x: &Tensor,
    head_dim: usize,
    plan: &RowPlan,
) -> Result<Tensor> {
    let positions: Vec<u32> = plan
        .positions
        .iter()
        .map(|position| *position as u32)
        .collect();
    let rows = positions.len();
    let positions = Tensor::new(positions, x.device())?;
    let cos = params.rope.cos.index_select(&positions, 0)?.unsqueeze(1)?;
    let sin = params.rope.sin.index_select(&positions, 0)?.unsqueeze(1)?;
    let heads = x.reshape((rows, (), 1, head_dim))?;
    match params.rope_style {
        RopeStyle::Interleaved => candle_nn::rotary_emb::rope_i(&heads, &cos, &sin),
        RopeStyle::Halves => candle_nn::rotary_emb::rope(&heads, &cos, &sin),
    }?
    .reshape((rows, ()))
}

/// One block of rows `[rows, heads, head_dim]` over keys `[kv_heads, head_dim, seen]` and values
/// `[kv_heads, seen, head_dim]`; returns `[rows, heads · head_dim]`.
fn attend_block(
    queries: &Tensor,
    keys: &Tensor,
    values: &Tensor,
    mask: Option<Vec<f32>>,
    heads: usize,
) -> Result<Tensor> {
    let (rows, _, head_dim) = queries.dims3()?;
    let (kv_heads, _, seen) = keys.dims3()?;
    // Heads that share keys are consecutive, so they stack as rows of one product: no key is copied.
    let shared = heads / kv_heads;
    let queries = queries
        .reshape((rows, kv_heads, shared, head_dim))?
        .transpose(0, 1)?
        .reshape((kv_heads, rows * shared, head_dim))?
        .contiguous()?;
    let mut scores = queries.matmul(keys)?;
    if let Some(mask) = mask {
        let mask =
            Tensor::from_vec(mask, (1, rows, 1, seen), &Device::Cpu)?.to_device(scores.device())?;
        let by_row = scores.reshape((kv_heads, rows, shared, seen))?;
        scores = by_row
            .broadcast_add(&mask)?
            .reshape((kv_heads, rows * shared, seen))?;
    }
    let weights = candle_nn::ops::softmax_last_dim(&scores)?;
    weights
        .matmul(values)?
        .reshape((kv_heads, rows, shared, head_dim))?
        .transpose(0, 1)?
        .reshape((rows, heads * head_dim))
}

/// What each row of the block does not see, as −∞ among zeros, `[rows, seen]`; `None` where every row sees all.
fn mask(
    plan: &RowPlan,
    group: &Group,
    block: std::ops::Range<usize>,
    seen: usize,
    window: Option<usize>,
) -> Option<Vec<f32>> {
    let positions = &plan.positions[group.rows.clone()];
    let chain = group.is_chain();
    let whole = window.is_none_or(|window| seen <= window);
    if chain && whole && block.len() == 1 {
        return None;
    }
    let mut mask = vec![f32::NEG_INFINITY; block.len() * seen];
    for (line, row) in mask.chunks_exact_mut(seen).zip(block) {
        let oldest = window.map_or(0, |window| (positions[row] + 1).saturating_sub(window));
        if oldest < group.base {
            line[oldest..group.base].fill(0.0);
        }
        // The n-th ancestor's position is the n-th behind the base, wherever it is stored.
        let mut see = |(depth, ancestor): (usize, usize)| {
            if group.base + depth >= oldest {
                line[group.base + ancestor] = 0.0;
            }
        };
        if chain {
            (0..=group.first + row)
                .map(|row| (row, row))
                .for_each(&mut see)
        } else {
            let ancestors = plan.ancestors(group, row).iter().copied();
            ancestors.enumerate().for_each(&mut see)
        }
    }
    Some(mask)
}
