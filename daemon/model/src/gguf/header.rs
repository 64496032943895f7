//! The header: magic, version, metadata and the table of tensors.

use std::collections::{HashMap, hash_map::Entry};
use std::fmt;
use std::fs::File;
use std::path::Path;

use super::error::{Damage, GgufError};
use super::reader::Reader;
use super::tensor::{self, TensorInfo};
use super::value::{Kind, Scalar, Strings, Value};

/// The format's own rule is 65,535, and keys that mean anything have some tens. Messages name keys, and have to fit where
/// they are sent.
const KEY_LIMIT_BYTES: u64 = 1024;
/// Models have some tens of keys and some thousands of tensors.
const KEYS_LIMIT: u64 = 65_536;
/// Least bytes of an entry: length of its name, type, one byte of value.
const LEAST_KEY_BYTES: u64 = 8 + 4 + 1;
/// The specification allows nesting; models do not use it.
const DEPTH_LIMIT: usize = 4;
/// Arrays within one array; nothing is known that has any.
const NESTED_LIMIT: u64 = 65_536;
/// Strings of one array: tokens or merges, of which the largest vocabularies have some 500,000.
const TEXTS_LIMIT: u64 = 1 << 22;
/// Bytes of one string: a chat template, or a copy of a tokenizer for other programs.
const TEXT_LIMIT_BYTES: u64 = 48 << 20;
const DEFAULT_ALIGNMENT: u64 = 32;
const ALIGNMENT_LIMIT: u64 = 1 << 20;

pub(super) struct Header {
    pub(super) metadata: HashMap<String, Value>,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) data_start: u64,
}

pub(super) fn read(path: &Path, file: &File, file_bytes: u64) -> Result<Header, GgufError> {
    let mut r = Reader::new(path, file, file_bytes);
    read_version(&mut r)?;
    let tensor_count = r.u64("the tensor count")?;
    let key_count = r.u64("the metadata count")?;
    limit(
        &r,
        key_count,
        KEYS_LIMIT,
        format_args!("the metadata count"),
    )?;
    r.check(
        key_count,
        LEAST_KEY_BYTES,
        &format!("metadata of {key_count} keys"),
    )?;
    limit(
        &r,
        tensor_count,
        tensor::COUNT_LIMIT,
        format_args!("the tensor count"),
    )?;
    r.check(
        tensor_count,
        tensor::LEAST_BYTES,
        &format!("a table of {tensor_count} tensors"),
    )?;

    let mut metadata = HashMap::new();
    for _ in 0..key_count {
        let key = r.name(KEY_LIMIT_BYTES, "a metadata key")?;
        let value = read_value(&mut r, &format!("metadata key `{key}`"))?;
        match metadata.entry(key) {
            Entry::Vacant(free) => free.insert(value),
            Entry::Occupied(taken) => {
                let name = taken.key().clone();
                return Err(r.damaged(Damage::Duplicate {
                    what: "metadata key",
                    name,
                }));
            }
        };
    }
    let alignment = alignment(&r, metadata.get("general.alignment"))?;
    let table = tensor::read_table(&mut r, tensor_count)?;
    // Positions lie below the file's size, so that padding cannot overflow.
    let data_start = r.position().next_multiple_of(alignment);
    let tensors = tensor::place(&r, table, data_start, alignment)?;
    Ok(Header {
        metadata,
        tensors,
        data_start,
    })
}

fn read_version(r: &mut Reader<'_>) -> Result<(), GgufError> {
    let start: Vec<u8> = {
        let mut start = Vec::new();
        r.append(r.file_bytes().min(4), &mut start, "the magic number")?;
        start
    };
    if start != b"GGUF" {
        return Err(GgufError::NotGguf {
            path: r.path().to_owned(),
            start,
        });
    }
    match r.u32("the version")? {
        2 | 3 => Ok(()),
        version if matches!(version.swap_bytes(), 2 | 3) => Err(GgufError::BigEndian {
            path: r.path().to_owned(),
        }),
        version => Err(GgufError::Version {
            path: r.path().to_owned(),
            version,
        }),
    }
}

// A vocabulary has a hundred thousand strings, so that what would be said of each is put together only when it is said.
fn limit(
    r: &Reader<'_>,
    value: u64,
    limit: u64,
    what: fmt::Arguments<'_>,
) -> Result<(), GgufError> {
    if value <= limit {
        return Ok(());
    }
    Err(r.damaged(Damage::TooMany {
        what: what.to_string(),
        value,
        limit,
    }))
}

fn alignment(r: &Reader<'_>, value: Option<&Value>) -> Result<u64, GgufError> {
    let value = match value {
        None => DEFAULT_ALIGNMENT,
        Some(Value::Unsigned(n)) => *n,
        Some(_) => 0,
    };
    if value.is_power_of_two() && value <= ALIGNMENT_LIMIT {
        return Ok(value);
    }
    Err(r.damaged(Damage::Alignment {
        value,
        limit: ALIGNMENT_LIMIT,
    }))
}

fn read_kind(r: &mut Reader<'_>, what: &str) -> Result<Kind, GgufError> {
    let number = r.u32(what)?;
    Kind::from_number(number).ok_or_else(|| {
        r.damaged(Damage::UnknownType {
            what: what.to_owned(),
            number,
        })
    })
}

fn read_value(r: &mut Reader<'_>, what: &str) -> Result<Value, GgufError> {
    match read_kind(r, what)? {
        Kind::Scalar(kind) => {
            let mut bytes = Vec::new();
            r.append(kind.size() as u64, &mut bytes, what)?;
            check_bools(r, kind, &bytes, what)?;
            Ok(kind.decode(&bytes))
        }
        Kind::Text => {
            let mut text = Vec::new();
            read_text(r, &mut text, what)?;
            Ok(Value::Text(text))
        }
        Kind::Array => read_array(r, what),
    }
}

fn read_text(r: &mut Reader<'_>, into: &mut Vec<u8>, what: &str) -> Result<(), GgufError> {
    let len = r.u64(what)?;
    // What no file of this size could hold is said to be cut short rather than too long.
    r.check(len, 1, what)?;
    limit(
        r,
        len,
        TEXT_LIMIT_BYTES,
        format_args!("the length of {what}"),
    )?;
    r.append(len, into, what)
}

fn read_array(r: &mut Reader<'_>, what: &str) -> Result<Value, GgufError> {
    let kind = read_kind(r, what)?;
    let count = r.u64(what)?;
    match kind {
        Kind::Scalar(kind) => {
            r.check(count, kind.size() as u64, what)?;
            let mut bytes = Vec::new();
            r.append(count * kind.size() as u64, &mut bytes, what)?;
            check_bools(r, kind, &bytes, what)?;
            Ok(Value::Numbers { kind, bytes })
        }
        Kind::Text => {
            let room = r.check(count, 8, what)?;
            limit(
                r,
                count,
                TEXTS_LIMIT,
                format_args!("the number of strings of {what}"),
            )?;
            let mut texts = Strings::with_capacity(room);
            for _ in 0..count {
                read_text(r, texts.buffer(), what)?;
                texts.close();
            }
            Ok(Value::Texts(texts))
        }
        Kind::Array => {
            skip_arrays(r, count, what, 2, &mut 0)?;
            Ok(Value::Nested)
        }
    }
}

/// Passes over `count` arrays that lie `depth` levels deep, checking them as it goes; `passed` counts the arrays of the whole
/// value.
fn skip_arrays(
    r: &mut Reader<'_>,
    count: u64,
    what: &str,
    depth: usize,
    passed: &mut u64,
) -> Result<(), GgufError> {
    if depth > DEPTH_LIMIT {
        let damage = Damage::TooDeep {
            what: what.to_owned(),
            limit: DEPTH_LIMIT,
        };
        return Err(r.damaged(damage));
    }
    r.check(count, 4 + 8, what)?;
    *passed += count;
    limit(
        r,
        *passed,
        NESTED_LIMIT,
        format_args!("the number of arrays in {what}"),
    )?;
    for _ in 0..count {
        let kind = read_kind(r, what)?;
        let inner = r.u64(what)?;
        match kind {
            Kind::Scalar(kind) => {
                r.check(inner, kind.size() as u64, what)?;
                r.skip(inner * kind.size() as u64, what)?;
            }
            Kind::Text => {
                r.check(inner, 8, what)?;
                limit(
                    r,
                    inner,
                    TEXTS_LIMIT,
                    format_args!("the number of strings of {what}"),
                )?;
                for _ in 0..inner {
                    let len = r.u64(what)?;
                    r.skip(len, what)?;
                }
            }
            Kind::Array => skip_arrays(r, inner, what, depth + 1, passed)?,
        }
    }
    Ok(())
}

fn check_bools(r: &Reader<'_>, kind: Scalar, bytes: &[u8], what: &str) -> Result<(), GgufError> {
    if kind != Scalar::Bool {
        return Ok(());
    }
    match bytes.iter().find(|&&byte| byte > 1) {
        None => Ok(()),
        Some(&value) => Err(r.damaged(Damage::NotABool {
            what: what.to_owned(),
            value,
        })),
    }
}
