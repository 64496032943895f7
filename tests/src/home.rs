//! A directory in which one daemon lives, apart from the user's own.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tandem_proto::paths::{Paths, System};
use tempfile::TempDir;

use crate::Daemon;

/// `TANDEM_HOME` for one daemon, its config file, and the binary under test. Removed when dropped.
///
/// Prepared weights are shared by all homes, as they are by all daemons of a user, so that not every test prepares the
/// default pair; see [`Home::own_cache`].
#[derive(Debug)]
pub struct Home {
    directory: TempDir,
    binary: PathBuf,
    config: String,
    /// The cache, where it is this home's own.
    cache: Option<TempDir>,
}

impl Home {
    /// Makes an empty directory, short enough for a socket in it. `binary` is the built `tandem`.
    ///
    /// # Panics
    /// When the directory cannot be made.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("tandem-")
            .tempdir_in("/tmp")
            .expect("a directory in /tmp");
        symlink(shared_cache(), directory.path().join("cache")).expect("a link can be made");
        let home = Self {
            directory,
            binary: binary.into(),
            config: String::new(),
            cache: None,
        };
        home.stall(0, 0);
        home
    }

    /// Shares no cache with other homes. It lies beside the tests, on a disk: where `/tmp` is memory, mapped files there
    /// would count as dirty.
    ///
    /// # Panics
    /// When it cannot be made or linked.
    #[must_use]
    pub fn own_cache(mut self) -> Self {
        let cache = tempfile::tempdir_in(shared_cache()).expect("a directory for a cache");
        self.link_cache(cache.path());
        self.cache = Some(cache);
        self
    }

    /// Uses the cache of another home.
    ///
    /// # Panics
    /// When it cannot be linked.
    #[must_use]
    pub fn cache_of(self, other: &Home) -> Self {
        let cache = fs::read_link(other.path().join("cache")).expect("every home has a link");
        self.link_cache(&cache);
        self
    }

    /// Has a file where the cache should be.
    ///
    /// # Panics
    /// When that cannot be made so.
    #[must_use]
    pub fn no_cache(self) -> Self {
        let link = self.path().join("cache");
        fs::remove_file(&link).expect("the link can be removed");
        fs::write(link, "in the way").expect("a file can be written");
        self
    }

    fn link_cache(&self, cache: &Path) {
        let link = self.path().join("cache");
        fs::remove_file(&link).expect("the link can be removed");
        symlink(cache, link).expect("a link can be made");
    }

    /// Appends to the config file, which does not exist before.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        let path = self.paths().config_file;
        fs::create_dir_all(path.parent().expect("a file has a parent"))
            .expect("the directory can be made");
        fs::write(path, &self.config).expect("the config can be written");
        self
    }

    /// Appends a pair to the config file. `draft` may be "none".
    #[must_use]
    pub fn pair(self, name: &str, target: impl AsRef<OsStr>, draft: impl AsRef<OsStr>) -> Self {
        let mut table = String::new();
        writeln!(table, "[pairs.{name}]").expect("strings grow");
        for (key, value) in [("target", target.as_ref()), ("draft", draft.as_ref())] {
            writeln!(
                table,
                "{key} = {:?}",
                value.to_str().expect("test paths are UTF-8")
            )
            .expect("strings grow");
        }
        self.config(&table)
    }

    /// Returns the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Returns where the daemon looks for its files, by the rules that it and its clients share.
    #[must_use]
    pub fn paths(&self) -> Paths {
        let home = self.path().as_os_str().to_owned();
        Paths::resolve(
            System::current(),
            |name| (name == "TANDEM_HOME").then(|| home.clone()),
            Path::exists,
        )
        .expect("an absolute, short directory is a home")
    }

    /// Returns where the daemon's socket is.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.paths().socket
    }

    /// Returns a `tandem` command that sees this directory and nothing of the user's settings, with no input.
    #[must_use]
    pub fn command(&self) -> Command {
        self.command_of(&self.binary)
    }

    /// Returns a command that runs another program with the same environment and no input.
    #[must_use]
    pub fn command_of(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name
                .to_str()
                .is_some_and(|name| name.starts_with("TANDEM_") || name == "RUST_LOG")
            {
                command.env_remove(name);
            }
        }
        command
            .env("TANDEM_HOME", self.path())
            .env("TANDEM_PRESSURE_FILE", self.stalls_file())
            .stdin(Stdio::null());
        command
    }

    fn stalls_file(&self) -> PathBuf {
        self.path().join("memory-stalls")
    }

    /// Has the system stalled for want of memory for this share of the time in percent, of some and of all tasks. Daemons
    /// of tests are told by this file, since the machine may be short of memory or slow at any time; it begins with none.
    ///
    /// # Panics
    /// When the file cannot be replaced.
    pub fn stall(&self, some: u32, full: u32) {
        let text = format!("some avg10={some}.00 total=0\nfull avg10={full}.00 total=0\n");
        let file = self.stalls_file();
        // Whole or not at all: the daemon reads at any time.
        let new = file.with_extension("new");
        fs::write(&new, text).expect("a file can be written");
        fs::rename(new, file).expect("a file can be renamed");
    }

    /// Starts the daemon and waits until it serves.
    ///
    /// # Panics
    /// When it ends instead, or takes too long; the message holds its log.
    pub async fn start(self) -> Daemon {
        let mut daemon = self.spawn();
        daemon.wait_until_serving().await;
        daemon
    }

    /// Starts the daemon and waits for nothing.
    ///
    /// # Panics
    /// When the process cannot be started.
    #[must_use]
    pub fn spawn(self) -> Daemon {
        let mut command = self.command();
        command.args(["daemon", "run"]);
        Daemon::spawn(self, command)
    }

    /// Starts the daemon by a command of the test's, such as one that passes a socket on.
    ///
    /// # Panics
    /// When the process cannot be started.
    #[must_use]
    pub fn spawn_by(self, command: Command) -> Daemon {
        Daemon::spawn(self, command)
    }
}

/// A directory beside the tests, which later runs find again.
fn shared_cache() -> PathBuf {
    let tests = std::env::current_exe().expect("a test knows its own file");
    let cache = tests
        .parent()
        .expect("a file has a directory")
        .join("tandem-test-cache");
    fs::create_dir_all(&cache).expect("the directory can be made");
    cache
}
