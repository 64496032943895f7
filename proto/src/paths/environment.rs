//! Reads the environment of this process, and corrects it where it says nothing or the wrong thing.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Looks a variable up; an empty one counts as unset.
pub(super) fn variable(name: &'static str) -> Option<OsString> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    match name {
        // Without the variable, the standard library asks the system for the account's directory.
        "HOME" => value.or_else(|| std::env::home_dir().map(OsString::from)),
        "XDG_RUNTIME_DIR" => match own_uid() {
            Some(own) => runtime_dir(value, own, "/run/user"),
            None => value,
        },
        _ => value,
    }
}

/// The XDG specification has the directory owned by the user; `su` and `sudo -E` leave that of somebody else.
fn runtime_dir(named: Option<OsString>, own: u32, standard: &str) -> Option<OsString> {
    let owner = |path: &Path| fs::metadata(path).map(|meta| meta.uid()).ok();
    // One that does not exist yet is made, where that can be.
    let can_be_made = |dir: &Path| {
        let above = dir.ancestors().skip(1);
        let above = above.filter_map(|dir| fs::metadata(dir).ok()).next();
        above.is_some_and(|meta| own == 0 || meta.uid() == own || meta.mode() & 0o002 != 0)
    };
    let usable = named.filter(|dir| match owner(dir.as_ref()) {
        Some(owner) => owner == own,
        None => can_be_made(dir.as_ref()),
    });
    usable.or_else(|| {
        let dir = format!("{standard}/{own}");
        (owner(dir.as_ref()) == Some(own)).then(|| dir.into())
    })
}

/// Returns the user that this process runs as, where the system shows processes as files.
fn own_uid() -> Option<u32> {
    fs::metadata("/proc/self").map(|meta| meta.uid()).ok()
}

/// Returns the name of the lock of this user's daemon. It differs between machines that share a home directory, and between
/// containers that do: their processes do not see each other, nor each other's sockets.
pub(super) fn user_lock_name() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let boot: String = boot.chars().filter(char::is_ascii_hexdigit).collect();
    let processes = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    format!(
        "user-{}-{}.lock",
        boot.get(..8).unwrap_or("0"),
        digits(&processes.to_string_lossy())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_directory_is_ours_or_the_standard_one() {
        let base = tempfile::tempdir().unwrap();
        let own = fs::metadata(base.path()).unwrap().uid();
        let (stranger, standard) = (own + 1, base.path().join("user"));
        let ours = standard.join(own.to_string());
        fs::create_dir_all(&ours).unwrap();
        let standard = standard.to_str().unwrap();
        let named = |path: &Path| Some(path.as_os_str().to_owned());

        assert_eq!(runtime_dir(None, own, standard), named(&ours), "cron, ssh");
        assert_eq!(
            runtime_dir(named(base.path()), own, standard),
            named(base.path())
        );
        assert_eq!(
            runtime_dir(named(&base.path().join("new")), own, standard),
            named(&base.path().join("new")),
            "it is made"
        );
        assert_eq!(
            runtime_dir(Some("/proc/nobody-makes-this".into()), own.max(1), standard),
            own.gt(&0).then(|| named(&ours)).flatten(),
            "after a logout, or in a container: it is named and cannot be made"
        );
        assert_eq!(
            runtime_dir(named(base.path()), stranger, standard),
            None,
            "sudo -E: it belongs to somebody else, and there is no other"
        );
    }

    #[test]
    fn the_home_directory_and_the_user_are_known() {
        assert!(variable("HOME").is_some());
        #[cfg(target_os = "linux")]
        assert!(own_uid().is_some() && user_lock_name() == user_lock_name());
    }
}
