use std::cell::Cell;
use std::collections::HashMap;
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::Rehearsal;
use crate::TokenId;
use crate::backend::cpu::CpuBackend;
use crate::backend::{BackendError, Logits};
use crate::gguf::Gguf;
use crate::model::{
    Decoder, Exit, ExitAdapterInfo, LanguageModel, ModelConfig, ModelError, Row, Slot,
};
use crate::testing::TinyModel;

/// A model whose device prepares each shape in two runs, and may fail.
struct Device {
    model: Decoder<CpuBackend>,
    /// Runs by rows and context.
    runs: HashMap<(usize, usize), usize>,
    preparations: u64,
    /// Forwards until it fails.
    left: usize,
    open: usize,
}

impl Device {
    fn new(preparations: u64) -> Self {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(&TinyModel::default().gguf())
            .expect("it writes");
        let gguf = Gguf::open(file.path()).expect("a sound file");
        let backend = CpuBackend::new(NonZeroUsize::MIN);
        Self {
            model: Decoder::load(backend, &gguf, 2048, &mut |_| {}).expect("it loads"),
            runs: HashMap::new(),
            preparations,
            left: usize::MAX,
            open: 0,
        }
    }
}

impl LanguageModel for Device {
    fn forward(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError> {
        if self.left == 0 {
            return Err(BackendError::Unsupported("more of this".to_owned()).into());
        }
        self.left -= 1;
        let context = self.model.cached(rows[0].slot);
        let runs = self.runs.entry((rows.len(), context)).or_default();
        *runs += 1;
        self.preparations += u64::from(*runs <= 2);
        self.model.forward(rows, want)
    }
    fn rehearsing(&mut self, on: bool) {
        self.model.rehearsing(on);
    }
    fn preparations(&self) -> u64 {
        self.preparations
    }
    fn open(&mut self) -> Result<Slot, ModelError> {
        self.open += 1;
        self.model.open()
    }
    fn close(&mut self, slot: Slot) {
        self.open -= 1;
        self.model.close(slot);
    }
    fn config(&self) -> &ModelConfig {
        self.model.config()
    }
    fn backend(&self) -> &'static str {
        self.model.backend()
    }
    fn batch_invariant(&self) -> bool {
        self.model.batch_invariant()
    }
    fn fork(&mut self, slot: Slot, positions: usize) -> Result<Slot, ModelError> {
        self.model.fork(slot, positions)
    }
    fn cached(&self, slot: Slot) -> usize {
        self.model.cached(slot)
    }
    fn truncate(&mut self, slot: Slot, positions: usize) {
        self.model.truncate(slot, positions);
    }
    fn keep(&mut self, slot: Slot, from: usize, offsets: &[usize]) -> Result<(), ModelError> {
        self.model.keep(slot, from, offsets)
    }
    fn reopen(&mut self, slot: Slot, tokens: &[TokenId]) {
        self.model.reopen(slot, tokens);
    }
    fn alone(&mut self, alone: bool) {
        self.model.alone(alone);
    }
    fn cache_bytes(&self) -> u64 {
        self.model.cache_bytes()
    }
    fn cache_bytes_per_position(&self) -> u64 {
        self.model.cache_bytes_per_position()
    }
    fn grow(&mut self, rows: &[Row], want: &[usize]) -> Result<&Logits, ModelError> {
        self.model.grow(rows, want)
    }
    fn early(&mut self, rows: &[Row], want: &[usize], exit: Exit) -> Result<&Logits, ModelError> {
        self.model.early(rows, want, exit)
    }
    fn exit_cost(&self, exit: Exit) -> Result<f64, ModelError> {
        self.model.exit_cost(exit)
    }
    fn attach_exit(
        &mut self,
        gguf: &Gguf,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), ModelError> {
        self.model.attach_exit(gguf, progress)
    }
    fn detach_exit(&mut self) {
        self.model.detach_exit();
    }
    fn exit_adapter(&self) -> Option<ExitAdapterInfo> {
        self.model.exit_adapter()
    }
}

/// Rehearses up to 5 rows where a millisecond passes between any two looks at the clock; returns the rows and contexts
/// that were ready.
fn rehearse(
    device: &mut Device,
    limit: Duration,
    context_length: usize,
) -> (Vec<(usize, usize)>, Result<(), ModelError>) {
    let (start, looks) = (Instant::now(), Cell::new(0));
    let clock = || {
        looks.set(looks.get() + 1);
        start + Duration::from_millis(looks.get())
    };
    let rehearsal = Rehearsal {
        clock: &clock,
        ends: start + limit,
        context_length,
        max_rows: 32,
    };
    let mut ready = Vec::new();
    let result = rehearsal.run(device, 5, |rows, context, took| {
        assert_eq!(took, Duration::from_millis(1));
        ready.push((rows, context));
    });
    assert_eq!(device.open, 0, "the sequence is closed again");
    (ready, result)
}

const LONG: Duration = Duration::from_secs(60);

#[test]
fn every_shape_is_run_until_nothing_is_left_to_prepare_for_it() {
    let mut device = Device::new(1);
    let (ready, result) = rehearse(&mut device, LONG, 400);
    result.expect("it runs");
    let shapes = [64, 192, 384].into_iter();
    let shapes: Vec<_> = shapes
        .flat_map(|context| (1..=5).map(move |rows| (rows, context)))
        .collect();
    assert_eq!(ready, shapes, "768 positions are too many");
    assert!(shapes.iter().all(|shape| device.runs[shape] == 3));
}

#[test]
fn a_device_that_prepares_nothing_is_left_alone() {
    let mut device = Device::new(0);
    let (ready, result) = rehearse(&mut device, LONG, 2048);
    result.expect("there is nothing to fail");
    assert!(ready.is_empty() && device.runs.is_empty());
}

#[test]
fn it_ends_when_its_time_is_up() {
    let mut device = Device::new(1);
    let (ready, result) = rehearse(&mut device, Duration::from_millis(20), 2048);
    result.expect("it runs");
    assert_eq!(ready, [(1, 64), (2, 64), (3, 64)]);
}

#[test]
fn a_device_that_fails_ends_it() {
    let mut device = Device::new(1);
    device.left = 7;
    let (ready, result) = rehearse(&mut device, LONG, 2048);
    assert!(matches!(result, Err(ModelError::Backend(_))));
    assert_eq!(ready, [(1, 64)]);
}
