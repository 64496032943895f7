use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use super::*;

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).expect("at least one"))
}

thread_local! {
    /// How long a worker is put aside between the end of a stage and its look for a parked caller.
    static ASIDE: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Stands for a system that runs something else just then.
pub(super) fn put_aside() {
    if let Some(time) = ASIDE.get() {
        std::thread::sleep(time);
    }
}

#[test]
fn a_worker_that_is_late_to_look_does_not_take_the_next_stages_wake_up() {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let pool = Pool::new(NonZeroUsize::new(3).expect("three"));
        let caller = std::thread::current().id();
        for _ in 0..300 {
            pool.run(3, |chunk| {
                // Only workers are late; long enough that the caller parks.
                if std::thread::current().id() != caller {
                    ASIDE.set(Some(Duration::from_micros(400)));
                }
                std::thread::sleep(Duration::from_micros(150 + 100 * chunk as u64));
            });
        }
        sender.send(()).expect("somebody waits");
    });
    let ended = receiver.recv_timeout(Duration::from_secs(120));
    assert!(ended.is_ok(), "a stage was never woken up for");
}

#[test]
fn every_chunk_runs_once_in_each_of_many_quick_stages() {
    for threads in 1..=4 {
        let pool = pool(threads);
        let counts: Vec<AtomicUsize> = (0..37).map(|_| AtomicUsize::new(0)).collect();
        for stage in 0..3000 {
            pool.run(stage % 37 + 1, |chunk| {
                counts[chunk].fetch_add(1, Ordering::Relaxed);
            });
        }
        let total: usize = counts.iter().map(|c| c.load(Ordering::Relaxed)).sum();
        assert_eq!(total, (0..3000).map(|stage| stage % 37 + 1).sum::<usize>());
        assert_eq!(counts[36].load(Ordering::Relaxed), 3000 / 37);
    }
}

#[test]
fn more_chunks_than_one_round_counts_all_run() {
    let ran = AtomicUsize::new(0);
    pool(2).run(150_000, |chunk| {
        ran.fetch_add(chunk, Ordering::Relaxed);
    });
    assert_eq!(ran.into_inner(), 150_000 * 149_999 / 2);
}

#[test]
fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
    let pool = pool(3);
    for bad in [0, 5, 11] {
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(12, |chunk| assert_ne!(chunk, bad, "chunk {bad}"));
        }));
        let payload = result.expect_err("the panic surfaces");
        let message = payload.downcast_ref::<String>().expect("a message");
        assert!(message.contains(&format!("chunk {bad}")), "{message}");
        let ran = AtomicUsize::new(0);
        pool.run(12, |_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 12);
    }
}

#[test]
fn callers_of_one_pool_all_get_their_stages() {
    let pool = pool(3);
    let ran = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..2000 {
                    pool.run(7, |_| {
                        ran.fetch_add(1, Ordering::Relaxed);
                    });
                }
            });
        }
    });
    assert_eq!(ran.into_inner(), 3 * 2000 * 7);
}

#[test]
fn models_share_a_pool_while_one_of_them_lives() {
    let threads = NonZeroUsize::new(7).expect("seven");
    let [first, second] = [0; 2].map(|_| Pool::shared(threads));
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(Pool::shared(NonZeroUsize::MIN).threads(), 1);
    let rest = Arc::downgrade(&first);
    drop((first, second));
    assert_eq!(rest.strong_count(), 0, "its threads have ended");
}

/// Waits until all workers have parked.
fn until_parked(pool: &Pool) {
    let parked = || {
        let mut workers = pool.shared.parked.iter();
        workers.all(|p| p.0.load(Ordering::SeqCst))
    };
    let deadline = Instant::now() + Duration::from_secs(120);
    while !parked() {
        assert!(Instant::now() < deadline, "the workers do not park");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn stages_begin_after_the_workers_have_parked() {
    let pool = pool(3);
    for _ in 0..5 {
        until_parked(&pool);
        let ran = AtomicUsize::new(0);
        pool.run(64, |_| {
            ran.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(ran.into_inner(), 64);
    }
}

#[test]
fn a_slow_chunk_is_waited_for_parked() {
    let pool = pool(2);
    let ended = AtomicUsize::new(0);
    let caller = std::thread::current().id();
    // Both chunks are slow on the worker only, so whichever it claims, the caller outlasts its own spinning.
    for _ in 0..4 {
        pool.run(2, |_| {
            if std::thread::current().id() != caller {
                std::thread::sleep(Duration::from_millis(20));
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
    }
    assert_eq!(ended.into_inner(), 8);
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_pool_takes_no_time() {
    /// Clock ticks that the worker threads of this process have run.
    fn ticks() -> u64 {
        let tasks = std::fs::read_dir("/proc/self/task").expect("a task list");
        tasks
            .filter_map(|task| {
                let path = task.ok()?.path();
                let name = std::fs::read_to_string(path.join("comm")).ok()?;
                let stat = std::fs::read_to_string(path.join("stat")).ok()?;
                let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
                let ran = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
                name.starts_with("idlepool").then_some(ran)
            })
            .sum()
    }
    // A name of its own: other tests of this process run at the same time.
    let pool = Pool::named("idlepool", NonZeroUsize::new(3).expect("three"));
    pool.run(64, |_| {});
    until_parked(&pool);
    let before = ticks();
    // Nothing is hoped for: the longer nothing happens, the more this shows.
    std::thread::sleep(Duration::from_millis(300));
    let after = ticks();
    assert!(after - before <= 1, "{} ticks", after - before);
}

#[test]
#[ignore = "a measurement: it needs two idle cores"]
fn a_stage_on_two_threads_costs_under_two_microseconds() {
    let pool = pool(2);
    let mut times: Vec<Duration> = (0..20_000)
        .map(|_| {
            let arrived = AtomicUsize::new(0);
            let start = Instant::now();
            // Each chunk waits for the other, so that one thread alone cannot end the stage.
            pool.run(2, |_| {
                arrived.fetch_add(1, Ordering::SeqCst);
                while arrived.load(Ordering::SeqCst) < 2 {
                    std::hint::spin_loop();
                }
            });
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    let [median, late] = [times[10_000], times[19_000]];
    eprintln!("a stage: median {median:?}, 95 % {late:?}");
    assert!(median < Duration::from_micros(2), "median {median:?}");
}
