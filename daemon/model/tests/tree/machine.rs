//! Any order of what can be done to slots, against a model that recomputes everything from scratch.

use proptest::prelude::*;
use tandem_model::model::{Exit, LanguageModel, Slot};

use super::world::*;

/// One thing to do; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Op {
    Open,
    Close(usize),
    Fork(usize, usize),
    Truncate(usize, usize),
    /// Keeps of what grew the path to a node.
    Keep(usize, usize),
    /// Grows the trees of as many slots as there are seeds.
    Grow(Vec<u64>),
    /// Runs rows early, under as many slots as there are seeds.
    Early(u8, Vec<u64>),
    /// A forward of trees that share leading rows with the early ones, of which paths are kept.
    Verify(Vec<u64>),
    /// A forward that is refused.
    Refused(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let seeds = || prop::collection::vec(any::<u64>(), 1..4);
    prop_oneof![
        1 => Just(Op::Open),
        1 => any::<usize>().prop_map(Op::Close),
        1 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Op::Fork(a, b)),
        2 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Op::Truncate(a, b)),
        3 => (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Op::Keep(a, b)),
        6 => seeds().prop_map(Op::Grow),
        6 => (any::<u8>(), seeds()).prop_map(|(exit, seeds)| Op::Early(exit, seeds)),
        6 => seeds().prop_map(Op::Verify),
        1 => any::<usize>().prop_map(Op::Refused),
    ]
}

/// What a slot should hold.
#[derive(Clone)]
struct Held {
    slot: Slot,
    tokens: Vec<u32>,
    tree: Nodes,
    /// Where the tree's rows left; `None`: nowhere.
    exit: Option<Exit>,
}

struct World {
    model: Box<dyn LanguageModel>,
    scratch: Box<dyn LanguageModel>,
    held: Vec<Held>,
}

impl World {
    fn new() -> Self {
        Self {
            model: with_adapter(tiny("llama")),
            scratch: with_adapter(tiny("llama")),
            held: Vec::new(),
        }
    }

    fn open(&mut self) {
        if self.held.len() < 4 {
            let slot = self.model.open().expect("a cache");
            self.held.push(Held {
                slot,
                tokens: Vec::new(),
                tree: Vec::new(),
                exit: None,
            });
        }
    }

    /// The logits that a row of a tree under the `at`-th slot should have.
    fn expected(&mut self, at: usize, nodes: &Nodes, node: usize, exit: Option<Exit>) -> Vec<f32> {
        let mut tokens = self.held[at].tokens.clone();
        tokens.extend(path(nodes, node).iter().map(|node| nodes[*node].0));
        from_scratch(&mut *self.scratch, &tokens, exit)
    }

    /// Adds rows to the trees of some slots and checks the last row of each.
    fn join(&mut self, exit: Option<Exit>, seeds: &[u64]) {
        let (mut batch, mut last) = (Vec::new(), Vec::new());
        for (at, seed) in seeds.iter().enumerate().take(self.held.len()) {
            let (held, mut noise) = (&mut self.held[at], Noise(*seed));
            if held.exit != exit {
                held.tree.clear();
                held.exit = exit;
            }
            for _ in 0..1 + noise.below(4) {
                let parent = noise.below(held.tree.len() + 1).checked_sub(1);
                let node = (noise.below(250) as u32, parent);
                held.tree.push(node);
                batch.extend(rows(held.slot, &[node]));
            }
            last.push(batch.len() - 1);
        }
        if batch.is_empty() {
            return;
        }
        let logits = match exit {
            None => self.model.grow(&batch, &last),
            Some(exit) => self.model.early(&batch, &last, exit),
        };
        let logits = logits.expect("it runs");
        let got: Vec<Vec<f32>> = (0..last.len())
            .map(|row| logits.row(row).to_vec())
            .collect();
        for (at, got) in got.into_iter().enumerate() {
            let tree = self.held[at].tree.clone();
            let expected = self.expected(at, &tree, tree.len() - 1, exit);
            assert!(
                bits(&got) == bits(&expected),
                "a row joined slot {at} at {exit:?}"
            );
        }
    }

    fn verify(&mut self, seeds: &[u64]) {
        let (mut batch, mut trees) = (Vec::new(), Vec::new());
        for (held, seed) in self.held.iter().zip(seeds) {
            let mut noise = Noise(*seed);
            let shared = noise.below(held.tree.len() + 1);
            let mut tree = held.tree[..shared].to_vec();
            for row in shared..shared + 1 + noise.below(3) {
                let parent = noise.below(row + 1).checked_sub(1);
                tree.push((noise.below(250) as u32, parent));
            }
            batch.extend(rows(held.slot, &tree));
            let kept = noise.below(tree.len());
            trees.push((tree, kept));
        }
        if batch.is_empty() {
            return;
        }
        let want: Vec<usize> = (0..batch.len()).collect();
        let logits = self.model.forward(&batch, &want).expect("it runs");
        let got: Vec<Vec<f32>> = want.iter().map(|row| logits.row(*row).to_vec()).collect();
        let mut got = got.into_iter();
        for (at, (tree, kept)) in trees.into_iter().enumerate() {
            for node in 0..tree.len() {
                let expected = self.expected(at, &tree, node, None);
                let got = got.next().expect("a row");
                assert!(
                    bits(&got) == bits(&expected),
                    "row {node} verified under slot {at}"
                );
            }
            let path = path(&tree, kept);
            let held = &mut self.held[at];
            self.model
                .keep(held.slot, held.tokens.len(), &path)
                .expect("it keeps");
            held.tokens.extend(path.iter().map(|node| tree[*node].0));
            held.tree.clear();
        }
    }

    fn apply(&mut self, op: &Op) {
        let count = self.held.len();
        match op {
            Op::Open => self.open(),
            Op::Grow(seeds) => self.join(None, seeds),
            Op::Early(exit, seeds) => {
                let exits = [
                    Exit::Adapter,
                    Exit::Layer(1),
                    Exit::Layer(EXIT),
                    Exit::Layer(3),
                ];
                self.join(Some(exits[usize::from(*exit) % exits.len()]), seeds);
            }
            Op::Verify(seeds) => self.verify(seeds),
            _ if count == 0 => {}
            Op::Close(at) => {
                let held = self.held.swap_remove(at % count);
                self.model.close(held.slot);
            }
            Op::Fork(at, positions) => {
                let mut fork = self.held[at % count].clone();
                let positions = positions % (fork.tokens.len() + 3);
                fork.slot = self.model.fork(fork.slot, positions).expect("a fork");
                fork.tokens.truncate(positions);
                fork.tree.clear();
                if count < 4 {
                    self.held.push(fork);
                } else {
                    self.model.close(fork.slot);
                }
            }
            Op::Truncate(at, positions) => {
                let held = &mut self.held[at % count];
                let positions = positions % (held.tokens.len() + 3);
                self.model.truncate(held.slot, positions);
                held.tokens.truncate(positions);
                held.tree.clear();
            }
            Op::Keep(at, node) => {
                let held = &mut self.held[at % count];
                let path = match held.tree.len() {
                    0 => Vec::new(),
                    rows => path(&held.tree, node % rows),
                };
                self.model
                    .keep(held.slot, held.tokens.len(), &path)
                    .expect("it keeps");
                // Rows that left early are not whole.
                if held.exit.is_none() {
                    held.tokens
                        .extend(path.iter().map(|node| held.tree[*node].0));
                }
                held.tree.clear();
            }
            Op::Refused(at) => {
                let slot = self.held[at % count].slot;
                let batch = rows(slot, &[(3, None), (u32::MAX, Some(0))]);
                self.model.forward(&batch, &[0]).expect_err("no such token");
            }
        }
        for held in &self.held {
            assert_eq!(self.model.cached(held.slot), held.tokens.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn slots_are_as_if_computed_from_scratch(ops in prop::collection::vec(op(), 1..40)) {
        let mut world = World::new();
        world.open();
        world.open();
        for op in &ops {
            // Sequences grow by a few tokens a time; these stay within the context.
            world.apply(op);
        }
    }
}
