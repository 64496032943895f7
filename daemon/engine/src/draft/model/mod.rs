//! A separate, smaller model of the same vocabulary as drafter.

mod ahead;
mod fed;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use tandem_model::model::{LanguageModel, ModelError, Rehearsal, Row};

use super::distributions::Distributions;
use super::growth::{Open, expand_all, expand_foreseen, next_round};
use super::{DraftRequest, Drafter, Drafting, Expected, Reach};
use crate::SequenceId;
use crate::policy::{CatchUp, DraftKind};

use fed::Fed;
pub(super) use fed::Foreseen;

/// Tokens that a first round takes along; more are taken in before it, and timed apart.
const ALONG: usize = 4;

/// Rows of the largest round that is rehearsed: the tokens since the last round, or the places of a tree that a round follows.
const REHEARSED: usize = 6;

/// Drafts with a model. Its cache is kept in step by the longest common prefix with the committed tokens, so that
/// rejection, full acceptance and a sequence that was parked for long are all the same case. What was drafted and then
/// accepted need not be fed again.
pub struct ModelDrafter {
    model: Box<dyn LanguageModel>,
    weight_bytes: u64,
    mapped_bytes: u64,
    /// Most rows of one forward.
    max_rows: usize,
    sequences: HashMap<SequenceId, Fed>,
    distributions: Distributions,
}

impl std::fmt::Debug for ModelDrafter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelDrafter")
            .field("config", self.model.config())
            .finish_non_exhaustive()
    }
}

impl ModelDrafter {
    /// Wraps a model whose weights take `weight_bytes`.
    #[must_use]
    pub fn new(model: Box<dyn LanguageModel>, weight_bytes: u64, max_rows: usize) -> Self {
        Self {
            model,
            weight_bytes,
            mapped_bytes: 0,
            max_rows: max_rows.max(1),
            sequences: HashMap::new(),
            distributions: Distributions::default(),
        }
    }

    /// Says how many tokens the target has: none beyond is proposed.
    #[must_use]
    pub fn for_vocabulary(self, tokens: usize) -> Self {
        let own = self.model.config().vocabulary;
        Self {
            distributions: Distributions::within((tokens < own).then_some(tokens)),
            ..self
        }
    }

    /// Says how many bytes of the weights are mapped from a prepared file.
    #[must_use]
    pub fn with_mapped(self, mapped_bytes: u64) -> Self {
        Self {
            mapped_bytes,
            ..self
        }
    }

    /// Brings the cache of a sequence to what it shares with the committed tokens; returns what was computed ahead.
    fn align(&mut self, request: &DraftRequest<'_>) -> Result<Vec<Foreseen>, ModelError> {
        if !self.sequences.contains_key(&request.id) {
            let fed = Fed::new(self.model.open()?);
            self.sequences.insert(request.id, fed);
        }
        let fed = sequence(&mut self.sequences, request.id);
        fed.align(&mut *self.model, request.tokens)
    }

    /// Feeds what a sequence lacks, all but the last few tokens; returns how many.
    fn catch_up(&mut self, request: &DraftRequest<'_>) -> Result<usize, ModelError> {
        let fed = sequence(&mut self.sequences, request.id);
        let end = request.tokens.len() - 1;
        let start = fed.tokens.len();
        if end - start < ALONG {
            return Ok(0);
        }
        for piece in request.tokens[start..end].chunks(self.max_rows) {
            let rows: Vec<Row> = Row::chain(fed.slot, piece).collect();
            self.model.forward(&rows, &[])?;
            fed.tokens.extend_from_slice(piece);
        }
        Ok(end - start)
    }
}

fn sequence(sequences: &mut HashMap<SequenceId, Fed>, id: SequenceId) -> &mut Fed {
    sequences
        .get_mut(&id)
        .expect("a sequence is aligned before it is fed")
}

impl Drafter for ModelDrafter {
    fn kind(&self) -> DraftKind {
        DraftKind::Model
    }

    fn name(&self) -> &'static str {
        "model"
    }

    fn draft(
        &mut self,
        step: Drafting<'_>,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<CatchUp, ModelError> {
        let (kind, plan) = (self.kind(), step.plan);
        let mut catch_up = CatchUp::default();
        let (mut places, mut next): (Vec<Open>, Vec<Open>) = (Vec::new(), Vec::new());
        let (mut rows, mut want) = (Vec::new(), Vec::new());
        let mut fed = vec![0; requests.len()];
        let positions = self.reach().positions;
        let started = (step.clock)();
        for index in 0..requests.len() {
            let request = &requests[index];
            let known = self.sequences.get(&request.id);
            let goes_on = match known.is_some_and(|fed| fed.foresees(request.tokens)) {
                true => plan.known_round(request.seat, kind, 0),
                false => plan.round(request.seat, kind, 0, 1.0),
            };
            if !goes_on {
                continue;
            }
            let foreseen = self.align(request)?;
            let root = Open::root(index, None);
            if foreseen.is_empty() {
                let tokens = self.catch_up(request)?;
                catch_up.requests += usize::from(tokens > 0);
                catch_up.tokens += tokens;
                places.push(root);
            } else {
                fed[index] = foreseen.len() - 1;
                let pool = &mut self.distributions;
                expand_foreseen(kind, plan, requests, root, &foreseen, pool, &mut next);
            }
        }
        if catch_up.tokens > 0 {
            catch_up.seconds = ((step.clock)() - started).as_secs_f64();
        }
        for place in &places {
            let request = &requests[place.request];
            let fed = sequence(&mut self.sequences, request.id);
            let pending = &request.tokens[fed.tokens.len()..];
            rows.extend(Row::chain(fed.slot, pending));
            fed.tokens.extend_from_slice(pending);
            want.push(rows.len() - 1);
        }
        if !places.is_empty() {
            let logits = self.model.forward(&rows, &want)?;
            let pool = &mut self.distributions;
            expand_all(kind, plan, requests, &places, logits, pool, &mut next)?;
        }
        loop {
            let sequences = &mut self.sequences;
            next.retain(|place| place.is_within(positions, requests));
            let slot = |request: usize| sequences[&requests[request].id].slot;
            next_round(kind, plan, requests, &mut next, &mut fed, slot, &mut rows);
            if next.is_empty() {
                return Ok(catch_up);
            }
            for (place, row) in next.iter().zip(&rows) {
                let id = requests[place.request].id;
                sequence(sequences, id).tree.push((row.token, row.parent));
            }
            want.clear();
            want.extend(0..rows.len());
            let logits = self.model.grow(&rows, &want)?;
            places = std::mem::take(&mut next);
            let pool = &mut self.distributions;
            expand_all(kind, plan, requests, &places, logits, pool, &mut next)?;
        }
    }

    fn ahead(&mut self, expected: &[Expected<'_>], stop: &AtomicBool) -> Result<(), ModelError> {
        let reach = self.reach();
        self.model.alone(true);
        let (model, sequences) = (&mut *self.model, &mut self.sequences);
        let result = ahead::run(model, sequences, &self.distributions, reach, expected, stop);
        self.model.alone(false);
        result
    }

    fn preparations(&self) -> u64 {
        self.model.preparations()
    }

    fn rehearse(&mut self, rehearsal: &Rehearsal<'_>) -> Result<(), ModelError> {
        rehearsal.run(&mut *self.model, REHEARSED, |_, _, _| {})
    }

    fn reach(&self) -> Reach {
        let config = self.model.config();
        Reach {
            vocabulary: config.vocabulary,
            positions: config.context_length,
        }
    }

    fn behind(&self, id: SequenceId, tokens: usize) -> usize {
        let fed = self.sequences.get(&id);
        // Drafted tokens that were accepted lie in the tree, so this may say a few too many.
        let known = fed.map_or(0, |fed| fed.tokens.len() + fed.tree.len());
        (tokens - 1).saturating_sub(known)
    }

    fn park(&mut self, id: SequenceId) {
        self.release(id);
    }

    fn release(&mut self, id: SequenceId) {
        if let Some(fed) = self.sequences.remove(&id) {
            self.model.close(fed.slot);
        }
    }

    fn weight_bytes(&self) -> u64 {
        self.weight_bytes
    }

    fn mapped_bytes(&self) -> u64 {
        self.mapped_bytes
    }

    fn cache_bytes(&self, _target: &dyn LanguageModel) -> u64 {
        self.model.cache_bytes()
    }

    fn cache_bytes_per_position(&self) -> u64 {
        self.model.cache_bytes_per_position()
    }
}
