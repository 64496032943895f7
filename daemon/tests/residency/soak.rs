//! Everything at once: clients that stream all the time, reloads good and bad, saved in every way, drafts shed and
//! restored, pairs unloaded; in random order.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(target_os = "linux")]
use tandem_daemon::platform::Pressure;
use tandem_proto::v1;
use tandem_proto::v1::MemoryStage;

use crate::world::{COMMON, World, eventually, generate, pair, rename_over, seeded};

const CLIENTS: usize = 8;
const SEEDS: u64 = 5;
const TOKENS: u32 = 250;

/// Numbers that look random, and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % end
    }
}

/// "steady" always has the same target, "swapped" one of two.
fn config(draft: &str, target: &str) -> String {
    format!(
        "default_pair = \"steady\"\n{COMMON}{}{}",
        pair("steady", "a", draft),
        pair("swapped", target, "small"),
    )
}

type Texts = HashMap<u64, Vec<u32>>;

/// What a target says, by seed, without anything going on.
async fn undisturbed(target: &str) -> Texts {
    let world = World::start(&format!("{COMMON}{}", pair("main", target, "none"))).await;
    let mut client = world.client().await;
    let mut texts = Texts::new();
    for seed in 0..SEEDS {
        let answer = generate(&mut client, seeded("main", seed, TOKENS)).await;
        texts.insert(seed, answer.unwrap().token_ids);
    }
    texts
}

/// Streams until it is told to stop, and checks every text.
async fn stream(
    world: Arc<World>,
    number: usize,
    texts: Arc<[Texts; 2]>,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
) {
    let mut client = world.client().await;
    let name = ["steady", "swapped"][number % 2];
    let mut seed = number as u64 % SEEDS;
    while !stop.load(Ordering::Relaxed) {
        let answer = generate(&mut client, seeded(name, seed, TOKENS)).await;
        let got = answer.expect("every stream completes").token_ids;
        let [a, b] = &*texts;
        let right = got == a[&seed] || (name == "swapped" && got == b[&seed]);
        assert!(right, "{name}, seed {seed}: another text");
        done.fetch_add(1, Ordering::Relaxed);
        seed = (seed + 1) % SEEDS;
    }
}

/// One reload, in one of the ways in which that can be asked for.
async fn reload(world: &World, numbers: &mut Numbers) {
    let path = world.path("config.toml");
    let drafts = ["none", "small", "self"];
    let good = config(drafts[numbers.below(3)], ["a", "b"][numbers.below(2)]);
    let bad = [
        "[pairs.steady\n".to_owned(),
        config("absent", "a"),
        config("small", "half"),
        "unknown = 1\n".to_owned(),
    ];
    match numbers.below(6) {
        0 => rename_over(&good, &path),
        1 => fs::write(&path, &good).unwrap(),
        2 => {
            fs::remove_file(&path).unwrap();
            fs::write(&path, &good).unwrap();
        }
        3 => {
            let text = &bad[numbers.below(bad.len())];
            let refused = world.reload(text).await;
            refused.expect_err("it is bad");
            return;
        }
        4 => {
            world.reload(&good).await.unwrap();
            return;
        }
        _ => {
            rename_over(&good, &path);
            world
                .signals
                .send(tandem_daemon::Signal::Reload)
                .await
                .unwrap();
        }
    }
    // What is saved takes effect by itself.
    eventually("the file that was saved takes effect", async || {
        let wanted = |name: &str| {
            let line = good.split(&format!("[pairs.{name}]")).nth(1).unwrap();
            let target = line.split('"').nth(1).unwrap();
            target.trim_start_matches("./").to_owned()
        };
        let mut right = true;
        for name in ["steady", "swapped"] {
            let source = world.info(name).await.target.unwrap().source;
            right &= source.ends_with(&wanted(name));
        }
        right
    })
    .await;
}

/// By the daemon's own footprint, which gives drafts up and never refuses work.
async fn shed_and_restore(world: &World) {
    world.platform.set_footprint(9_000_000_000);
    until(world, |stage| stage == MemoryStage::Shed).await;
    world.platform.set_footprint(7);
    until(world, |stage| stage == MemoryStage::Free).await;
}

async fn until(world: &World, reached: impl Fn(MemoryStage) -> bool) {
    eventually("another stage", async || {
        reached(world.status().await.memory_stage())
    })
    .await;
}

async fn soak(reloads: usize, sheds: usize) {
    let texts = Arc::new([undisturbed("a").await, undisturbed("b").await]);
    let start = config("small", "a");
    let world = Arc::new(World::start(&start).await);
    let whole = fs::read(world.path("b.gguf")).unwrap();
    fs::write(world.path("half.gguf"), &whole[..whole.len() / 2]).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let streams: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (world, texts) = (Arc::clone(&world), Arc::clone(&texts));
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            tokio::spawn(stream(world, number, texts, stop, done))
        })
        .collect();

    let mut numbers = Numbers(11);
    let mut tasks = vec![true; reloads];
    tasks.extend(vec![false; sheds]);
    #[cfg(target_os = "linux")]
    let mut before = None;
    for turn in (1..=tasks.len()).rev() {
        if tasks.swap_remove(numbers.below(turn)) {
            reload(&world, &mut numbers).await;
        } else {
            shed_and_restore(&world).await;
        }
        // After the first few, everything was there once that there ever is.
        #[cfg(target_os = "linux")]
        if turn == (reloads + sheds) * 3 / 4 {
            before = Some(Use::now(&world).await);
        }
    }
    world.reload(&start).await.unwrap();
    stop.store(true, Ordering::Relaxed);
    for stream in streams {
        stream.await.expect("no client saw anything");
    }
    assert!(
        done.load(Ordering::Relaxed) >= CLIENTS,
        "or this tests nothing"
    );
    eventually("no load is left over", async || {
        let pairs = world.status().await.pairs;
        let mut infos = pairs.into_iter().filter_map(|pair| pair.info);
        infos.all(|info| info.draining == 0 && info.residency() == v1::Residency::Warm)
    })
    .await;
    #[cfg(target_os = "linux")]
    if let Some(before) = before {
        Use::now(&world).await.compare(&before);
    }
}

/// What this process holds: the daemon and all its clients.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Use {
    descriptors: usize,
    resident_bytes: u64,
}

#[cfg(target_os = "linux")]
impl Use {
    async fn now(world: &World) -> Self {
        eventually("no load is left over", async || {
            let pairs = world.status().await.pairs;
            pairs
                .into_iter()
                .all(|pair| pair.info.unwrap().draining == 0)
        })
        .await;
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.unwrap().trim().trim_end_matches(" kB");
        Self {
            descriptors: crate::world::descriptors(),
            resident_bytes: kib.parse::<u64>().unwrap() * 1024,
        }
    }

    /// Other tests run in this process at the same time; what a leak of each reload would take is more than they do.
    fn compare(&self, before: &Self) {
        eprintln!("{before:?}, then {self:?}");
        assert!(
            self.descriptors < before.descriptors + 40,
            "{before:?}, then {self:?}"
        );
        let most = before.resident_bytes + before.resident_bytes / 50 + (16 << 20);
        assert!(self.resident_bytes <= most, "{before:?}, then {self:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_live_through_everything() {
    soak(9, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; run it alone: cargo test --release -p tandem-daemon --test residency -- --ignored --exact soak::streams_live_through_a_long_day"]
async fn streams_live_through_a_long_day() {
    soak(50, 20).await;
}

/// Resident memory comes back to what it was, to 2 %: alone in its process, where nobody else takes any, and with one arena,
/// because glibc keeps one for each of many threads, and what is free in it.
#[cfg(target_os = "linux")]
#[tokio::test]
#[ignore = "counts memory; run it alone: MALLOC_ARENA_MAX=1 cargo test --release -p tandem-daemon --test residency -- --ignored --exact soak::reloads_leave_nothing_behind"]
async fn reloads_leave_nothing_behind() {
    let world = World::start(&config("small", "a")).await;
    let mut client = world.client().await;
    let mut used = Vec::new();
    for round in 0..4 {
        for _ in 0..20 {
            for (draft, target) in [("none", "b"), ("self", "a"), ("small", "a")] {
                world.reload(&config(draft, target)).await.unwrap();
                let text = generate(&mut client, seeded("swapped", 1, 20)).await;
                text.unwrap();
            }
            // An idle daemon looks when the system tells it to.
            world.platform.set_pressure(Pressure::Critical);
            until(&world, |stage| stage >= MemoryStage::Shed).await;
            world.platform.set_pressure(Pressure::Normal);
            until(&world, |stage| stage == MemoryStage::Free).await;
        }
        let now = Use::now(&world).await;
        eprintln!("after {} reloads: {now:?}", (round + 1) * 60);
        used.push(now);
    }
    let [first, .., last] = &used[1..] else {
        panic!("four rounds")
    };
    assert!(last.descriptors <= first.descriptors, "{used:?}");
    let most = first.resident_bytes + first.resident_bytes / 50;
    assert!(last.resident_bytes <= most, "{used:?}");
}
