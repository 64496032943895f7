//! Which directories have to be watched for a file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// More symbolic links than any system follows.
const MOST_LINKS: usize = 40;

/// Returns the directories in which something happens whenever `path` comes to name another file or another text: those of
/// the name itself and of every symbolic link on the way. Of a directory that does not exist, the nearest one around it
/// that does.
pub(super) fn directories(path: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut rest = vec![path.to_owned()];
    let mut links = 0;
    while let Some(path) = rest.pop() {
        for name in path.ancestors() {
            let Some(directory) = name.parent() else {
                break;
            };
            if name == path || name.is_symlink() {
                found.extend(nearest(directory));
            }
            if let Ok(target) = name.read_link()
                && links < MOST_LINKS
            {
                links += 1;
                // What follows the link in the path is looked for behind it.
                let behind = path.strip_prefix(name).unwrap_or(Path::new(""));
                let target = directory.join(target);
                rest.push(match behind.as_os_str().is_empty() {
                    true => target,
                    false => target.join(behind),
                });
            }
        }
    }
    found
}

/// Returns the nearest directory that exists.
fn nearest(directory: &Path) -> Option<PathBuf> {
    directory
        .ancestors()
        .find(|directory| directory.is_dir())
        .map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Directories below a scratch one, by their names there.
    fn names(root: &Path, file: &str) -> Vec<String> {
        let all = directories(&root.join(file)).into_iter();
        let below =
            all.filter_map(|path| Some(path.strip_prefix(root).ok()?.display().to_string()));
        below.collect()
    }

    #[test]
    fn a_file_a_link_and_what_is_missing() {
        let scratch = tempfile::tempdir().unwrap();
        let root = &scratch.path().canonicalize().unwrap();
        for directory in ["plain", "real", "links", "data/one"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        fs::write(root.join("plain/c"), "").unwrap();
        assert_eq!(names(root, "plain/c"), ["plain"]);
        assert_eq!(names(root, "plain/absent"), ["plain"]);
        assert_eq!(names(root, "none/below/c"), [""], "the one around them");

        symlink("../real/c", root.join("links/c")).unwrap();
        assert_eq!(
            names(root, "links/c"),
            ["links", "links/../real"],
            "where the link is, and where it points, even to nothing"
        );

        // As some systems hand out configuration: the link that is swapped is in the middle.
        symlink("one", root.join("data/now")).unwrap();
        fs::write(root.join("data/one/c"), "").unwrap();
        symlink("now/c", root.join("data/c")).unwrap();
        assert_eq!(names(root, "data/c"), ["data", "data/now", "data/one"]);
    }

    #[test]
    fn links_in_a_circle_end() {
        let scratch = tempfile::tempdir().unwrap();
        let root = &scratch.path().canonicalize().unwrap();
        symlink("b", root.join("a")).unwrap();
        symlink("a", root.join("b")).unwrap();
        assert_eq!(names(root, "a"), [""]);
    }
}
