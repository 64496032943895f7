//! The directory of prepared weights: whether the first load of a model can leave its work there.

use std::path::Path;

use rustix::fs::{Access, access, statvfs};

use super::{Finding, of};
use crate::config::format_bytes;

/// Less than this is no room for the weights of an ordinary model.
const LITTLE: u64 = 2 << 30;

pub(super) fn check(directory: &Path) -> Finding {
    let finding = of("memory", "prepared weights");
    let shown = directory.display();
    let advice = "each start packs weights in memory meanwhile: make it a directory of yours that can be written, or \
                  name another one with TANDEM_HOME or XDG_CACHE_HOME";
    // Of what does not exist yet, the first parent that does decides.
    let there = directory
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    let Some(there) = there else {
        return finding
            .warning(format!("{shown} cannot be made"))
            .advise(advice);
    };
    if !there.is_dir() {
        return finding
            .warning(format!("{} is not a directory", there.display()))
            .advise(advice);
    }
    let is_made = there == directory;
    if let Err(problem) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        return finding
            .warning(format!("{} cannot be written: {problem}", there.display()))
            .advise(advice);
    }
    let free = match statvfs(there) {
        Ok(space) => space.f_bavail.saturating_mul(space.f_frsize),
        Err(problem) => {
            return finding
                .warning(format!(
                    "{}: the system does not say how much is free: {problem}",
                    there.display()
                ))
                .advise(advice);
        }
    };
    let state = if is_made { "" } else { ", not made yet" };
    let seen = format!("{shown}{state}; {} free there", format_bytes(free));
    let finding = if free < LITTLE {
        finding.warning(seen).advise(
            "a model takes about its file's size there: make room, or weights are packed in memory at each start",
        )
    } else {
        finding.ok(seen)
    };
    finding.value("free_bytes", free).value("exists", is_made)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::Mark;
    use super::*;

    #[test]
    fn what_is_not_there_yet_is_not_made() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("cache/prepared");
        let finding = check(&directory);
        assert!(finding.mark != Mark::Failed, "{finding:?}");
        assert_eq!(finding.values["exists"], false);
        assert!(!home.path().join("cache").exists());
    }

    #[test]
    fn a_file_in_the_way_is_a_warning_with_what_to_do() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("cache"), "in the way").unwrap();
        let finding = check(&home.path().join("cache/prepared"));
        assert_eq!(finding.mark, Mark::Warning);
        assert!(finding.message.contains("not a directory"), "{finding:?}");
        assert!(finding.advice.is_some());
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_a_warning() {
        let home = tempfile::tempdir().unwrap();
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o500)).unwrap();
        let (path, says) = if rustix::process::geteuid().is_root() {
            // Root may write anywhere; there is no room there, though.
            (Path::new("/proc/prepared").to_owned(), "0 bytes free there")
        } else {
            (home.path().join("prepared"), "cannot be written")
        };
        let finding = check(&path);
        assert_eq!(finding.mark, Mark::Warning, "{finding:?}");
        assert!(finding.message.contains(says), "{finding:?}");
    }
}
