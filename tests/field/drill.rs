//! A daemon that is killed at any moment leaves nothing behind that its successor stumbles over.
//!
//! Ordinary runs kill it twice at each kind of moment; `.ci/run drill` a hundred times. The moments come from a seed, which a
//! failure prints and `TANDEM_DRILL_SEED` sets.

mod hub;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hub::Hub;
use tandem_proto::v1::{GenerateRequest, GenerateResponse, SamplingParams};
use tandem_tests::grpc::{collect, generate, long_prompt, request, status};
use tandem_tests::{Daemon, eventually, models};
use tokio_stream::StreamExt as _;

use crate::home;

type Replies = tonic::Streaming<GenerateResponse>;

/// What the daemon is doing when it is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Load,
    Prepare,
    Prefill,
    Decode,
    Reload,
    Drain,
    Pull,
}

const MOMENTS: [Moment; 7] = [
    Moment::Load,
    Moment::Prepare,
    Moment::Prefill,
    Moment::Decode,
    Moment::Reload,
    Moment::Drain,
    Moment::Pull,
];

#[tokio::test]
async fn a_daemon_killed_at_any_moment_leaves_nothing_its_successor_stumbles_over() {
    Drill::new().await.run(2 * MOMENTS.len()).await;
}

#[tokio::test]
#[ignore = "takes minutes; `.ci/run drill` runs it"]
async fn a_daemon_killed_a_hundred_times_leaves_nothing_its_successor_stumbles_over() {
    Drill::new().await.run(100).await;
}

/// A daemon with files of its own, what it said before anything happened, and where the next moments come from.
struct Drill {
    daemon: Daemon,
    expected: String,
    /// Whether the config names a draft.
    drafts: bool,
    hub: Hub,
    random: u64,
    seed: u64,
    /// How far it came; printed where a test fails.
    kill: String,
}

impl Drill {
    async fn new() -> Self {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let seed = match std::env::var("TANDEM_DRILL_SEED") {
            Ok(seed) => seed.parse().expect("the seed is a number"),
            Err(_) => clock.subsec_micros().into(),
        };
        eprintln!("drill: seed {seed}");
        let home = home().own_cache().config(&config(true));
        let mut drill = Self {
            daemon: home.start().await,
            expected: String::new(),
            drafts: true,
            hub: Hub::start(),
            random: seed,
            seed,
            kill: "nothing yet".to_owned(),
        };
        drill.expected = drill.text().await;
        assert!(!drill.expected.is_empty());
        drill
    }

    async fn run(mut self, kills: usize) {
        for kill in 0..kills {
            let moment = MOMENTS[kill % MOMENTS.len()];
            self.kill = format!("kill {kill}, {moment:?}");
            eprintln!("drill: {}", self.kill);
            let streams = self.reach(moment).await;
            self.daemon.kill();
            drop(streams);
            self.daemon.restart().await;
            self.check().await;
        }
    }

    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 29)) % end
    }

    /// Lets up to so many milliseconds pass. Nothing is hoped of it: the moment is to be any.
    async fn a_while(&mut self, most_ms: u64) {
        let ms = self.below(most_ms);
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Brings the daemon to the moment; returns the stream that it works for, if it does.
    async fn reach(&mut self, moment: Moment) -> Option<Replies> {
        match moment {
            Moment::Load => self.start_and_wait(400).await,
            Moment::Prepare => {
                self.daemon.kill();
                for path in self.prepared("") {
                    fs::remove_file(path).unwrap();
                }
                self.start_anew();
                eventually("something being prepared", async || {
                    (!self.prepared("").is_empty()).then_some(())
                })
                .await;
                self.a_while(600).await;
            }
            Moment::Prefill => {
                let stream = self.begin(&long_prompt(1500), 64).await;
                let steps = self.below(60);
                self.until_steps(steps).await;
                return Some(stream);
            }
            Moment::Decode => {
                let mut stream = self.begin("Once upon a time", 2000).await;
                for _ in 0..self.below(40) {
                    stream.next().await.unwrap().unwrap();
                }
                self.a_while(20).await;
                return Some(stream);
            }
            Moment::Reload => {
                self.drafts = !self.drafts;
                let file = self.daemon.home().paths().config_file;
                fs::write(file, config(self.drafts)).unwrap();
                let mut reload = self.daemon.tandem(&["reload"]).spawn().unwrap();
                self.a_while(400).await;
                self.daemon.kill();
                // It may have succeeded or not; it ends.
                reload.wait().unwrap();
            }
            Moment::Drain => {
                let stream = self.begin("Once upon a time", 4000).await;
                self.daemon.terminate();
                self.a_while(300).await;
                return Some(stream);
            }
            Moment::Pull => self.pull().await,
        }
        None
    }

    fn start_anew(&mut self) {
        let mut command = self.daemon.home().command();
        command.args(["daemon", "run"]);
        self.daemon.relaunch(command);
    }

    async fn start_and_wait(&mut self, most_ms: u64) {
        self.daemon.kill();
        self.start_anew();
        self.a_while(most_ms).await;
    }

    async fn begin(&self, prompt: &str, max_tokens: u32) -> Replies {
        let mut client = self.daemon.client().await;
        let stream = client.generate(request(prompt, max_tokens)).await;
        stream.unwrap().into_inner()
    }

    /// Waits until the engine has made so many steps more.
    async fn until_steps(&self, steps: u64) {
        let client = self.daemon.client().await;
        let made = async || status(&mut client.clone()).await.totals.unwrap().steps;
        let begin = made().await;
        eventually("steps", async || {
            (made().await >= begin + steps).then_some(())
        })
        .await;
    }

    /// Kills a download in the middle; the next one has the whole file.
    async fn pull(&mut self) {
        let pull = |drill: &Self| {
            let mut command = drill.daemon.tandem(&["pull", hub::REPO]);
            command
                .env("HF_ENDPOINT", drill.hub.endpoint())
                .env("HF_HOME", drill.daemon.home().path().join("hf"))
                .env_remove("HF_HUB_CACHE")
                .env_remove("HF_HUB_OFFLINE");
            command
        };
        let _ = fs::remove_dir_all(self.daemon.home().path().join("hf"));
        let target = self.hub.sent() + self.below(hub::FILE_BYTES as u64);
        let mut child = pull(self).spawn().unwrap();
        eventually("a transfer under way", async || {
            (self.hub.sent() >= target || child.try_wait().unwrap().is_some()).then_some(())
        })
        .await;
        let _ = child.kill();
        child.wait().unwrap();
        let output = pull(self).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let path = String::from_utf8(output.stdout).unwrap();
        assert_eq!(fs::read(path.trim()).unwrap(), hub::file(), "{path}");
    }

    /// Files of prepared weights whose names end so.
    fn prepared(&self, ending: &str) -> Vec<PathBuf> {
        let directory = self.daemon.home().paths().prepared_dir();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| path.is_file() && path.display().to_string().ends_with(ending))
            .collect()
    }

    async fn text(&self) -> String {
        let prompt = request("Once upon a time", 32);
        let seeded = GenerateRequest {
            sampling_params: Some(SamplingParams {
                temperature: Some(0.8),
                seed: Some(7),
                ..prompt.sampling_params.unwrap()
            }),
            ..prompt
        };
        let answer = generate(&mut self.daemon.client().await, seeded).await;
        answer.unwrap().text
    }

    /// Checks that the successor is as if nothing had happened.
    async fn check(&self) {
        assert_eq!(self.text().await, self.expected);
        let parts = self.prepared(".part");
        assert!(parts.is_empty(), "unfinished files of the dead: {parts:?}");
        let log = self.daemon.log();
        for word in ["panicked", "damaged", "ERROR"] {
            let line = log.lines().find(|line| line.contains(word));
            assert_eq!(line, None);
        }
        let status = status(&mut self.daemon.client().await).await;
        assert_eq!(status.pid, self.daemon.pid());
        assert_eq!(status.pairs.len(), 1);
        let info = status.pairs[0].info.clone().unwrap();
        assert_eq!(
            (info.error.as_str(), info.draft.is_some()),
            ("", self.drafts)
        );
        // A stream of the successor's own, to the end.
        let mut client = self.daemon.client().await;
        let stream = client.generate(request("Hello", 4)).await.unwrap();
        collect(stream.into_inner()).await.unwrap();
    }
}

impl Drop for Drill {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "drill: TANDEM_DRILL_SEED={} fails at {}",
                self.seed, self.kill
            );
        }
    }
}

/// One pair, with steps so small that a prompt takes many.
fn config(drafts: bool) -> String {
    let files = models::default_pair();
    let draft = if drafts {
        files.draft.display().to_string()
    } else {
        "none".to_owned()
    };
    let target = files.target.display().to_string();
    format!("[engine]\nmax_step_rows = 16\n[pairs.only]\ntarget = {target:?}\ndraft = {draft:?}\n")
}
