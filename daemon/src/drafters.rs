//! What drafts for a pair by its configuration, and requests that insist on it.

use tandem_engine::policy::DraftKind;
use tonic::Status;

use crate::config::DraftConfig;
use crate::convert::{Plan, Speculation};
use crate::errors;
use crate::residency::{Pair, Recipe};

/// Returns what drafts by a recipe; without its draft only what needs none.
pub(crate) fn drafters(recipe: &Recipe, with_draft: bool) -> impl Iterator<Item = DraftKind> {
    let draft = match recipe.draft {
        DraftConfig::None => None,
        DraftConfig::Model(_) => Some(DraftKind::Model),
        DraftConfig::Adapter(_) | DraftConfig::Layer(_) | DraftConfig::MeasuredLayer => {
            Some(DraftKind::SelfDraft)
        }
    };
    let lookup = recipe.speculation.lookup_history;
    let lookup = lookup.map(|_| DraftKind::Lookup);
    draft.filter(|_| with_draft).into_iter().chain(lookup)
}

/// Refuses a request that requires a draft where none is configured that it allows.
pub(crate) fn check_required(pair: &Pair, plan: &Plan) -> Result<(), Status> {
    if plan.speculation != Speculation::Required {
        return Ok(());
    }
    let recipe = pair.settings().recipe;
    let Some(allowed) = plan.drafters else {
        return match recipe.draft {
            DraftConfig::None => Err(errors::no_speculation(&pair.name, "no draft is configured")),
            _ => Ok(()),
        };
    };
    if drafters(&recipe, true).any(|kind| allowed[kind.index()]) {
        return Ok(());
    }
    let why = "none of the draft methods that the request allows is configured";
    Err(errors::no_speculation(&pair.name, why))
}
