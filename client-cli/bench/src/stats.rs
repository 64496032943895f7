//! Medians and what surrounds them. Samples of a machine that others use have long tails, so means are not used.

/// A median with its quartiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Samples.
    pub count: usize,
    /// First quartile.
    pub low: f64,
    /// Median.
    pub median: f64,
    /// Third quartile.
    pub high: f64,
}

impl Spread {
    /// Summarizes the finite ones of these values; `None` where there is none.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        Some(Self {
            count: values.len(),
            low: quantile(&values, 0.25)?,
            median: quantile(&values, 0.5)?,
            high: quantile(&values, 0.75)?,
        })
    }

    /// Distance of the quartiles over the median; 0 where the median is.
    #[must_use]
    pub fn relative_width(&self) -> f64 {
        if self.median == 0.0 {
            0.0
        } else {
            (self.high - self.low) / self.median.abs()
        }
    }
}

/// Returns the value below which a `share` (0 to 1) of sorted values lies, linear between them.
#[must_use]
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let place = (sorted.len().checked_sub(1)?) as f64 * share.clamp(0.0, 1.0);
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (low, high) = (*sorted.get(below)?, *sorted.get(above)?);
    Some(low + (high - low) * (place - below as f64))
}

/// Returns the median of the finite ones of these values.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Spread::of(values).map(|spread| spread.median)
}

/// Returns the geometric mean of positive values: what ratios are averaged by.
#[must_use]
pub fn geometric_mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = values
        .into_iter()
        .filter(|value| value.is_finite() && *value > 0.0)
        .map(f64::ln)
        .collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_values() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0, 5.0, f64::NAN]).unwrap();
        assert_eq!(
            (spread.count, spread.low, spread.median, spread.high),
            (5, 2.0, 3.0, 4.0)
        );
        assert_eq!(spread.relative_width(), 2.0 / 3.0);
        assert_eq!(Spread::of([1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Spread::of([f64::INFINITY]), None);
        assert_eq!(geometric_mean([2.0, 8.0]).map(f64::round), Some(4.0));
        assert_eq!(geometric_mean([0.0, -1.0]), None);
        assert_eq!(quantile(&[], 0.5), None);
    }

    proptest! {
        #[test]
        fn order_of_samples_means_nothing(mut values in prop::collection::vec(-1e6..1e6, 1..40)) {
            let spread = Spread::of(values.clone()).unwrap();
            values.reverse();
            prop_assert_eq!(Spread::of(values.clone()), Some(spread));
            prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
            let below = values.iter().filter(|value| **value <= spread.median).count();
            let above = values.iter().filter(|value| **value >= spread.median).count();
            prop_assert!(2 * below >= values.len() && 2 * above >= values.len());
        }

        #[test]
        fn one_disturbed_sample_in_five_moves_no_median_beyond_its_neighbours(
            values in prop::collection::vec(1.0..2.0, 4),
            disturbed in 0.0..1e9,
        ) {
            let with = median(values.iter().copied().chain([disturbed])).unwrap();
            prop_assert!((1.0..=2.0).contains(&with));
        }

        #[test]
        fn a_scale_scales_every_figure(values in prop::collection::vec(0.1..10.0_f64, 1..20), scale in 0.1..10.0_f64) {
            let plain = Spread::of(values.clone()).unwrap();
            let scaled = Spread::of(values.iter().map(|value| value * scale)).unwrap();
            prop_assert!((plain.median * scale - scaled.median).abs() < 1e-9 * scaled.median);
            let means = (geometric_mean(values.clone()).unwrap(), geometric_mean(values.iter().map(|v| v * scale)).unwrap());
            prop_assert!((means.0 * scale / means.1 - 1.0).abs() < 1e-9);
        }
    }
}
