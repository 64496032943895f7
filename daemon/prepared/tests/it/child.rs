//! Other processes: this test program again, told by its environment what to do.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use tandem_prepared::Store;

use crate::world::{World, obtain_with};

const DIRECTORY: &str = "TANDEM_TEST_CHILD";
const TASK: &str = "TANDEM_TEST_TASK";

/// Starts a process that obtains the world's model.
pub(crate) fn start(world: &World, task: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child::task", "--ignored", "--nocapture"])
        .env(DIRECTORY, world.root())
        .env(TASK, task)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Reads a child's lines up to the one that begins so, and returns what follows there.
pub(crate) fn hear(child: &mut Child, beginning: &str) -> String {
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    lines
        .find_map(|line| line.unwrap().strip_prefix(beginning).map(str::to_owned))
        .unwrap_or_else(|| panic!("the child ended without saying `{beginning}`"))
}

/// Reads a mapping of its own, of a file that it empties before.
#[expect(unsafe_code, reason = "a file is mapped, to fault on it")]
fn fault(path: &Path) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    // SAFETY: what it reads is not used; that reading fails is what it is for.
    let map = unsafe { memmap2::Mmap::map(&file).unwrap() };
    file.set_len(0).unwrap();
    say(&format!("read {}", map[0]));
}

fn say(line: &str) {
    // The harness ends its own line after the test only.
    let mut out = std::io::stdout();
    writeln!(out, "\n{line}").unwrap();
    out.flush().unwrap();
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn task() {
    let directory = std::env::var(DIRECTORY).expect("a test starts it");
    let directory = Path::new(&directory);
    let store = Store::new(directory.join("prepared"), 1 << 20);
    let task = std::env::var(TASK).unwrap();
    if task == "limited" {
        let limit = Rlimit {
            current: Some(600),
            maximum: Some(600),
        };
        setrlimit(Resource::Fsize, limit).unwrap();
    }
    if task == "together" {
        say("ready");
        // All begin at the same time: when the test closes their input.
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }
    let run = obtain_with(&store, &directory.join("model.gguf"), "test", &|index| {
        if task == "hang" && index == 3 {
            say("hanging");
            std::thread::sleep(Duration::from_secs(600));
        }
    });
    if task == "bus" {
        fault(&directory.join("model.gguf"));
    }
    match run.result {
        Ok(obtained) => say(&format!("made {}", obtained.made)),
        Err(error) => say(&format!("error {error}")),
    }
}
