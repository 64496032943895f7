//! Model files with something wrong in them.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Copies the first `bytes` of a file.
///
/// # Panics
/// When the file is shorter, or cannot be copied.
#[must_use]
pub fn truncated(model: &Path, bytes: usize, copy: PathBuf) -> PathBuf {
    let whole = fs::read(model).expect("the model can be read");
    fs::write(&copy, &whole[..bytes]).expect("the copy can be written");
    copy
}

/// Writes a file that is only a header: so many tensors, so many metadata entries, and then these bytes.
///
/// # Panics
/// When the file cannot be written.
#[must_use]
pub fn header_only(tensors: u64, entries: u64, rest: &[u8], path: PathBuf) -> PathBuf {
    let mut file = File::create(&path).expect("the file can be made");
    let parts: [&[u8]; 5] = [
        b"GGUF",
        &3u32.to_le_bytes(),
        &tensors.to_le_bytes(),
        &entries.to_le_bytes(),
        rest,
    ];
    for part in parts {
        file.write_all(part).expect("the file can be written");
    }
    path
}

/// Copies a model, with one token of its vocabulary spelled differently in the same number of bytes.
///
/// # Panics
/// When the model has no such token, or cannot be copied.
#[must_use]
pub fn respelled(model: &Path, token: &str, spelling: &str, copy: PathBuf) -> PathBuf {
    assert_eq!(
        token.len(),
        spelling.len(),
        "offsets in the file stay as they are"
    );
    let mut bytes = fs::read(model).expect("the model can be read");
    // A string in GGUF is its length in eight bytes, then its bytes.
    let mut entry = u64::try_from(token.len())
        .expect("tokens are short")
        .to_le_bytes()
        .to_vec();
    entry.extend(token.as_bytes());
    let at = bytes
        .windows(entry.len())
        .position(|window| window == entry)
        .expect("the vocabulary has the token");
    bytes[at + 8..at + entry.len()].copy_from_slice(spelling.as_bytes());
    fs::write(&copy, bytes).expect("the copy can be written");
    copy
}

/// Copies a model with another chat template, which is at most as long; a comment takes the rest of the room.
///
/// # Panics
/// When the model has no template, the new one is longer, or the copy cannot be written.
#[must_use]
pub fn templated(model: &Path, template: &str, copy: PathBuf) -> PathBuf {
    const STRING: u32 = 8;
    let mut bytes = fs::read(model).expect("the model can be read");
    let mut entry = b"tokenizer.chat_template".to_vec();
    entry.extend(STRING.to_le_bytes());
    let at = bytes
        .windows(entry.len())
        .position(|window| window == entry)
        .expect("the model has a template");
    let length = at + entry.len();
    let text = length + 8;
    let room = u64::from_le_bytes(bytes[length..text].try_into().expect("eight bytes"));
    let room = usize::try_from(room).expect("templates are short");
    let spare = room
        .checked_sub(template.len() + "{##}".len())
        .expect("the new template is shorter");
    let filled = format!("{{#{}#}}{template}", " ".repeat(spare));
    bytes[text..text + room].copy_from_slice(filled.as_bytes());
    fs::write(&copy, bytes).expect("the copy can be written");
    copy
}
