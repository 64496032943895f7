//! What was probably meant.

/// Adds the nearest known key to serde's message about an unknown one.
///
/// serde names the unknown field first and every known one after it, each in backticks; there is no other way to learn
/// them, and a test notices should that change.
pub(super) fn explain(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let what = match message.split_once(" `") {
        Some(("unknown field", _)) => "key",
        Some(("unknown variant", _)) => "value",
        _ => return message.to_owned(),
    };
    match quoted.split_first() {
        Some((unknown, known)) => {
            format!("unknown {what} \"{unknown}\"{}", suggestion(unknown, known))
        }
        None => message.to_owned(),
    }
}

/// Names the nearest of the known words, or all of them where none is near.
pub(super) fn suggestion(wrong: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(wrong, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(wrong.len()) / 2)
        .min();
    match nearest {
        Some((_, candidate)) => format!("; did you mean \"{candidate}\"?"),
        None => format!("; known: {}", known.join(", ")),
    }
}
