//! What model files were found to hold, remembered by their stamps, so that a restart need not read them.
//!
//! A stamp has the time of the last change of the inode, which no program can set. So content that was exchanged behind an old
//! modification time is noticed.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::align::checksum;
use crate::key::ContentId;
use crate::store::replace_file;

/// A file that changed more recently could change again without a new time: clocks of file systems tick slowly.
const SETTLED: Duration = Duration::from_secs(2);

/// What the system says of a file without reading it: which one it is, how large, and when it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    device: u64,
    inode: u64,
    pub(crate) bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// One remembered file.
#[derive(Serialize, Deserialize)]
struct Known {
    stamp: Stamp,
    content: String,
}

impl Stamp {
    /// The stamp of a file by what the system says of it.
    #[must_use]
    pub fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            bytes: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// Whether two stamps of one open file are of the same content, as far as that shows: a file that got another name
    /// meanwhile, or lost its last, is what it was.
    #[must_use]
    pub fn same_content(&self, other: &Self) -> bool {
        (self.device, self.inode, self.bytes, self.modified)
            == (other.device, other.inode, other.bytes, other.modified)
    }

    /// Whether a later change is sure to show. A change in the future is a clock that cannot be trusted.
    fn is_settled(&self, now: SystemTime) -> bool {
        let since = |(seconds, nanos): (i64, i64)| {
            let seconds = u64::try_from(seconds).ok()?;
            let at = UNIX_EPOCH.checked_add(Duration::new(seconds, u32::try_from(nanos).ok()?))?;
            now.duration_since(at).ok()
        };
        since(self.changed).is_some_and(|age| age >= SETTLED)
    }

    fn path(&self, directory: &Path) -> PathBuf {
        directory.join(format!("{:x}-{:x}.json", self.device, self.inode))
    }
}

/// Returns what the file with this stamp was found to hold. A damaged note counts as none.
pub(crate) fn recall(directory: &Path, stamp: &Stamp) -> Option<ContentId> {
    let text = fs::read_to_string(stamp.path(directory)).ok()?;
    let (json, sum) = text.trim_end().split_once('\n')?;
    if u64::from_str_radix(sum, 16).ok()? != checksum([json.as_bytes()]) {
        return None;
    }
    let known: Known = serde_json::from_str(json).ok()?;
    (known.stamp == *stamp).then(|| known.content.parse().ok())?
}

/// Notes what a file holds. That it cannot is no failure: the file is then read again the next time.
pub(crate) fn remember(directory: &Path, stamp: &Stamp, content: ContentId, now: SystemTime) {
    if !stamp.is_settled(now) {
        return;
    }
    let known = Known {
        stamp: *stamp,
        content: content.to_string(),
    };
    if let Ok(json) = serde_json::to_string(&known) {
        let text = format!("{json}\n{:016x}\n", checksum([json.as_bytes()]));
        let _ = replace_file(&stamp.path(directory), text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn stamp() -> Stamp {
        Stamp {
            device: 1,
            inode: 2,
            bytes: 3,
            modified: (4, 5),
            changed: (6, 7),
        }
    }

    #[test]
    fn only_the_same_stamp_is_recalled() {
        let directory = tempfile::tempdir().unwrap();
        let content = ContentId([9; 32]);
        remember(directory.path(), &stamp(), content, SystemTime::now());
        assert_eq!(recall(directory.path(), &stamp()), Some(content));
        let other = |change: fn(&mut Stamp)| {
            let mut other = stamp();
            change(&mut other);
            recall(directory.path(), &other)
        };
        assert_eq!(other(|stamp| stamp.device = 9), None);
        assert_eq!(other(|stamp| stamp.inode = 9), None);
        assert_eq!(other(|stamp| stamp.bytes = 9), None);
        assert_eq!(other(|stamp| stamp.modified.1 = 9), None);
        assert_eq!(other(|stamp| stamp.changed.1 = 9), None);
    }

    #[test]
    fn a_note_with_a_flipped_bit_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let content = ContentId([9; 32]);
        remember(directory.path(), &stamp(), content, SystemTime::now());
        let path = stamp().path(directory.path());
        let good = fs::read(&path).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        for bit in 0..8 * (good.len() - 1) {
            let (at, byte) = (bit as u64 / 8, good[bit / 8]);
            file.write_all_at(&[byte ^ 1 << (bit % 8)], at).unwrap();
            let found = recall(directory.path(), &stamp());
            assert!(found.is_none_or(|found| found == content), "bit {bit}");
            file.write_all_at(&[byte], at).unwrap();
        }
    }

    #[test]
    fn a_file_that_just_changed_is_not_noted() {
        let directory = tempfile::tempdir().unwrap();
        let at = |seconds, millis| {
            UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis)
        };
        for now in [at(5, 0), at(6, 100), at(7, 900)] {
            remember(directory.path(), &stamp(), ContentId([9; 32]), now);
            assert_eq!(recall(directory.path(), &stamp()), None);
        }
        remember(directory.path(), &stamp(), ContentId([9; 32]), at(8, 100));
        assert!(recall(directory.path(), &stamp()).is_some());
    }
}
