//! Every bit of a small file, and tables that were written to mislead.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::*;
use crate::align::aligned;
use crate::header::{PREFIX, Table, VERSION, prefix};
use crate::key::ContentId;
use crate::writer::Writer;

const DATA: [&[u8]; 3] = [b"first", &[7; 64], &[9; 100]];

fn key() -> Key {
    Key {
        content: ContentId([3; 32]),
        isa: "test".to_owned(),
        layout: 4,
    }
}

fn summary() -> Summary {
    Summary {
        model: "m".to_owned(),
        source: "m.gguf".to_owned(),
        content: key().content.to_string(),
        isa: key().isa,
        layout: key().layout,
    }
}

fn open(path: &Path) -> Result<Option<Image>, Damage> {
    let opened = Image::open(path, &key(), NonZeroUsize::MIN, &mut |_, _| {});
    opened.map_err(|unusable| match unusable {
        Unusable::Damaged(damage) => damage,
        Unusable::Refused(error) => panic!("{error}"),
    })
}

fn written(directory: &Path) -> PathBuf {
    let path = directory.join("x.prepared");
    let writer = Writer::create(&path, summary()).unwrap();
    for (index, data) in DATA.iter().enumerate() {
        let name = format!("t{index}");
        writer.put(&name, "Q9", &[data.len() as u64], data).unwrap();
    }
    writer.finish().unwrap();
    path
}

#[test]
fn any_bit_that_flips_is_found() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path());
    let good = std::fs::read(&path).unwrap();
    let image = open(&path).unwrap().unwrap();
    for (index, data) in DATA.iter().enumerate() {
        let entry = image.tensor(&format!("t{index}")).unwrap();
        assert_eq!(image.data(entry), Some(*data));
    }
    drop(image);
    let file = File::options().write(true).open(&path).unwrap();
    for bit in 0..8 * good.len() {
        let (at, byte) = (bit as u64 / 8, good[bit / 8]);
        file.write_all_at(&[byte ^ 1 << (bit % 8)], at).unwrap();
        assert!(open(&path).is_err(), "bit {bit} of {}", 8 * good.len());
        file.write_all_at(&[byte], at).unwrap();
    }
    assert!(open(&path).unwrap().is_some(), "all bits are as before");
    for len in (0..good.len()).rev() {
        file.set_len(len as u64).unwrap();
        assert!(open(&path).is_err(), "{len} of {} bytes", good.len());
    }
    std::fs::write(&path, &good).unwrap();
    assert!(open(&path).unwrap().is_some());
    std::fs::remove_file(&path).unwrap();
    assert!(open(&path).unwrap().is_none());
}

#[test]
fn another_version_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path());
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8..12].copy_from_slice(&(VERSION + 1).to_le_bytes());
    let sum = checksum([&bytes[..56]]);
    bytes[56..64].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let expected = Damage::Version {
        found: VERSION + 1,
        expected: VERSION,
    };
    assert_eq!(open(&path).unwrap_err(), expected);
}

/// A file whose checksums are right and whose table is `change`d.
fn misleading(change: impl Fn(&mut Table)) -> Damage {
    let directory = tempfile::tempdir().unwrap();
    let path = written(directory.path());
    let mut table = header::read(&File::open(&path).unwrap()).unwrap();
    let end = table.tensors.last().unwrap().end().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(usize::try_from(end).unwrap());
    change(&mut table);
    let json = serde_json::to_vec(&table).unwrap();
    bytes[..PREFIX as usize].copy_from_slice(&prefix(end, &json));
    bytes.extend(json);
    std::fs::write(&path, bytes).unwrap();
    open(&path).unwrap_err()
}

#[test]
fn tables_that_point_elsewhere_are_refused() {
    let changes: [fn(&mut Table); 8] = [
        |table| table.tensors[1].offset += 64,
        |table| table.tensors[1].offset = 0,
        |table| table.tensors[2].bytes = u64::MAX - 10,
        |table| table.tensors[2].bytes += 64,
        |table| table.tensors[0].bytes = 0,
        |table| table.tensors.swap(0, 1),
        |table| table.tensors[1].name = "t0".to_owned(),
        |table| drop(table.tensors.pop()),
    ];
    for (index, change) in changes.iter().enumerate() {
        let damage = misleading(change);
        assert!(matches!(damage, Damage::Table { .. }), "{index}: {damage}");
    }
    let damage = misleading(|table| table.summary.layout = 5);
    assert!(
        matches!(damage, Damage::Key { what: "layout", .. }),
        "{damage}"
    );
}

#[test]
fn tensors_start_at_cache_lines() {
    assert_eq!(aligned(0), Some(0));
    assert_eq!(aligned(1), Some(64));
    assert_eq!(aligned(u64::MAX), None);
}
