//! Real texts with a real draft, replayed on a device that exists in numbers only.

use super::device::Device;
use super::sim::Dice;
use crate::policy::{
    Batch, Candidate, CatchUp, Controller, DraftKind, DraftState, DraftTime, Evidence, NodeOutcome,
    Outcome, Policy, StepPlan, StepReport, StepTimes,
};

const LEADING: usize = 4;
/// Positions that a replayed prompt has.
const PROMPT: usize = 90;

/// What a draft said of a token that its target chose: the token's place among the likeliest, and their probabilities.
#[derive(Clone, Copy, Debug)]
pub(super) struct Said {
    place: usize,
    probs: [f64; LEADING],
}

impl Said {
    /// A draft that is so sure of the wrong token.
    pub(super) fn wrong(confidence: f64) -> Self {
        Self {
            place: LEADING,
            probs: [confidence, 0.01, 0.01, 0.01],
        }
    }
}

/// A policy in place of the controller's, and the most siblings.
pub(super) type Method = (Option<Policy>, Option<usize>);

/// Texts as a draft saw them, by name; see `examples/draft_traces.rs`.
pub(super) fn traces() -> Vec<(&'static str, Vec<Said>)> {
    let mut traces: Vec<(&str, Vec<Said>)> = Vec::new();
    for line in include_str!("traces/smollm2-135m-by-20m.txt").lines() {
        if let Some(name) = line.strip_prefix("# ") {
            traces.push((name, Vec::new()));
            continue;
        }
        let mut words = line.split(' ');
        let mut number = || -> f64 {
            let word = words.next().expect("five numbers");
            word.parse().expect("a number")
        };
        let said = Said {
            place: number() as usize,
            probs: std::array::from_fn(|_| number() / 1e3),
        };
        traces.last_mut().expect("a name comes first").1.push(said);
    }
    traces
}

/// A drafted node.
#[derive(Clone, Copy)]
struct Node {
    parent: Option<usize>,
    depth: usize,
    sibling: usize,
    survival: f64,
    confidence: f64,
    /// Whether everything down to it is what the target will choose.
    right: bool,
}

/// What a request took.
#[derive(Debug, Default)]
pub(super) struct Played {
    pub(super) seconds: f64,
    /// Seconds of plain steps for the same tokens, on a device that has nothing left to prepare.
    plain: f64,
    /// Most that it was behind plain decoding.
    pub(super) lost: f64,
    pub(super) steps: Vec<StepReport>,
}

impl Played {
    pub(super) fn speedup(&self) -> f64 {
        self.plain / self.seconds
    }
}

/// Decodes a text once.
pub(super) fn play(
    controller: &mut Controller,
    device: &mut Device,
    trace: &[Said],
    (policy, width): Method,
    dice: &mut Dice,
) -> Played {
    let mut played = Played::default();
    let mut state = DraftState::default();
    let mut plan = StepPlan::default();
    let (mut done, mut behind) = (0, PROMPT);
    while done < trace.len() {
        let remaining = trace.len() - done;
        let positions = PROMPT + done;
        let batch = Batch {
            rows: 1,
            running: 1,
            max_rows: 64,
            positions,
            prompt: false,
        };
        let candidate = Candidate {
            state: &state,
            kinds: [policy != Some(Policy::Fixed(0)), false, false],
            remaining,
            behind: [behind, 0, 0],
            policy,
            width,
        };
        controller.plan(&mut plan, batch, std::iter::once(candidate));
        let (nodes, mut draft) = grow(&mut plan, device, &trace[done..], positions, dice);
        if draft.round_seconds > 0.0 && behind > 4 {
            draft.catch_up = CatchUp {
                requests: 1,
                tokens: behind,
                seconds: (device.round)(8),
            };
        }
        let depths: Vec<usize> = std::iter::once(0)
            .chain(nodes.iter().map(|node| node.depth + 1))
            .collect();
        let (verify, cold) = device.forward(true, &depths, positions, dice);
        let spent = verify + draft.round_seconds + draft.catch_up.seconds;
        let times = StepTimes {
            rows: depths.len(),
            drafts: &[draft],
            verify,
            cold,
            ..StepTimes::default()
        };
        let (outcomes, accepted) = outcomes(&nodes);
        let committed = (accepted + 1).min(remaining);
        behind = match draft.round_seconds > 0.0 {
            true => 0,
            false => behind + committed,
        };
        controller.record_step(&mut plan, &times);
        let outcome = Outcome {
            committed,
            accepted,
            nodes: &outcomes,
        };
        controller.record(&plan, 0, &mut state, &outcome);
        done += committed;
        played.seconds += spent;
        played.plain += committed as f64 * (device.step)(1);
        played.lost = f64::max(played.lost, played.seconds - played.plain);
        played.steps.push(plan.report(&times, committed));
    }
    played
}

/// Drafts as `draft/growth.rs` does.
fn grow(
    plan: &mut StepPlan,
    device: &mut Device,
    text: &[Said],
    positions: usize,
    dice: &mut Dice,
) -> (Vec<Node>, DraftTime) {
    let kind = DraftKind::Model;
    let mut time = DraftTime {
        kind,
        round_seconds: 0.0,
        catch_up: CatchUp::default(),
        cold: false,
    };
    let mut nodes: Vec<Node> = Vec::new();
    if !plan.round(0, kind, 0, 1.0) {
        return (nodes, time);
    }
    let mut places: Vec<Option<usize>> = vec![None];
    while !places.is_empty() {
        let depth_of =
            |place: &Option<usize>, nodes: &[Node]| place.map_or(0, |node| nodes[node].depth + 1);
        let depths: Vec<usize> = places.iter().map(|place| depth_of(place, &nodes)).collect();
        let (seconds, cold) = device.forward(false, &depths, positions, dice);
        time.round_seconds += seconds;
        time.cold |= cold;
        let mut next: Vec<usize> = Vec::new();
        for place in places.drain(..) {
            let depth = depth_of(&place, &nodes);
            let (survival, right) = place.map_or((1.0, true), |node| {
                (nodes[node].survival, nodes[node].right)
            });
            // What a draft says after a token that is wrong is much like what it says elsewhere.
            let said = match right {
                true => text[depth],
                false => text[(dice.roll() * text.len() as f64) as usize],
            };
            for sibling in 0..LEADING {
                let confidence = said.probs[sibling];
                let Some(survival) =
                    plan.offer(0, kind, depth, sibling, survival, Some(confidence))
                else {
                    break;
                };
                next.push(nodes.len());
                nodes.push(Node {
                    parent: place,
                    depth,
                    sibling,
                    survival,
                    confidence,
                    right: right && said.place == sibling,
                });
            }
        }
        next.sort_by(|a, b| nodes[*b].survival.total_cmp(&nodes[*a].survival));
        let mut left_out: Vec<(Option<usize>, usize)> = Vec::new();
        next.retain(|&node| {
            let Node {
                parent,
                depth,
                sibling,
                survival,
                ..
            } = nodes[node];
            let after_one = left_out
                .iter()
                .any(|out| out.0 == parent && out.1 < sibling);
            let goes_on = !after_one && plan.round(0, kind, depth + 1, survival);
            if !goes_on {
                left_out.push((parent, sibling));
            }
            goes_on
        });
        places.extend(next.into_iter().map(Some));
    }
    (nodes, time)
}

/// What can be learned of the nodes, and the length of the accepted path.
fn outcomes(nodes: &[Node]) -> (Vec<NodeOutcome>, usize) {
    let below_right = |node: &&Node| node.parent.is_none_or(|parent| nodes[parent].right);
    let outcomes = nodes.iter().filter(below_right).map(|node| NodeOutcome {
        kind: DraftKind::Model,
        depth: node.depth,
        sibling: node.sibling,
        evidence: Evidence::Confidence(node.confidence),
        accepted: node.right,
    });
    let right = nodes.iter().filter(|node| node.right);
    (
        outcomes.collect(),
        right.map(|node| node.depth + 1).max().unwrap_or(0),
    )
}
