//! What is noise, and what is not.

use super::*;
use proptest::prelude::*;

fn groups(samples: &[&[f64]]) -> Groups {
    let named = samples.iter().enumerate();
    named
        .map(|(index, samples)| (index.to_string(), samples.to_vec()))
        .collect()
}

#[test]
fn prompts_that_differ_are_no_noise() {
    // Within each prompt, samples are steady, and every one is 10 % faster.
    let old = groups(&[&[1.0, 1.01, 0.99], &[5.0, 5.02, 4.98], &[20.0, 20.1, 19.9]]);
    let new = groups(&[&[1.1, 1.11, 1.09], &[5.5, 5.52, 5.48], &[22.0, 22.1, 21.9]]);
    let change = change("x", &old, &new).unwrap();
    assert!(
        (change.ratio - 1.1).abs() < 1e-6 && change.is_real(),
        "{change:?}"
    );
}

#[test]
fn what_lies_in_the_noise_is_no_change() {
    let old = groups(&[&[1.0, 1.3, 0.8, 1.1, 0.9]]);
    let new = groups(&[&[1.1, 0.9, 1.3, 1.2, 0.95]]);
    assert!(!change("x", &old, &new).unwrap().is_real());
    let slightly = groups(&[&[1.02, 1.02]]);
    let change = change("x", &groups(&[&[1.0, 1.0]]), &slightly).unwrap();
    assert!(!change.is_real(), "2 % is what two starts differ by");
}

#[test]
fn only_what_both_have_is_compared() {
    assert_eq!(change("x", &groups(&[&[1.0]]), &groups(&[&[2.0]])), None);
    assert_eq!(change("x", &groups(&[&[1.0, 1.0]]), &Groups::new()), None);
    let old = groups(&[&[1.0, 1.0], &[9.0, 9.0]]);
    let new = groups(&[&[2.0, 2.0]]);
    let change = change("x", &old, &new).unwrap();
    assert_eq!((change.old, change.new), (1.0, 2.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_report_does_not_differ_from_itself(
        samples in prop::collection::vec(prop::collection::vec(0.5..2.0_f64, 2..6), 1..5),
    ) {
        let groups: Groups = samples.iter().enumerate().map(|(i, s)| (i.to_string(), s.clone())).collect();
        let same = change("x", &groups, &groups).unwrap();
        prop_assert!(!same.is_real());
        prop_assert!(same.interval.0 <= 1.0 && same.interval.1 >= 1.0, "{:?}", same);
    }

    #[test]
    fn a_change_that_is_larger_than_the_noise_is_found(
        noise in prop::collection::vec(0.99..1.01_f64, 12),
        factor in prop_oneof![0.2..0.9_f64, 1.1..5.0_f64],
    ) {
        let (old, new) = noise.split_at(6);
        let new: Vec<f64> = new.iter().map(|value| value * factor).collect();
        let found = change("x", &groups(&[old]), &groups(&[&new])).unwrap();
        prop_assert!(found.is_real());
        prop_assert!((found.ratio / factor - 1.0).abs() < 0.03);
    }
}
