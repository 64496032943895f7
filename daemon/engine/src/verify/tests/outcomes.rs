//! Walks a random procedure through every outcome, each with its exact probability.

use crate::sampling::Chance;

/// Randomness that follows a script and notes the alternatives.
#[derive(Default)]
pub(super) struct Outcomes {
    /// Chosen alternative and number of alternatives, per choice.
    choices: Vec<(usize, usize)>,
    next: usize,
    probability: f64,
}

/// Runs `procedure` once per outcome; returns the results with their probabilities.
pub(super) fn every_outcome<T>(mut procedure: impl FnMut(&mut Outcomes) -> T) -> Vec<(T, f64)> {
    let mut outcomes = Outcomes::default();
    let mut results = Vec::new();
    loop {
        (outcomes.next, outcomes.probability) = (0, 1.0);
        let result = procedure(&mut outcomes);
        results.push((result, outcomes.probability));
        // The next script: the last choice that has another alternative takes it.
        while outcomes
            .choices
            .last()
            .is_some_and(|&(chosen, count)| chosen + 1 == count)
        {
            outcomes.choices.pop();
        }
        match outcomes.choices.last_mut() {
            Some(last) => last.0 += 1,
            None => return results,
        }
    }
}

impl Outcomes {
    fn choose(&mut self, probabilities: &[f64]) -> usize {
        if self.next == self.choices.len() {
            self.choices.push((0, probabilities.len()));
        }
        let (chosen, count) = self.choices[self.next];
        assert_eq!(
            count,
            probabilities.len(),
            "the procedure depends on its choices alone"
        );
        self.next += 1;
        self.probability *= probabilities[chosen];
        chosen
    }
}

impl Chance for Outcomes {
    fn accept(&mut self, probability: f64) -> bool {
        assert!(!probability.is_nan());
        let certain = probability >= 1.0 || probability <= 0.0;
        if certain {
            probability >= 1.0
        } else {
            self.choose(&[probability, 1.0 - probability]) == 0
        }
    }

    fn pick<W: Copy + Into<f64>>(&mut self, weights: &[W], total: f64) -> usize {
        let weights: Vec<f64> = weights.iter().map(|&weight| weight.into()).collect();
        assert!(
            (weights.iter().sum::<f64>() - total).abs() <= 1e-12 * total,
            "total is the sum"
        );
        let support: Vec<usize> = (0..weights.len())
            .filter(|&index| weights[index] > 0.0)
            .collect();
        let probabilities: Vec<f64> = support
            .iter()
            .map(|&index| weights[index] / total)
            .collect();
        support[self.choose(&probabilities)]
    }
}
