//! Admission and losslessness: the text is the target's to the last digit while a plan decides on confidence, and is not
//! where a decision looks at the token. Every draw of drafter and verification is walked through with its probability.

use crate::policy::{
    Batch, Candidate, Controller, DraftKind, DraftState, Evidence, NodeOutcome, Outcome, Policy,
    Protection, StepPlan, StepTimes,
};

const VOCABULARY: usize = 3;
type Probs = [f64; VOCABULARY];

/// What target and draft say after some tokens.
struct Models {
    target: fn(&[usize]) -> Probs,
    draft: fn(&[usize]) -> Probs,
}

/// Whether a token is verified: by its distribution alone, or wrongly by itself.
#[derive(Clone, Copy, PartialEq)]
enum Gate {
    Confidence,
    Token,
}

fn target(tokens: &[usize]) -> Probs {
    match tokens.last() {
        None => [0.5, 0.3, 0.2],
        Some(0) => [0.1, 0.6, 0.3],
        Some(1) => [0.25, 0.25, 0.5],
        _ => [0.7, 0.1, 0.2],
    }
}

fn draft(tokens: &[usize]) -> Probs {
    match tokens.last() {
        None => [0.6, 0.1, 0.3],
        Some(0) => [0.34, 0.33, 0.33],
        Some(1) => [0.05, 0.05, 0.9],
        _ => [0.45, 0.45, 0.1],
    }
}

fn confidence(probs: &Probs) -> f64 {
    probs.iter().copied().fold(0.0, f64::max)
}

/// A controller that knows sure tokens from unsure ones, on a machine where unsure ones do not pay.
fn informed() -> (Controller, DraftState) {
    let mut controller = Controller::new(Policy::Goodput, Protection::EachRequest);
    let (mut plan, mut state) = (StepPlan::default(), DraftState::default());
    for step in 0..600_usize {
        let rows = 1 + step % 4;
        controller.plan(&mut plan, BATCH, [candidate(&state)].into_iter());
        let times = StepTimes {
            rows,
            verify: 1.0 + 0.2 * (rows - 1) as f64,
            ..StepTimes::default()
        };
        controller.record_step(&mut plan, &times);
        let sure = step % 2 == 0;
        let node = NodeOutcome {
            kind: DraftKind::Model,
            depth: step % 3,
            sibling: 0,
            evidence: Evidence::Confidence(if sure {
                [0.6, 0.9][step / 2 % 2]
            } else {
                [0.34, 0.45][step / 2 % 2]
            }),
            accepted: sure == (step % 20 > 1),
        };
        let outcome = Outcome {
            committed: 1,
            accepted: 0,
            nodes: &[node],
        };
        controller.record(&plan, 0, &mut state, &outcome);
    }
    (controller, state)
}

const BATCH: Batch = Batch {
    rows: 1,
    running: 1,
    max_rows: 16,
    positions: 10,
    prompt: false,
};

fn candidate(state: &DraftState) -> Candidate<'_> {
    Candidate {
        state,
        kinds: [true, false, false],
        remaining: 100,
        behind: [0; DraftKind::COUNT],
        policy: None,
        width: None,
    }
}

/// Follows every draw of a chain; a leaf is verified, and what it emits is added to `joint`. The plan is copied at each
/// branch: draws are alternatives, not events of one step.
fn every_draft(
    models: &Models,
    gate: Gate,
    plan: &StepPlan,
    (tokens, drawn_from, survival, probability): (Vec<usize>, Vec<Probs>, f64, f64),
    joint: &mut [f64],
    lengths: &mut Vec<usize>,
) {
    let depth = tokens.len();
    let mut plan = plan.clone();
    let round = depth < LENGTH - 1 && plan.round(0, DraftKind::Model, depth, survival);
    let probs = (models.draft)(&tokens);
    let mut branch = |plan: &StepPlan, token: usize, survival: f64| {
        let (mut tokens, mut drawn_from) = (tokens.clone(), drawn_from.clone());
        tokens.push(token);
        drawn_from.push(probs);
        let next = (tokens, drawn_from, survival, probability * probs[token]);
        every_draft(models, gate, plan, next, joint, lengths);
    };
    let mut ended = if round { 0.0 } else { 1.0 };
    if round && gate == Gate::Confidence {
        match plan.offer(
            0,
            DraftKind::Model,
            depth,
            0,
            survival,
            Some(confidence(&probs)),
        ) {
            Some(next) => (0..VOCABULARY).for_each(|token| branch(&plan, token, next)),
            None => ended = 1.0,
        }
    } else if round {
        for (token, prob) in probs.into_iter().enumerate() {
            let before = plan.clone();
            match plan.offer(0, DraftKind::Model, depth, 0, survival, Some(prob)) {
                Some(next) => branch(&plan, token, next),
                None => ended += prob,
            }
            plan = before;
        }
    }
    if ended > 0.0 {
        lengths.push(depth);
        verify(models, &tokens, &drawn_from, probability * ended, joint);
    }
}

/// Tokens that are compared.
const LENGTH: usize = 3;

/// Rejection sampling of a chain, every outcome with its probability; what comes after is the target's.
fn verify(
    models: &Models,
    drafted: &[usize],
    drawn_from: &[Probs],
    probability: f64,
    joint: &mut [f64],
) {
    let mut reached = probability;
    for depth in 0..=drafted.len() {
        let kept = &drafted[..depth];
        let target = (models.target)(kept);
        let Some(&token) = drafted.get(depth) else {
            complete(models, kept, reached, joint);
            return;
        };
        let draft = drawn_from[depth];
        let accept = (target[token] / draft[token]).min(1.0);
        let rest: Probs = std::array::from_fn(|other| (target[other] - draft[other]).max(0.0));
        let total: f64 = rest.iter().sum();
        for other in (0..VOCABULARY).filter(|_| total > 0.0) {
            let next = [kept, &[other]].concat();
            complete(
                models,
                &next,
                reached * (1.0 - accept) * rest[other] / total,
                joint,
            );
        }
        reached *= accept;
    }
}

/// Spreads the probability of a beginning over all texts of the compared length, as the target continues it.
fn complete(models: &Models, tokens: &[usize], probability: f64, joint: &mut [f64]) {
    if probability == 0.0 {
        return;
    }
    if tokens.len() >= LENGTH {
        let text = &tokens[..LENGTH];
        joint[text
            .iter()
            .fold(0, |index, token| index * VOCABULARY + token)] += probability;
        return;
    }
    for (token, prob) in (models.target)(tokens).into_iter().enumerate() {
        complete(
            models,
            &[tokens, &[token]].concat(),
            probability * prob,
            joint,
        );
    }
}

/// The largest deviation of a text's probability from the target's, and the draft lengths that occurred.
fn deviation(gate: Gate) -> (f64, Vec<usize>) {
    let models = Models { target, draft };
    let (controller, state) = informed();
    let mut plan = StepPlan::default();
    controller.plan(&mut plan, BATCH, [candidate(&state)].into_iter());
    let count = VOCABULARY.pow(LENGTH as u32);
    let (mut joint, mut wanted) = (vec![0.0; count], vec![0.0; count]);
    let mut lengths = Vec::new();
    let start = (Vec::new(), Vec::new(), 1.0, 1.0);
    every_draft(&models, gate, &plan, start, &mut joint, &mut lengths);
    complete(&models, &[], 1.0, &mut wanted);
    assert!((joint.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let off = joint
        .iter()
        .zip(&wanted)
        .map(|(got, wanted)| (got - wanted).abs());
    lengths.sort_unstable();
    lengths.dedup();
    (off.fold(0.0, f64::max), lengths)
}

#[test]
fn a_plan_that_decides_on_confidence_leaves_the_text_as_it_is() {
    let (off, lengths) = deviation(Gate::Confidence);
    assert!(
        lengths.len() > 1,
        "the plan told nothing apart: {lengths:?}"
    );
    assert!(off < 1e-12, "off by {off}");
}

#[test]
fn a_decision_that_looks_at_the_token_would_be_found() {
    let (off, _) = deviation(Gate::Token);
    assert!(off > 0.01, "off by {off}");
}
