//! A separate, smaller model of the same vocabulary as drafter.

use std::collections::HashMap;

use super::distributions::Distributions;
use super::growth::{Open, expand_all, next_round};
use super::{CatchUp, DraftRequest, Drafter, Drafting};
use crate::model::{LanguageModel, ModelError, Row, Slot};
use crate::policy::DraftKind;
use crate::{SequenceId, TokenId};

/// Tokens that a first round takes along; more are taken in before it, and timed apart.
const ALONG: usize = 4;

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

/// What a sequence's cache was fed.
struct Fed {
    slot: Slot,
    /// Committed tokens.
    tokens: Vec<TokenId>,
    /// The rows of the open tree: token, and parent among these.
    tree: Vec<(TokenId, Option<usize>)>,
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

    /// Says how many bytes of the weights are mapped from a prepared file.
    #[must_use]
    pub fn with_mapped(self, mapped_bytes: u64) -> Self {
        Self {
            mapped_bytes,
            ..self
        }
    }

    /// Brings the cache of a sequence to what it shares with the committed tokens, the newest aside: its logits are what
    /// a draft starts from, so it is always fed.
    fn align(&mut self, request: &DraftRequest<'_>) -> Result<(), ModelError> {
        if !self.sequences.contains_key(&request.id) {
            let fed = Fed {
                slot: self.model.open()?,
                tokens: Vec::new(),
                tree: Vec::new(),
            };
            self.sequences.insert(request.id, fed);
        }
        let fed = sequence(&mut self.sequences, request.id);
        let known = &request.tokens[..request.tokens.len() - 1];
        let common = fed.tokens.iter().zip(known).take_while(|(a, b)| a == b);
        let common = common.count();
        let mut path: Vec<usize> = Vec::new();
        if common == fed.tokens.len() {
            for token in &known[common..] {
                let step = (*token, path.last().copied());
                match fed.tree.iter().position(|row| *row == step) {
                    Some(row) => path.push(row),
                    None => break,
                }
            }
        }
        if path.is_empty() {
            self.model.truncate(fed.slot, common);
        } else {
            self.model.keep(fed.slot, common, &path)?;
        }
        fed.tokens.truncate(common);
        let drafted = &known[common..common + path.len()];
        fed.tokens.extend_from_slice(drafted);
        fed.tree.clear();
        Ok(())
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
        let mut places: Vec<Open> = Vec::new();
        let (mut rows, mut want) = (Vec::new(), Vec::new());
        let started = (step.clock)();
        for (index, request) in requests.iter().enumerate() {
            if plan.round(request.seat, kind, 0, 1.0) {
                self.align(request)?;
                catch_up.tokens += self.catch_up(request)?;
                places.push(Open::root(index, None));
            }
        }
        if places.is_empty() {
            return Ok(catch_up);
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
        let mut logits = self.model.forward(&rows, &want)?;
        let mut fed = vec![0; requests.len()];
        loop {
            let pool = &mut self.distributions;
            let mut next = expand_all(kind, plan, requests, &places, logits, pool);
            let sequences = &mut self.sequences;
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
            logits = self.model.grow(&rows, &want)?;
            places = next;
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
