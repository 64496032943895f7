//! Top-k, top-p and min-p: by hand, and against a version that sorts everything.

use proptest::prelude::*;
use tandem_model::math;

use super::*;

#[test]
fn top_k_keeps_the_most_likely_and_the_lower_id_of_equals() {
    let params = SamplingParams {
        top_k: 2,
        ..plain()
    };
    assert_probs(
        &distribution(&params, &logits_of(&[0.1, 0.4, 0.3, 0.2])),
        &[0.0, 4.0 / 7.0, 3.0 / 7.0, 0.0],
    );
    assert_eq!(
        support(&distribution(&params, &[1.0, 2.0, 1.0, 1.0])),
        [0, 1]
    );
    assert_eq!(
        support(&distribution(&params, &[-0.0, 0.0, 0.0, -0.0])),
        [0, 1]
    );
    let all = SamplingParams {
        top_k: 9,
        ..plain()
    };
    assert_eq!(support(&distribution(&all, &[1.0, 2.0, 3.0])), [0, 1, 2]);
}

#[test]
fn top_p_keeps_the_smallest_set_of_that_mass() {
    let probs = logits_of(&[0.1, 0.4, 0.3, 0.2]);
    let kept = |top_p| support(&distribution(&SamplingParams { top_p, ..plain() }, &probs));
    assert_eq!(kept(0.39), [1]);
    assert_eq!(kept(0.41), [1, 2]);
    assert_eq!(kept(0.69), [1, 2]);
    assert_eq!(kept(0.71), [1, 2, 3]);
    assert_eq!(kept(0.95), [0, 1, 2, 3]);
    assert_eq!(kept(1e-9), [1], "never empty");
    // Four equals: the lower ids make up the mass.
    let half = SamplingParams {
        top_p: 0.5,
        ..plain()
    };
    assert_eq!(support(&distribution(&half, &[1.0; 4])), [0, 1]);
}

#[test]
fn top_p_counts_mass_within_top_k() {
    // Of 0.4, 0.3 and 0.2 remain 0.44, 0.33 and 0.22.
    let params = SamplingParams {
        top_k: 3,
        top_p: 0.75,
        ..plain()
    };
    assert_eq!(
        support(&distribution(&params, &logits_of(&[0.1, 0.4, 0.3, 0.2]))),
        [1, 2]
    );
}

#[test]
fn min_p_is_relative_to_the_most_likely() {
    let probs = logits_of(&[0.1, 0.4, 0.3, 0.2]);
    let kept = |min_p| support(&distribution(&SamplingParams { min_p, ..plain() }, &probs));
    assert_eq!(kept(0.24), [0, 1, 2, 3]);
    assert_eq!(kept(0.26), [1, 2, 3]);
    assert_eq!(kept(0.51), [1, 2]);
    assert_eq!(kept(1.0), [1]);
}

/// Truncation as its definition says, by a full sort; weights are exact multiples, so sums have no rounding.
fn naive(params: &SamplingParams, logits: &[f32]) -> Vec<TokenId> {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if params.top_k > 0 {
        order.truncate(params.top_k);
    }
    let largest = logits[order[0]];
    let weight = |index: usize| math::exp_nonpositive(logits[index] - largest);
    let total: f64 = order.iter().map(|&index| f64::from(weight(index))).sum();
    let mut mass = 0.0;
    let mut kept = Vec::new();
    for index in order {
        if params.top_p < 1.0 && mass >= f64::from(params.top_p) * total {
            break;
        }
        mass += f64::from(weight(index));
        if weight(index) >= params.min_p {
            kept.push(index as TokenId);
        }
    }
    kept.sort_unstable();
    kept
}

proptest! {
    #[test]
    fn selection_equals_sorting(
        // Coarse steps, so that ties are common.
        logits in prop::collection::vec((-40_i8..40).prop_map(|step| f32::from(step) / 8.0), 1..1500),
        top_k in prop_oneof![Just(0_usize), 1_usize..600],
        top_p in prop_oneof![Just(1.0_f32), 0.01_f32..1.0],
        min_p in prop_oneof![Just(0.0_f32), 0.0_f32..1.0],
    ) {
        let params = SamplingParams { top_k, top_p, min_p, ..plain() };
        let got = distribution(&params, &logits);
        prop_assert_eq!(support(&got), naive(&params, &logits));
        prop_assert!((got.iter().map(|(_, prob)| f64::from(prob)).sum::<f64>() - 1.0).abs() < 1e-5);
    }
}
