//! Texts that exist in numbers only, decoded together.

use super::machines::Machine;
use crate::policy::{
    Batch, Candidate, CatchUp, Controller, DraftKind, DraftState, DraftTime, Evidence, NodeOutcome,
    Outcome, Policy, Protection, StepPlan, StepTimes,
};

/// Uniform numbers in [0, 1).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// What the text so far suggests at a token: how long the match is, and how likely each of the tokens is that follow it.
pub(super) type Guess = (usize, f64);

/// A request: how likely the draft of each of its tokens is accepted, and what the drafter's confidence is there.
pub(super) struct Text<'a> {
    pub(super) acceptance: Box<dyn Fn(usize) -> f64 + 'a>,
    pub(super) confidence: Option<Box<dyn Fn(usize) -> f64 + 'a>>,
    pub(super) guess: Option<Box<dyn Fn(usize) -> Option<Guess> + 'a>>,
    pub(super) length: usize,
    /// Tokens that the draft has yet to take in before it can draft, each a hundredth of a plain step.
    pub(super) behind: usize,
    pub(super) policy: Option<Policy>,
    pub(super) state: DraftState,
    pub(super) tokens: usize,
    pub(super) elapsed: f64,
    /// Seconds that plain steps of the same batches would have taken.
    pub(super) plain: f64,
    /// By how much the controller took plain decoding for slower than it was.
    pub(super) error: f64,
    /// Most that was lost at any time beyond the allowance of that time, in seconds.
    pub(super) overdrawn: f64,
    /// Most by which drafts took longer in a step than was expected.
    pub(super) surprise: f64,
    /// Least and most that plain decoding was taken for, in seconds.
    pub(super) plain_range: (f64, f64),
    pub(super) trace: Vec<(usize, bool)>,
}

pub(super) fn text<'a>(length: usize, acceptance: impl Fn(usize) -> f64 + 'a) -> Text<'a> {
    Text {
        acceptance: Box::new(acceptance),
        confidence: None,
        guess: None,
        length,
        behind: 0,
        policy: None,
        state: DraftState::default(),
        tokens: 0,
        elapsed: 0.0,
        plain: 0.0,
        error: 0.0,
        overdrawn: f64::NEG_INFINITY,
        surprise: 0.0,
        plain_range: (f64::INFINITY, 0.0),
        trace: Vec::new(),
    }
}

impl Text<'_> {
    pub(super) fn speedup(&self) -> f64 {
        self.plain / self.elapsed
    }

    pub(super) fn probes(&self) -> usize {
        self.trace.iter().filter(|(_, probe)| *probe).count()
    }

    pub(super) fn drafted_steps(&self) -> usize {
        self.trace
            .iter()
            .filter(|(drafted, _)| *drafted > 0)
            .count()
    }
}

pub(super) fn controller(policy: Policy) -> Controller {
    Controller::new(policy, Protection::EachRequest)
}

/// Decodes all texts together until each has its length.
pub(super) fn run(
    controller: &mut Controller,
    machine: &Machine,
    texts: &mut [Text<'_>],
    dice: &mut Dice,
) {
    let mut plan = StepPlan::default();
    let mut now = 0.0;
    while texts.iter().any(|text| text.tokens < text.length) {
        let mut running: Vec<&mut Text<'_>> = texts
            .iter_mut()
            .filter(|text| text.tokens < text.length)
            .collect();
        now += step(controller, machine, &mut plan, &mut running, (dice, now));
    }
}

fn step(
    controller: &mut Controller,
    machine: &Machine,
    plan: &mut StepPlan,
    running: &mut [&mut Text<'_>],
    (dice, now): (&mut Dice, f64),
) -> f64 {
    let batch = Batch {
        rows: running.len(),
        running: running.len(),
        max_rows: 64,
        positions: 100,
        prompt: false,
    };
    let candidates = running.iter().map(|text| Candidate {
        state: &text.state,
        kinds: [true, false, text.guess.is_some()],
        remaining: text.length - text.tokens,
        behind: [text.behind, 0, 0],
        policy: text.policy,
        width: None,
    });
    controller.plan(plan, batch, candidates);
    let factor = (machine.drift)(now) * (1.0 + machine.noise * (dice.roll() - 0.5));
    let (mut drafts, mut open) = (vec![Vec::new(); running.len()], vec![1.0; running.len()]);
    let guesses: Vec<Option<Guess>> = running
        .iter()
        .map(|text| text.guess.as_ref().and_then(|guess| guess(text.tokens)))
        .collect();
    let guessed: Vec<usize> = (0..running.len())
        .map(|i| guesses[i].map_or(0, |(length, _)| plan.offer_guess(i, length, 16)))
        .collect();
    let (mut rounds, mut depth, mut caught_up, mut taken_in) = (0, 0, 0, 0);
    // All chains grow by one token a round.
    loop {
        let growing: Vec<usize> = (0..running.len())
            .filter(|&i| drafts[i].len() == depth && open[i] > 0.0)
            .filter(|&i| plan.round(i, DraftKind::Model, depth, open[i]))
            .collect();
        if growing.is_empty() {
            break;
        }
        rounds += 1;
        for i in growing {
            caught_up += usize::from(running[i].behind > 0);
            taken_in += std::mem::take(&mut running[i].behind);
            let confidence = running[i]
                .confidence
                .as_ref()
                .map(|at| at(running[i].tokens + depth));
            let offered = plan.offer(i, DraftKind::Model, depth, 0, open[i], confidence);
            open[i] = offered.unwrap_or(0.0);
            if offered.is_some() {
                drafts[i].push(confidence.map_or(Evidence::None, Evidence::Confidence));
            }
        }
        depth += 1;
    }
    let drafted = drafts.iter().map(Vec::len).chain(guessed.iter().copied());
    let rows = running.len() + drafted.sum::<usize>();
    let round_seconds = f64::from(rounds) * machine.round * factor;
    let verify = (machine.step)(rows) * factor;
    let plain = (machine.step)(running.len()) * (machine.drift)(now);
    let times = StepTimes {
        rows,
        drafts: &[DraftTime {
            kind: DraftKind::Model,
            round_seconds,
            catch_up: CatchUp {
                requests: caught_up,
                tokens: taken_in,
                seconds: 0.01 * taken_in as f64 * factor,
            },
            cold: false,
        }],
        verify,
        ..StepTimes::default()
    };
    controller.record_step(plan, &times);
    let estimate = controller.costs().step(running.len(), 100);
    let is_plain = rows == running.len();
    for (i, text) in running.iter_mut().enumerate() {
        let mut nodes = Vec::new();
        for (depth, &evidence) in drafts[i].iter().enumerate() {
            let accepted = dice.roll() < (text.acceptance)(text.tokens + depth);
            nodes.push(NodeOutcome {
                kind: DraftKind::Model,
                depth,
                sibling: 0,
                evidence,
                accepted,
            });
            if !accepted {
                break;
            }
        }
        let mut accepted = nodes.iter().filter(|node| node.accepted).count();
        if let Some((length, likely)) = guesses[i] {
            let right = (0..guessed[i]).take_while(|_| dice.roll() < likely).count();
            nodes.extend((0..guessed[i].min(right + 1)).map(|depth| NodeOutcome {
                kind: DraftKind::Lookup,
                depth,
                sibling: 0,
                evidence: Evidence::Match(length + depth),
                accepted: depth < right,
            }));
            accepted = accepted.max(right);
        }
        let outcome = Outcome {
            committed: accepted + 1,
            accepted,
            nodes: &nodes,
        };
        text.trace.push((drafts[i].len(), plan.probes(i)));
        controller.record(plan, i, &mut text.state, &outcome);
        text.surprise = text
            .surprise
            .max(round_seconds + verify - estimate - plan.extra);
        let (least, most) = text.plain_range;
        text.plain_range = (least.min(estimate), most.max(estimate));
        let allowance = 10.0 * estimate + 0.02 * text.elapsed;
        text.tokens += accepted + 1;
        text.elapsed += round_seconds + verify;
        // A plain step costs what plain decoding costs, with the same noise.
        let first = if is_plain { verify } else { plain };
        text.plain += first + accepted as f64 * plain;
        text.error +=
            if is_plain { 0.0 } else { estimate - plain } + accepted as f64 * (estimate - plain);
        let lost = text.elapsed - text.plain - text.error;
        text.overdrawn = text.overdrawn.max(lost - allowance);
    }
    round_seconds + verify
}
