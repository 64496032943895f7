//! Whether a row's logits depend on what is computed with it.

use super::{chain, forward};
use crate::TokenId;
use crate::model::{Exit, LanguageModel, ModelError, Row};

/// Rows of a step: about the places where kernels change.
const WIDTHS: [usize; 16] = [2, 3, 7, 8, 9, 15, 16, 17, 24, 32, 33, 48, 64, 65, 100, 200];
/// Rows that are compared.
const ROWS: usize = 200;

/// What was found to differ.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    /// Compares rows to the bit.
    fn compare(&mut self, what: impl Into<String>, found: &[Vec<f32>], expected: &[Vec<f32>]) {
        let same = |(a, b): &(&Vec<f32>, &Vec<f32>)| {
            a.iter()
                .map(|x| x.to_bits())
                .eq(b.iter().map(|x| x.to_bits()))
        };
        let equal = found.iter().zip(expected).filter(same).count();
        if equal < expected.len() || found.len() != expected.len() {
            let (what, rows) = (what.into(), expected.len());
            let differing = rows - equal;
            self.0
                .push(format!("{what}: {differing} of {rows} rows differ"));
        }
    }
}

/// Compares, to the bit, steps of one row with steps of up to 200, with rows of trees beside another sequence, with what
/// follows a kept path and a truncation, and with early rows that resume; returns what differs. The first third of the
/// tokens, of which there are at least three, is the prompt.
///
/// # Errors
/// As [`LanguageModel::forward`].
pub fn invariance(
    model: &mut dyn LanguageModel,
    tokens: &[TokenId],
) -> Result<Vec<String>, ModelError> {
    let mut differences = Differences::default();
    let (prompt, rest) = tokens.split_at(tokens.len() / 3);
    let base = model.open()?;
    chain(model, base, prompt, 1)?;
    let tokens: Vec<TokenId> = rest.iter().copied().cycle().take(ROWS).collect();
    let single = model.fork(base, prompt.len())?;
    let expected: Vec<Vec<f32>> = tokens
        .iter()
        .map(|token| Ok(chain(model, single, &[*token], 1)?.remove(0)))
        .collect::<Result<_, ModelError>>()?;
    for width in WIDTHS {
        let slot = model.fork(base, prompt.len())?;
        let mut found = Vec::new();
        for piece in tokens.chunks(width) {
            found.extend(chain(model, slot, piece, piece.len())?);
        }
        differences.compare(format!("steps of {width} rows"), &found, &expected);
        model.close(slot);
    }

    // A tree of which the even rows are the chain, each with a sibling that goes elsewhere, beside another sequence.
    let [tree, other] = [
        model.fork(base, prompt.len())?,
        model.fork(base, prompt.len())?,
    ];
    let mut rows = Vec::new();
    for (depth, token) in tokens[..20].iter().enumerate() {
        let sibling = rest[(depth + 7) % rest.len()];
        let row = |token| Row {
            slot: tree,
            token,
            parent: (2 * depth).checked_sub(2),
        };
        rows.extend([row(*token), row(sibling)]);
    }
    rows.extend(Row::chain(other, &tokens[..5]));
    let found = forward(model, &rows, rows.len())?;
    let path: Vec<Vec<f32>> = found[..40].iter().step_by(2).cloned().collect();
    differences.compare("a tree's path", &path, &expected[..20]);
    differences.compare("a neighbour", &found[40..], &expected[..5]);
    let offsets: Vec<usize> = (0..20).map(|depth| 2 * depth).collect();
    model.keep(tree, prompt.len(), &offsets)?;
    let next = chain(model, tree, &tokens[20..28], 8)?;
    differences.compare("after a kept path", &next, &expected[20..28]);
    model.truncate(tree, prompt.len() + 4);
    let next = chain(model, tree, &tokens[4..9], 5)?;
    differences.compare("after a truncation", &next, &expected[4..9]);

    let layers = model.config().layers / 2;
    if layers > 0 {
        let early = model.fork(base, prompt.len())?;
        let rows: Vec<Row> = Row::chain(early, &tokens[..6]).collect();
        model.early(&rows[..4], &[3], Exit::Layer(layers))?;
        let found = forward(model, &rows, 6)?;
        differences.compare("resumed rows", &found, &expected[..6]);
        model.close(early);
    }
    for slot in [base, single, tree, other] {
        model.close(slot);
    }
    Ok(differences.0)
}
