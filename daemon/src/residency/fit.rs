//! Whether pairs fit into the budget together.
//!
//! A set of loads fits where all their weights are in memory at once and there is still room for the longest context of
//! any of them: then every request that a pair takes can run, if need be after others. What is left beyond that is shared
//! by whoever has requests.

use super::resident::Size;

/// How much is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed} bytes are needed ({weights} of weights and {caches} of caches) and the budget is {budget}; raise \
     memory.budget, lower context_length, or choose a smaller model"
)]
pub(crate) struct TooLarge {
    pub(crate) needed: u64,
    pub(crate) weights: u64,
    pub(crate) caches: u64,
    pub(crate) budget: u64,
}

/// Checks that loads of these sizes fit, of which running requests come to take `claimed` bytes of cache.
pub(crate) fn check(
    budget: u64,
    sizes: impl IntoIterator<Item = Size>,
    claimed: u64,
) -> Result<(), TooLarge> {
    let (mut weights, mut caches) = (0u64, claimed);
    for size in sizes {
        weights = weights.saturating_add(size.weights);
        caches = caches.max(size.context);
    }
    let needed = weights.saturating_add(caches);
    if needed <= budget {
        Ok(())
    } else {
        Err(TooLarge {
            needed,
            weights,
            caches,
            budget,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_add_up_and_caches_are_shared() {
        let size = |weights, context| Size { weights, context };
        assert_eq!(check(100, [size(60, 40)], 0), Ok(()));
        assert_eq!(check(100, [size(30, 40), size(30, 20)], 40), Ok(()));
        let error = check(100, [size(30, 40), size(31, 20)], 0).expect_err("one too many");
        assert_eq!((error.needed, error.weights, error.caches), (101, 61, 40));
        assert!(
            check(100, [size(30, 20), size(30, 20)], 41).is_err(),
            "running requests keep what they have"
        );
        assert!(check(0, [], 0).is_ok());
        let error = error.to_string();
        assert!(
            error.contains("101 bytes") && error.contains("memory.budget"),
            "{error}"
        );
    }
}
