//! Files that are changed under a process that has them mapped: it goes on, hears of it, and the file is made anew.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use tandem_prepared::{Damage, Image};

use crate::child;
use crate::world::World;

fn file(world: &World) -> File {
    let [path] = world.files().try_into().unwrap();
    File::options().write(true).open(path).unwrap()
}

/// Reads every byte of the mapping.
fn sum(image: &Image) -> u64 {
    let bytes: &[u8] = image.as_ref();
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

#[test]
fn a_file_that_is_cut_short_is_lost_to_who_maps_it_and_to_nobody_else() {
    let (cut, other) = (World::new(), World::new());
    for round in 0..3 {
        let (image, whole) = (
            cut.obtain().result.unwrap().image,
            other.obtain().result.unwrap().image,
        );
        let expected = sum(&whole);
        assert!(sum(&image) > 0);
        image.check().unwrap();
        file(&cut).set_len(0).unwrap();
        // On several threads at once, as the kernels do it.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(sum(&image), 0, "round {round}"));
            }
        });
        assert_eq!(image.check(), Err(Damage::Lost));
        // Even where the file is as long as before: it reads as zeros then.
        file(&cut).set_len(4096).unwrap();
        assert_eq!(image.check(), Err(Damage::Lost));
        whole.check().unwrap();
        assert_eq!(sum(&whole), expected);
        drop(image);
        let because = "no file of prepared weights";
        cut.obtain().assert_made(&cut.model(), because);
    }
}

#[test]
fn what_is_written_into_a_mapped_file_is_found_before_it_counts() {
    let world = World::new();
    let image = world.obtain().result.unwrap().image;
    let mapped: &[u8] = (*image).as_ref();
    let (bytes, byte, file) = (mapped.len() as u64, mapped[70], file(&world));
    file.write_all_at(&[byte ^ 1], 70).unwrap();
    assert!(matches!(image.check(), Err(Damage::Checksum { .. })));
    file.write_all_at(&[byte], 70).unwrap();
    image.check().unwrap();
    // Cut and grown again, so that nothing faults.
    file.set_len(100).unwrap();
    let size = Err(Damage::Size {
        found_bytes: 100,
        expected_bytes: bytes,
    });
    assert_eq!(image.check(), size);
    file.set_len(bytes).unwrap();
    assert!(matches!(image.check(), Err(Damage::Checksum { .. })));
}

#[test]
fn a_file_that_others_use_or_that_lost_its_name_is_what_it_was() {
    let world = World::new();
    let image = world.obtain().result.unwrap().image;
    world.obtain().assert_found(&world.model());
    image.check().unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    file(&world).set_modified(later).unwrap();
    image.check().unwrap();
    world.store.clear().unwrap();
    image.check().unwrap();
    assert!(sum(&image) > 0);
}

#[test]
fn a_fault_that_is_none_of_a_mapping_ends_the_process_as_ever() {
    let world = World::new();
    let mut process = child::start(&world, "bus");
    let status = process.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::BUS.as_raw()), "{status}");
}
