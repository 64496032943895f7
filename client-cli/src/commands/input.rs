//! Text from arguments, files and standard input.
//!
//! Beside a prompt on the command line, what lies in standard input may not be meant for this command: in a loop such as
//! `while read line; do tandem run "$line"; done` it is the loop's, and a pipe that somebody keeps open never ends. So a pipe
//! is read beside a prompt where it belongs to this command alone and holds something at once, or ends. The loop's pipe is
//! the standard input of the shell that started this command, too; that of `git diff | tandem run "…"` is not. A file that was
//! redirected ends; where it still stands at its beginning, it is nobody's loop.

mod parent;

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, SeekFrom};

use crate::failure::Failure;

/// The word that stands for standard input.
const STDIN: &str = "-";
/// How long a command on the other side of a pipe may take to begin.
const AT_ONCE: Duration = Duration::from_millis(200);
/// Most that is read of a file or standard input, in bytes: several times the longest message that a daemon takes unless it is
/// told otherwise.
const LONGEST: u64 = 64 << 20;

/// What a prompt is made of.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source<'a> {
    words: &'a [String],
    file: Option<&'a Path>,
    stdin: bool,
    /// Whether standard input was left alone, though it may hold something.
    left: bool,
}

impl<'a> Source<'a> {
    /// Decides where a prompt comes from by the arguments, and by what standard input is.
    pub(super) fn of(words: &'a [String], file: Option<&'a Path>) -> Self {
        Self::decide(words, file, Stdin::look)
    }

    fn decide(words: &'a [String], file: Option<&'a Path>, look: impl FnOnce() -> Stdin) -> Self {
        let (words, asked) = match words.split_last() {
            Some((last, words)) if last == STDIN => (words, true),
            _ => (words, false),
        };
        let (file, asked) = match file {
            Some(path) if path == Path::new(STDIN) => (None, true),
            file => (file, asked),
        };
        let alone = words.is_empty() && file.is_none();
        let (stdin, left) = match asked {
            true => (true, false),
            false => match look() {
                Stdin::Terminal => (false, false),
                _ if alone => (true, false),
                Stdin::Own => (file.is_none(), false),
                Stdin::Other => (false, true),
            },
        };
        Self {
            words,
            file,
            stdin,
            left,
        }
    }

    /// Reads all of it, joined with blank lines; says too whether standard input was left alone, though it may hold something.
    pub(super) fn read(&self) -> Result<(String, bool), Failure> {
        let file = self.file.map(self::file).transpose()?;
        let stdin = self.stdin.then(standard_input).transpose()?;
        let prompt = join(self.words, [file, stdin].into_iter().flatten());
        Ok((prompt, self.left))
    }
}

/// Says so where standard input was left alone and holds something.
pub(super) fn tell_what_was_left() {
    if holds_something() {
        say!(
            "tandem: standard input was not read, because there is a prompt on the command line; a last word `-` adds it"
        );
    }
}

/// What standard input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stdin {
    Terminal,
    /// A regular file that nobody has read from, or a pipe of this command alone that holds something or has ended.
    Own,
    /// A pipe that others read too or that holds nothing yet, a socket, a device, or a file that somebody reads.
    Other,
}

impl Stdin {
    fn look() -> Self {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Self::Terminal;
        }
        let Ok(stat) = rustix::fs::fstat(&stdin) else {
            return Self::Other;
        };
        let is_own = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                rustix::fs::seek(&stdin, SeekFrom::Current(0)).is_ok_and(|at| at == 0)
            }
            FileType::Fifo => !parent::has_as_input(&stat) && is_ready(AT_ONCE),
            _ => false,
        };
        match is_own {
            true => Self::Own,
            false => Self::Other,
        }
    }
}

/// Says whether a read of standard input would not wait, at the latest after `limit`.
fn is_ready(limit: Duration) -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    let limit = Timespec::try_from(limit).expect("it is short");
    poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0)
}

/// Says whether standard input holds something right now: at an end there is nothing, though a read would not wait.
fn holds_something() -> bool {
    let bytes = rustix::io::ioctl_fionread(io::stdin());
    is_ready(Duration::ZERO) && bytes.is_ok_and(|bytes| bytes > 0)
}

/// Reads standard input to its end; `None` where it is a terminal.
pub(super) fn piped() -> Result<Option<String>, Failure> {
    if io::stdin().is_terminal() {
        Ok(None)
    } else {
        standard_input().map(Some)
    }
}

/// Reads a file, or standard input for `-`.
pub(super) fn file(path: &Path) -> Result<String, Failure> {
    if path == Path::new(STDIN) {
        return standard_input();
    }
    let name = format!("`{}`", path.display());
    let file = File::open(path).map_err(|source| Failure::io(format!("read {name}"), source))?;
    text(file, &name)
}

fn standard_input() -> Result<String, Failure> {
    text(io::stdin().lock(), "standard input")
}

fn text(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(LONGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Failure::io(format!("read {name}"), source))?;
    if bytes.len() as u64 > LONGEST {
        let limit = LONGEST >> 20;
        let message = format!("{name} is longer than {limit} MiB, which no prompt can be");
        return Err(Failure::Usage(message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Failure::Usage(format!(
            "{name} is no UTF-8 text: it ends to be one after {at} bytes; convert it first, such as with `iconv -t UTF-8`"
        ))
    })
}

/// Joins words and texts with blank lines; any may be missing.
fn join(words: &[String], texts: impl IntoIterator<Item = String>) -> String {
    let mut prompt = words.join(" ");
    for text in texts {
        if text.trim().is_empty() {
            continue;
        }
        if !prompt.is_empty() {
            prompt.push_str("\n\n");
        }
        prompt.push_str(&text);
    }
    prompt
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn words_and_text_are_joined_with_a_blank_line() {
        let ask = words("sum up:");
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(join(&ask, text("a\nb\n")), "sum up:\n\na\nb\n");
        assert_eq!(join(&ask, text("\n")), "sum up:");
        assert_eq!(join(&ask, None), "sum up:");
        assert_eq!(join(&[], text(" code\n")), " code\n");
        assert_eq!(join(&[], None), "");
        let both = ["a".to_owned(), "b".to_owned()];
        assert_eq!(join(&ask, both), "sum up:\n\na\n\nb");
    }

    /// Whether standard input is read, and whether it is left though something may be in it.
    fn reads(line: &str, file: Option<&str>, stdin: Stdin) -> (bool, bool) {
        let words = words(line);
        let source = Source::decide(&words, file.map(Path::new), || stdin);
        (source.stdin, source.left)
    }

    #[test]
    fn what_others_read_is_read_where_that_is_asked_for_or_there_is_no_other_prompt() {
        assert_eq!(reads("hi", None, Stdin::Other), (false, true));
        assert_eq!(reads("hi -", None, Stdin::Other), (true, false));
        assert_eq!(reads("hi", Some("-"), Stdin::Other), (true, false));
        assert_eq!(reads("-", None, Stdin::Other), (true, false));
        assert_eq!(reads("", None, Stdin::Other), (true, false));
        assert_eq!(reads("", Some("notes"), Stdin::Other), (false, true));
        // In the middle it is a word: what is 3 - 2?
        assert_eq!(reads("3 - 2", None, Stdin::Other), (false, true));
    }

    #[test]
    fn what_is_ours_alone_is_read_beside_a_prompt() {
        assert_eq!(reads("hi", None, Stdin::Own), (true, false));
        assert_eq!(reads("hi", Some("notes"), Stdin::Own), (false, false));
        assert_eq!(reads("", None, Stdin::Own), (true, false));
    }

    #[test]
    fn a_terminal_is_read_only_where_that_is_asked_for() {
        assert_eq!(reads("hi", None, Stdin::Terminal), (false, false));
        assert_eq!(reads("", None, Stdin::Terminal), (false, false));
        assert_eq!(reads("-", None, Stdin::Terminal), (true, false));
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_place() {
        let refused = |bytes: &[u8]| match text(bytes, "it") {
            Err(Failure::Usage(message)) => message,
            other => panic!("{other:?}"),
        };
        assert!(refused(b"abc\xff").contains("after 3 bytes"));
        assert!(text(&b"a\0b"[..], "it").is_ok(), "NUL is a character");
        let endless = io::repeat(b'a');
        match text(endless, "it") {
            Err(Failure::Usage(message)) => assert!(message.contains("64 MiB"), "{message}"),
            other => panic!("{other:?}"),
        }
    }
}
