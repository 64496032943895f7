//! Where the daemon's program is.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::LaunchError;

const VARIABLE: &str = "TANDEM_DAEMON";
const PROGRAM: &str = "tandemd";

/// Finds the daemon: `TANDEM_DAEMON`, else `tandemd` beside the running program, else in `PATH`.
///
/// # Errors
/// Returns [`LaunchError::NotFound`] where it is in none of them.
pub fn daemon() -> Result<PathBuf, LaunchError> {
    let beside = std::env::current_exe().ok();
    locate(
        std::env::var_os(VARIABLE),
        beside.as_deref(),
        std::env::var_os("PATH"),
        is_program,
    )
}

fn locate(
    named: Option<OsString>,
    current_exe: Option<&Path>,
    search_path: Option<OsString>,
    exists: impl Fn(&Path) -> bool,
) -> Result<PathBuf, LaunchError> {
    if let Some(named) = named.filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        // Somebody chose this one; another would surprise them.
        return if exists(&named) {
            Ok(named)
        } else {
            Err(LaunchError::NotFound {
                tried: format!(
                    "{VARIABLE} names `{}`, which is no program",
                    named.display()
                ),
            })
        };
    }
    let beside = current_exe.and_then(Path::parent).map(Path::to_path_buf);
    let directories = beside
        .iter()
        .cloned()
        .chain(search_path.iter().flat_map(std::env::split_paths));
    directories
        .map(|directory| directory.join(PROGRAM))
        .find(|program| exists(program))
        .ok_or_else(|| {
            let beside = beside.map_or_else(String::new, |directory| {
                format!("not in `{}`, and ", directory.display())
            });
            LaunchError::NotFound {
                tried: format!("{VARIABLE} is not set, {beside}not in PATH"),
            }
        })
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(named: Option<&str>, path: Option<&str>, there: &[&str]) -> Result<PathBuf, String> {
        locate(
            named.map(Into::into),
            Some(Path::new("/app/tool")),
            path.map(Into::into),
            |program| there.iter().any(|file| Path::new(file) == program),
        )
        .map_err(|error| error.to_string())
    }

    #[test]
    fn the_variable_comes_first_and_is_final() {
        assert_eq!(
            find(Some("/x/d"), None, &["/x/d", "/app/tandemd"]),
            Ok(PathBuf::from("/x/d"))
        );
        let error =
            find(Some("/x/d"), None, &["/app/tandemd"]).expect_err("named program is missing");
        assert!(error.contains("`/x/d`"), "{error}");
    }

    #[test]
    fn beside_the_program_comes_before_the_search_path() {
        let path = Some("/usr/bin:/opt/bin");
        assert_eq!(
            find(None, path, &["/app/tandemd", "/opt/bin/tandemd"]),
            Ok(PathBuf::from("/app/tandemd"))
        );
        assert_eq!(
            find(None, path, &["/opt/bin/tandemd"]),
            Ok(PathBuf::from("/opt/bin/tandemd"))
        );
        assert_eq!(
            find(Some(""), path, &["/opt/bin/tandemd"]),
            Ok(PathBuf::from("/opt/bin/tandemd"))
        );
    }

    #[test]
    fn the_error_says_where_it_looked() {
        let error = find(None, None, &[]).expect_err("nothing is there");
        assert!(
            error.contains("`/app`") && error.contains("PATH") && error.contains("TANDEM_DAEMON"),
            "{error}"
        );
    }
}
