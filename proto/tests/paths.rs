//! The rules of `Paths`, on environments made up here.

use std::path::{Path, PathBuf};

use tandem_proto::paths::{MAX_SOCKET_PATH_BYTES, Paths, PathsError, System};

fn resolve(system: System, environment: &[(&str, &str)]) -> Result<Paths, PathsError> {
    resolve_with_files(system, environment, &[])
}

fn resolve_with_files(
    system: System,
    environment: &[(&str, &str)],
    files: &[&str],
) -> Result<Paths, PathsError> {
    Paths::resolve(
        system,
        |name| {
            environment
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.into())
        },
        |path| files.iter().any(|file| Path::new(file) == path),
    )
}

#[test]
fn tandem_home_holds_everything_and_needs_no_home() {
    for system in [System::MacOs, System::Linux] {
        let paths = resolve(
            system,
            &[("TANDEM_HOME", "/t"), ("XDG_RUNTIME_DIR", "/run/user/1")],
        )
        .unwrap();
        assert_eq!(paths.config_file, Path::new("/t/config.toml"));
        assert_eq!(paths.socket, Path::new("/t/run/tandem.sock"));
        assert_eq!(paths.lock, Path::new("/t/run/tandem.lock"));
        assert_eq!(paths.log_file(), Path::new("/t/logs/tandemd.log"));
        assert_eq!(paths.models_dir(), Path::new("/t/models"));
        assert_eq!(paths.cache_dir, Path::new("/t/cache"));
        assert_eq!(paths.prepared_dir(), Path::new("/t/cache/prepared"));
    }
}

#[test]
fn single_paths_can_be_replaced() {
    let environment = [
        ("TANDEM_HOME", "/t"),
        ("TANDEM_SOCKET", "/s/x.sock"),
        ("TANDEM_CONFIG", "/c.toml"),
    ];
    let paths = resolve(System::Linux, &environment).unwrap();
    assert_eq!(paths.socket, Path::new("/s/x.sock"));
    assert_eq!(paths.lock, Path::new("/s/x.lock"));
    assert_eq!(paths.config_file, Path::new("/c.toml"));
    assert_eq!(paths.data_dir, Path::new("/t"));
}

#[test]
fn mac_os_uses_the_library() {
    let paths = resolve(
        System::MacOs,
        &[("HOME", "/Users/a"), ("XDG_CONFIG_HOME", "/elsewhere")],
    )
    .unwrap();
    let support = Path::new("/Users/a/Library/Application Support/tandem");
    assert_eq!(paths.config_file, support.join("config.toml"));
    assert_eq!(paths.socket, support.join("run/tandem.sock"));
    assert_eq!(paths.models_dir(), support.join("models"));
    assert_eq!(paths.log_dir, Path::new("/Users/a/Library/Logs/tandem"));
    assert_eq!(paths.cache_dir, Path::new("/Users/a/Library/Caches/tandem"));
}

#[test]
fn mac_os_prefers_a_dotfile_that_exists() {
    let dotfile = "/Users/a/.config/tandem/config.toml";
    let paths = resolve_with_files(System::MacOs, &[("HOME", "/Users/a")], &[dotfile]).unwrap();
    assert_eq!(paths.config_file, Path::new(dotfile));
    assert_eq!(
        paths.data_dir,
        Path::new("/Users/a/Library/Application Support/tandem")
    );
}

#[test]
fn linux_follows_xdg() {
    let environment = [
        ("XDG_CONFIG_HOME", "/c"),
        ("XDG_RUNTIME_DIR", "/r"),
        ("XDG_STATE_HOME", "/s"),
        ("XDG_DATA_HOME", "/d"),
        ("XDG_CACHE_HOME", "/k"),
    ];
    let paths = resolve(System::Linux, &environment).unwrap();
    assert_eq!(paths.config_file, Path::new("/c/tandem/config.toml"));
    assert_eq!(paths.socket, Path::new("/r/tandem/tandem.sock"));
    assert_eq!(paths.log_dir, Path::new("/s/tandem/logs"));
    assert_eq!(paths.models_dir(), Path::new("/d/tandem/models"));
    assert_eq!(paths.cache_dir, Path::new("/k/tandem"));
}

#[test]
fn linux_falls_back_to_the_home_directory() {
    // Relative and empty values count as unset.
    let environment = [
        ("HOME", "/home/a"),
        ("XDG_DATA_HOME", "relative"),
        ("XDG_CACHE_HOME", ""),
    ];
    let paths = resolve(System::Linux, &environment).unwrap();
    assert_eq!(
        paths.config_file,
        Path::new("/home/a/.config/tandem/config.toml")
    );
    assert_eq!(
        paths.socket,
        Path::new("/home/a/.local/state/tandem/run/tandem.sock")
    );
    assert_eq!(paths.data_dir, Path::new("/home/a/.local/share/tandem"));
    assert_eq!(paths.cache_dir, Path::new("/home/a/.cache/tandem"));
}

#[test]
fn errors_say_what_to_do() {
    assert_eq!(resolve(System::Linux, &[]), Err(PathsError::NoHome));
    assert_eq!(
        resolve(System::MacOs, &[("HOME", "")]),
        Err(PathsError::NoHome)
    );
    assert_eq!(
        resolve(System::Linux, &[("TANDEM_HOME", "here")]),
        Err(PathsError::NotAbsolute {
            variable: "TANDEM_HOME",
            path: PathBuf::from("here")
        })
    );
}

#[test]
fn the_socket_path_limit_is_exact() {
    let fits = format!("/{}", "s".repeat(MAX_SOCKET_PATH_BYTES - 1));
    assert!(
        resolve(
            System::Linux,
            &[("TANDEM_HOME", "/t"), ("TANDEM_SOCKET", &fits)]
        )
        .is_ok()
    );

    let long = format!("{fits}s");
    let error = resolve(
        System::Linux,
        &[("TANDEM_HOME", "/t"), ("TANDEM_SOCKET", &long)],
    )
    .unwrap_err();
    assert_eq!(
        error,
        PathsError::SocketPathTooLong {
            path: PathBuf::from(&long),
            length: 104
        }
    );
    let message = error.to_string();
    assert!(
        message.contains(&long)
            && message.contains("104 bytes")
            && message.contains("TANDEM_SOCKET"),
        "{message}"
    );
}

#[test]
fn the_lock_of_the_user_depends_on_the_home_directory_alone() {
    let lock = |environment: &[(&str, &str)]| {
        resolve(System::Linux, environment)
            .expect("a home is enough")
            .user_lock
    };
    let home = ("HOME", "/home/a");
    let plain = lock(&[home]).expect("nobody chose a socket");
    assert!(plain.starts_with("/home/a/.local/state/tandem/run"));
    for environment in [
        &[home, ("XDG_RUNTIME_DIR", "/run/user/1")][..],
        &[home, ("XDG_STATE_HOME", "/s")],
        &[
            home,
            ("XDG_RUNTIME_DIR", "/r"),
            ("TANDEM_SOCKET", "/r/tandem/tandem.sock"),
        ],
    ] {
        assert_eq!(lock(environment), Some(plain.clone()), "{environment:?}");
    }
    for chosen in [
        ("TANDEM_HOME", "/t"),
        ("TANDEM_SOCKET", "/elsewhere/tandem.sock"),
    ] {
        assert_eq!(lock(&[home, chosen]), None, "{chosen:?} is a choice");
    }
}
