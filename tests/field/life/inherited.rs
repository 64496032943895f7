//! A daemon starts clean, whoever needed it first.

use std::fs;
use std::path::PathBuf;

use super::{Background, said};

/// What Linux says of a process: a field of `/proc/PID/status`.
fn field(pid: u32, name: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.expect("the field is there").trim().to_owned()
}

/// A field of `/proc/PID/stat`, counted as proc(5) does.
fn stat(pid: u32, number: usize) -> i64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').nth(number - 3).unwrap().parse().unwrap()
}

/// Starts a daemon by a script that does things to itself first, and returns its process.
fn started_by(script: &str) -> (Background, u32) {
    let background = Background::new();
    let output = background.shell(&format!("{script}\n\"$T\" run --max-tokens 2 Hi"), &[]);
    assert!(output.status.success(), "{}", said(&output));
    let pid = background.pid();
    (background, pid)
}

#[test]
fn descriptors_of_whoever_started_it_are_closed() {
    let (background, pid) = started_by(
        "exec 9>\"$TANDEM_HOME/script.lock\" 27<\"$T\"; flock 9\nexec 11> >(cat >\"$TANDEM_HOME/pipe\")",
    );
    let lock = background.0.path().join("script.lock");
    let free = std::process::Command::new("flock")
        .arg("-n")
        .arg(&lock)
        .arg("true")
        .status();
    assert!(
        free.unwrap().success(),
        "the script's lock ends with the script"
    );
    let open: Vec<PathBuf> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .collect();
    assert!(
        !open.contains(&lock) && !open.contains(&crate::TANDEM.into()),
        "{open:?}"
    );
}

#[test]
fn niceness_and_processors_are_not_those_of_a_script() {
    let (_background, pid) = started_by("renice -n 10 $$ >/dev/null; taskset -pc 0 $$ >/dev/null");
    assert_eq!(stat(pid, 19), 0, "niceness");
    let processors = |pid| field(pid, "Cpus_allowed_list:");
    assert_eq!(processors(pid), processors(std::process::id()));
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    for thread in threads.flatten() {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        assert_eq!(
            fields.split(' ').nth(19 - 3),
            Some("0"),
            "niceness of every thread"
        );
    }
}

#[test]
fn a_scheduling_class_for_what_may_wait_is_left() {
    let (_background, pid) = started_by("chrt -i -p 0 $$");
    assert_eq!(stat(pid, 41), 0, "the policy is the ordinary one");
}

#[test]
fn signals_that_a_script_ignores_or_blocks_are_not() {
    let (_background, pid) = started_by("trap '' HUP INT QUIT USR1 TSTP XFSZ CHLD");
    let ignored = u64::from_str_radix(&field(pid, "SigIgn:"), 16).unwrap();
    for (name, number) in [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("USR1", 10),
        ("CHLD", 17),
        ("TSTP", 20),
    ] {
        assert_eq!(
            ignored >> (number - 1) & 1,
            0,
            "{name} is ignored: {ignored:x}"
        );
    }
    let blocked = u64::from_str_radix(&field(pid, "SigBlk:"), 16).unwrap();
    assert_eq!(blocked, 0);
}

#[test]
fn directory_umask_and_session_are_its_own() {
    let background = Background::new();
    let script = "mkdir -p \"$TANDEM_HOME/cwd\"; cd \"$TANDEM_HOME/cwd\"; umask 0; echo $$; \
                  \"$T\" run --max-tokens 2 Hi >&2; rmdir \"$TANDEM_HOME/cwd\"";
    let output = background.shell(script, &[]);
    assert!(output.status.success(), "{output:?}");
    let shell: i64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    let pid = background.pid();
    let directory = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
    assert_eq!(directory, PathBuf::from("/"));
    assert_eq!(field(pid, "Umask:"), "0077");
    let session = stat(pid, 6);
    assert_eq!(
        session,
        i64::from(pid),
        "a closing terminal ends nothing in it"
    );
    assert_ne!(session, shell);
    assert_eq!(stat(pid, 7), 0, "no terminal");
    background.run(); // where it was started is gone
}

#[test]
fn limits_that_can_be_lifted_are() {
    let (background, pid) = started_by(
        "ulimit -S -t 3600; ulimit -S -n 64; ulimit -S -f 50000; ulimit -H -f 100000000",
    );
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let soft = |name: &str| {
        let line = limits
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.split_whitespace().next().unwrap().to_owned()
    };
    assert_eq!(soft("Max cpu time"), "unlimited", "{limits}");
    assert!(
        soft("Max open files").parse::<u64>().unwrap() > 64,
        "{limits}"
    );
    assert_eq!(
        soft("Max file size"),
        (100_000_000u64 * 1024).to_string(),
        "as far as it goes"
    );
    let log = fs::read_to_string(background.0.paths().log_file()).unwrap();
    assert!(
        log.contains("a limit of 102400000000 for the size of files"),
        "what stays is told: {log}"
    );
}

#[test]
fn variables_of_one_program_do_not_reach_it() {
    let (background, pid) = started_by(
        "export NOTIFY_SOCKET=/nowhere LISTEN_FDS=1 LISTEN_PID=$$ RAYON_NUM_THREADS=1 OMP_NUM_THREADS=1 INVOCATION_ID=x",
    );
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap();
    let environment = String::from_utf8_lossy(&environment);
    for name in [
        "NOTIFY_SOCKET",
        "LISTEN_",
        "RAYON_",
        "OMP_",
        "INVOCATION_ID",
    ] {
        assert!(!environment.contains(name), "{name} in {environment}");
    }
    background.run();
}
