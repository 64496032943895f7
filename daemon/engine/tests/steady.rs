//! A steady step allocates nothing: not in the model, on any thread, and in the engine only what it hands over. On the CPU,
//! whose steps have nothing but memory to wait for: a device's are lists of launches, made anew for each.
#![expect(unsafe_code, reason = "counts what the allocator is asked for")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Output, Request, StopConditions};
use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::hardware::Device;
use tandem_model::model::{Decoder, Exit, LanguageModel, Row, Slot};
use tandem_model::testing::TinyModel;

/// The system's allocator, which counts.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as this method.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as this method.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as this method.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Allocations on all threads while `f` runs.
fn allocations<T>(f: impl FnOnce() -> T) -> (u64, T) {
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    let result = f();
    (ALLOCATIONS.load(Ordering::SeqCst) - before, result)
}

const TWO: NonZeroUsize = NonZeroUsize::new(2).expect("two");

/// Writes a model; every stage of it is large enough to be shared among threads.
fn write(architecture: &'static str, layers: usize, seed: u64) -> tempfile::NamedTempFile {
    let model = TinyModel {
        architecture,
        layers,
        width: 128,
        inner: 256,
        seed,
        spread: 0.2,
        ..TinyModel::default()
    };
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(&model.gguf()).expect("it writes");
    file
}

fn decoder(path: &Path) -> Decoder<CpuBackend> {
    let gguf = Gguf::open(path).expect("a sound file");
    Decoder::load(CpuBackend::new(TWO), &gguf, 2048, &mut |_| {}).expect("it loads")
}

/// Feeds `rows` rows to each of the slots, and a tree where asked.
fn step(model: &mut dyn LanguageModel, slots: &[Slot], rows: usize, tree: bool) -> u64 {
    let batch: Vec<Row> = slots
        .iter()
        .flat_map(|slot| {
            (0..rows).map(|row| Row {
                slot: *slot,
                token: (row * 31 % 250) as u32,
                parent: if tree && row > 1 {
                    Some(0)
                } else {
                    row.checked_sub(1)
                },
            })
        })
        .collect();
    let want: Vec<usize> = (0..batch.len()).collect();
    let (count, sum) = allocations(|| {
        let logits = model.forward(&batch, &want).expect("it runs");
        logits.row(batch.len() - 1).iter().sum::<f32>()
    });
    assert!(sum.is_finite());
    count
}

/// Steps of one and four rows, of a tree and of two sequences, within one chunk of the cache.
fn a_forward_allocates_nothing() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma3"] {
        let file = write(architecture, 2, 1);
        let mut model = decoder(file.path());
        let slots = [0; 2].map(|_| model.open().expect("a cache"));
        // Room for all that follows: a cache grows by chunks, and that is no steady step.
        step(&mut model, &slots, 700, false);
        let cases = [(1, 1, false), (1, 4, false), (1, 4, true), (2, 4, false)];
        for round in 0..40 {
            for (sequences, rows, tree) in cases {
                slots.iter().for_each(|slot| model.truncate(*slot, 600));
                let count = step(&mut model, &slots[..sequences], rows, tree);
                if round > 0 {
                    assert_eq!(count, 0, "{architecture}, {sequences} × {rows} rows");
                }
            }
        }
    }
}

/// Rounds of a draft that leaves early, and its verification; of a tree that grows.
fn early_and_growing_rows_allocate_nothing() {
    let file = write("llama", 4, 1);
    let adapter = TinyModel {
        width: 128,
        inner: 256,
        seed: 2,
        ..TinyModel::default()
    };
    let mut exit = tempfile::NamedTempFile::new().expect("a file");
    exit.write_all(&adapter.exit_adapter(2)).expect("it writes");
    let exit = Gguf::open(exit.path()).expect("a sound file");
    let mut model = decoder(file.path());
    model.attach_exit(&exit, &mut |_| {}).expect("it fits");
    let slots = [0; 2].map(|_| model.open().expect("a cache"));
    step(&mut model, &slots, 700, false);
    let tokens = [5, 6, 7, 8, 9];
    let batches: Vec<Vec<Row>> = (0..4)
        .map(|row| {
            let rows = slots.iter().map(|slot| Row {
                slot: *slot,
                token: tokens[row],
                parent: row.checked_sub(1),
            });
            rows.collect()
        })
        .collect();
    let whole: Vec<Row> = slots
        .iter()
        .flat_map(|slot| Row::chain(*slot, &tokens))
        .collect();
    for round in 0..40 {
        slots.iter().for_each(|slot| model.truncate(*slot, 600));
        let (count, ()) = allocations(|| {
            for rows in &batches {
                model.early(rows, &[0, 1], Exit::Adapter).expect("it runs");
            }
            model.forward(&whole, &[4, 9]).expect("it runs");
            slots.iter().for_each(|slot| model.truncate(*slot, 603));
            for rows in &batches {
                model.grow(rows, &[0, 1]).expect("it runs");
            }
        });
        if round > 0 {
            assert_eq!(count, 0, "round {round}");
        }
    }
}

fn request(sampling: SamplingParams, speculation: bool) -> Request {
    Request {
        sampling,
        stop: StopConditions {
            max_tokens: Some(200),
            ignore_eos: true,
            ..StopConditions::default()
        },
        speculation,
        draft_length: speculation.then_some(3),
        ..Request::new((0..300).map(|i| i % 200).collect(), 200)
    }
}

/// The most allocations of a step that handed over tokens, once all is warm.
fn busiest(engine: &mut Engine, request: &Request) -> u64 {
    engine.submit(request.clone()).expect("a sound request");
    let (mut steps, mut most) = (0, 0);
    while engine.has_work() {
        let (count, outputs) = allocations(|| engine.step(&Instant::now).expect("it steps"));
        steps += 1;
        let finished = |output: &Output| matches!(output, Output::Finished { .. });
        if steps > 20 && !outputs.iter().any(finished) {
            most = most.max(count);
        }
    }
    assert!(steps > 40, "{steps} steps");
    most
}

fn samplings() -> [(&'static str, SamplingParams); 4] {
    let sampled = SamplingParams {
        temperature: 0.8,
        ..SamplingParams::default()
    };
    let greedy = SamplingParams::greedy();
    [
        ("greedy", greedy.clone()),
        (
            "penalized",
            SamplingParams {
                logit_bias: [(5, -1.0)].into(),
                ..greedy
            },
        ),
        ("sampled", sampled.clone()),
        (
            "seeded",
            SamplingParams {
                seed: Some(4),
                ..sampled
            },
        ),
    ]
}

/// The list of outputs, the list of tokens, their text: three values that the caller keeps.
const HANDED_OVER: u64 = 3;
/// A drafted step also makes lists of a few entries: lengths to choose from, chains, drafts, what was accepted. None is
/// as long as the vocabulary or the context.
const DRAFTED: u64 = 40;

fn a_step_of_the_engine_allocates_what_it_hands_over() {
    let files = [write("llama", 4, 1), write("llama", 1, 2)];
    let options = LoadOptions {
        context_length: Some(1024),
        budget: 1 << 30,
        max_step_rows: 64,
        device: Device::Cpu(TWO),
        draft_device: None,
        prepared: None,
    };
    let limits = EngineOptions {
        max_sequences: 4,
        max_step_rows: 64,
        cache_budget: 1 << 30,
        policy: tandem_engine::policy::Policy::Goodput,
        // Going on ahead starts a thread for the step.
        pipelined: tandem_engine::policy::Pipelined::Never,
        lookup_history: None,
    };
    let files_of_pair = PairFiles {
        target: files[0].path().into(),
        draft: DraftSource::Model(files[1].path().into()),
    };
    let pair = ModelPair::load(&files_of_pair, &options, &mut |_| {}).expect("it loads");
    let mut engine = Engine::new(pair, limits);
    for (name, sampling) in samplings() {
        let plain = busiest(&mut engine, &request(sampling.clone(), false));
        assert!(plain <= HANDED_OVER, "{name}: {plain} allocations");
        let drafted = busiest(&mut engine, &request(sampling, true));
        assert!(drafted <= DRAFTED, "{name}: {drafted} allocations");
    }
}

/// One test, so that no other runs beside it.
#[test]
fn steady_steps_allocate_nothing() {
    a_forward_allocates_nothing();
    early_and_growing_rows_allocate_nothing();
    a_step_of_the_engine_allocates_what_it_hands_over();
}
