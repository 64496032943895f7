//! One budget for several pairs.

/// Divides a budget among pairs with weights of so many bytes: each gets its weights, in order while they fit, and what
/// is then left for caches is shared equally. A pair whose weights do not fit gets what the weights before it left, and
/// will be refused with that number.
pub(super) fn share_budget(budget: u64, weights: &[u64]) -> Vec<u64> {
    let mut left = budget;
    let mut shares: Vec<Result<u64, u64>> = Vec::with_capacity(weights.len());
    for bytes in weights {
        match left.checked_sub(*bytes) {
            Some(rest) => {
                left = rest;
                shares.push(Ok(*bytes));
            }
            None => shares.push(Err(left)),
        }
    }
    let fitting = shares.iter().filter(|share| share.is_ok()).count();
    let caches = left / fitting.max(1) as u64;
    shares
        .into_iter()
        .map(|share| share.map_or_else(|refused| refused, |bytes| bytes + caches))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::share_budget;

    #[test]
    fn weights_come_first_and_caches_share_the_rest() {
        assert_eq!(share_budget(1000, &[400]), [1000]);
        assert_eq!(share_budget(1000, &[400, 200]), [600, 400]);
        assert_eq!(
            share_budget(1000, &[400, 700, 200]),
            [600, 600, 400],
            "the second does not fit and takes nothing"
        );
        assert_eq!(share_budget(100, &[400]), [100]);
        assert_eq!(share_budget(100, &[]), Vec::<u64>::new());
    }
}
