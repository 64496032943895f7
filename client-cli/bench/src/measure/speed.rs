//! Answers to the prompts with every method: speed over plain decoding, and the parts of a step.

use std::collections::HashMap;
use std::time::Instant;

use tandem_client::GenerateRequest;

use super::Bench;
use super::answer::{Answer, repeated};
use crate::BenchError;
use crate::method::Method;
use crate::prompts::Prompt;
use crate::report::Run;

/// Tokens of an answer that only warms up.
const WARM_UP_TOKENS: u32 = 24;
/// Prompts that each method warms up with.
const WARM_UP_PROMPTS: usize = 2;

impl Bench<'_> {
    pub(super) async fn speed(&mut self, prompts: &[Prompt]) -> Result<(), BenchError> {
        self.warm_up(prompts).await?;
        let (rounds, tokens) = (self.extent().rounds, self.extent().tokens);
        self.begin(
            "measuring speed",
            rounds * prompts.len() * self.methods.len(),
        );
        let mut firsts = HashMap::new();
        let (began, mut round) = (Instant::now(), 0);
        while self.another(round, rounds, began) {
            for (index, prompt) in prompts.iter().enumerate() {
                for method in self.order(round + index) {
                    let request = GenerateRequest::user(&prompt.prompt).max_tokens(tokens);
                    let (answer, joules) = self.ask(method, request).await?;
                    self.compare(&mut firsts, method, index, prompt, &answer);
                    self.report.runs.push(Run {
                        method,
                        category: prompt.category.clone(),
                        prompt: index,
                        round,
                        tokens: answer.tokens(),
                        first_token: answer.first_token,
                        decode: answer.decode,
                        joules,
                        repeated: repeated(&answer.token_ids),
                        speculation: answer.speculation,
                    });
                    self.part();
                }
            }
            round += 1;
        }
        Ok(())
    }

    /// Lets caches fill, and the policy learn what steps cost.
    async fn warm_up(&mut self, prompts: &[Prompt]) -> Result<(), BenchError> {
        let stride = prompts.len().div_ceil(WARM_UP_PROMPTS).max(1);
        let chosen: Vec<&Prompt> = prompts.iter().step_by(stride).collect();
        self.begin("warming up", chosen.len() * self.methods.len());
        for prompt in chosen {
            for method in self.methods.clone() {
                let request = GenerateRequest::user(&prompt.prompt).max_tokens(WARM_UP_TOKENS);
                self.ask(method, request).await?;
                self.part();
            }
        }
        Ok(())
    }

    /// Greedy answers must not depend on how they were decoded.
    fn compare(
        &mut self,
        firsts: &mut HashMap<usize, Vec<u32>>,
        method: Method,
        index: usize,
        prompt: &Prompt,
        answer: &Answer,
    ) {
        let Some(first) = firsts.get(&index) else {
            firsts.insert(index, answer.token_ids.clone());
            return;
        };
        let texts = &mut self.report.texts;
        texts.compared += 1;
        if *first != answer.token_ids {
            let name = format!("{method}, prompt {} ({})", index + 1, prompt.category);
            if !texts.different.contains(&name) {
                texts.different.push(name);
            }
        }
    }
}
