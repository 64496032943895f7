//! A separate, smaller model of the same vocabulary as drafter.

use std::collections::HashMap;

use super::chain::{Chain, Distributions, drafts};
use super::{DraftRequest, Drafter};
use crate::backend::Logits;
use crate::model::{LanguageModel, ModelError, Row, Slot};
use crate::verify::Draft;
use crate::{SequenceId, TokenId};

/// Drafts with a model. Its cache is kept in step by the longest common prefix with the committed tokens, so that
/// rejection, full acceptance and a sequence that was parked for long are all the same case.
pub struct ModelDrafter {
    model: Box<dyn LanguageModel>,
    weight_bytes: u64,
    mapped_bytes: u64,
    /// Most rows that one call feeds for a sequence: a draft far behind catches up over several steps.
    max_rows: usize,
    /// What each sequence's cache was fed.
    fed: HashMap<SequenceId, (Slot, Vec<TokenId>)>,
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
            max_rows,
            fed: HashMap::new(),
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

    /// Brings the cache of a sequence back to what it shares with `tokens` and returns what it has yet to be fed.
    fn pending(&mut self, request: &DraftRequest<'_>) -> Result<(Slot, Vec<TokenId>), ModelError> {
        if !self.fed.contains_key(&request.id) {
            let slot = self.model.open()?;
            self.fed.insert(request.id, (slot, Vec::new()));
        }
        let (slot, fed) = self.fed.get_mut(&request.id).expect("inserted above");
        let common = fed
            .iter()
            .zip(request.tokens)
            .take_while(|(a, b)| a == b)
            .count();
        // The last token is always fed again: its logits are what the draft starts from.
        let common = common.min(request.tokens.len() - 1);
        fed.truncate(common);
        self.model.truncate(*slot, common);
        let upto = request.tokens.len().min(common + self.max_rows);
        Ok((*slot, request.tokens[common..upto].to_vec()))
    }

    fn forward(
        &mut self,
        batch: &[(SequenceId, Slot, &[TokenId])],
        want: &[usize],
    ) -> Result<&Logits, ModelError> {
        let rows: Vec<Row> = batch
            .iter()
            .flat_map(|(_, slot, tokens)| Row::chain(*slot, tokens))
            .collect();
        let logits = self.model.forward(&rows, want)?;
        for (id, _, tokens) in batch {
            self.fed
                .get_mut(id)
                .expect("fed sequences are known")
                .1
                .extend_from_slice(tokens);
        }
        Ok(logits)
    }
}

impl Drafter for ModelDrafter {
    fn name(&self) -> &'static str {
        "model"
    }

    fn draft(
        &mut self,
        _target: &mut dyn LanguageModel,
        requests: &mut [DraftRequest<'_>],
    ) -> Result<Vec<Draft>, ModelError> {
        let pending = requests
            .iter()
            .map(|request| self.pending(request))
            .collect::<Result<Vec<_>, _>>()?;
        // A chain for each sequence that this call brings up to date and that wants one.
        let (mut chains, mut want, mut end) = (Vec::new(), Vec::new(), 0);
        for (request, (slot, tokens)) in pending.iter().enumerate() {
            end += tokens.len();
            let asked = &requests[request];
            let caught_up = self.fed[&asked.id].1.len() + tokens.len() == asked.tokens.len();
            if caught_up && asked.max_len > 0 {
                chains.push(Chain::new(request, *slot, tokens.len()));
                want.push(end - 1);
            }
        }
        let batch: Vec<_> = pending
            .iter()
            .zip(requests.iter())
            .map(|((slot, tokens), request)| (request.id, *slot, tokens.as_slice()))
            .collect();
        let mut distributions = std::mem::take(&mut self.distributions);
        let mut logits = self.forward(&batch, &want)?;
        let mut active: Vec<usize> = (0..chains.len()).collect();
        while !active.is_empty() {
            for (row, chain) in active.iter().enumerate() {
                chains[*chain].draw(requests, logits.row(row), &mut distributions);
            }
            active.retain(|chain| chains[*chain].goes_on(requests));
            if active.is_empty() {
                break;
            }
            let batch: Vec<_> = active
                .iter()
                .map(|chain| {
                    let chain = &chains[*chain];
                    (requests[chain.request].id, chain.slot, chain.last())
                })
                .collect();
            let want: Vec<usize> = (0..batch.len()).collect();
            logits = self.forward(&batch, &want)?;
        }
        let drafts = drafts(requests.len(), chains, &mut distributions);
        self.distributions = distributions;
        Ok(drafts)
    }

    fn release(&mut self, id: SequenceId) {
        if let Some((slot, _)) = self.fed.remove(&id) {
            self.model.close(slot);
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
