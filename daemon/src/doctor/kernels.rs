//! The CPU kernels of every instruction set that this machine has.

use tandem_model::check::{Format, Isa, Products, products};

use super::{Finding, of};

/// Chooses the random numbers.
const SEED: u64 = 20;

pub(super) fn check() -> Vec<Finding> {
    Isa::available().into_iter().map(check_set).collect()
}

fn check_set(isa: Isa) -> Finding {
    let found = Format::ALL
        .into_iter()
        .filter_map(|format| Some((format, products(isa, format, SEED).ok()?)));
    judge(isa.name(), &found.collect::<Vec<_>>())
}

fn judge(isa: &'static str, found: &[(Format, Products)]) -> Finding {
    let finding = of("kernels", isa);
    let wrong: Vec<String> = found
        .iter()
        .filter(|(_, products)| !products.is_sound())
        .map(|(format, products)| match products.batch_invariant {
            true => format!("{format:?} (error {:.1e})", products.error),
            false => format!("{format:?} (depends on the number of rows)"),
        })
        .collect();
    let errors = found.iter().map(|(_, products)| products.error);
    let error = errors.max_by(f64::total_cmp).unwrap_or(0.0);
    let finding = if wrong.is_empty() {
        finding.ok(format!(
            "{} formats, 1 to 17 rows: at most {error:.1e} from exact sums; rows are the same to the bit alone and \
             beside others",
            found.len()
        ))
    } else {
        finding
            .failed(format!("wrong products with {}", wrong.join(", ")))
            .advise("this processor, or Tandem on it, computes wrongly: please report it with this page")
    };
    finding
        .value("formats", found.len())
        .value("relative_error", error)
        .value(
            "batch_invariant",
            found.iter().all(|(_, products)| products.batch_invariant),
        )
}

#[cfg(test)]
mod tests {
    use super::super::Mark;
    use super::*;

    #[test]
    fn the_kernels_of_this_machine_are_sound() {
        for finding in check() {
            assert_eq!(finding.mark, Mark::Ok, "{finding:?}");
        }
    }

    #[test]
    fn wrong_kernels_are_named() {
        let products = |error, batch_invariant| Products {
            error,
            batch_invariant,
        };
        let finding = judge(
            "avx2",
            &[
                (Format::Q4_0, products(1e-8, true)),
                (Format::Q5K, products(0.5, true)),
                (Format::Q6K, products(1e-8, false)),
            ],
        );
        assert_eq!(finding.mark, Mark::Failed);
        let message = finding.message;
        assert!(!message.contains("Q4_0"), "{message}");
        assert!(
            message.contains("Q5K (error 5.0e-1)") && message.contains("Q6K (depends"),
            "{message}"
        );
    }
}
