//! The models inside Tandem.

use std::fs;

use tandem_models::{Bundled, DEFAULT_DRAFT, DEFAULT_EXIT_ADAPTER};

use crate::hub::hash;
use crate::world::{World, files};

const SHA256: &str = "f96aaa466edbadc2760119a2912792927ca0ee7122b22606769e017b1d2250b5";

#[test]
fn the_embedded_draft_is_the_one_that_was_trained() {
    assert_eq!(hash(Bundled::SmolLm2Draft20m.bytes()), SHA256);
}

#[test]
fn the_embedded_exit_adapter_is_the_one_that_was_trained() {
    let hash_of_it = "47133f393017c0231001c3ef6347953ad68ddddd9e00d1c1d2545e13d64e37c8";
    assert_eq!(hash(Bundled::SmolLm2Exit6.bytes()), hash_of_it);
    let world = World::new();
    let path = world.locate(DEFAULT_EXIT_ADAPTER).unwrap();
    assert_eq!(hash(&fs::read(path).unwrap()), hash_of_it);
}

#[test]
fn it_is_found_without_a_pull_and_written_once() {
    let world = World::new();
    let path = world.locate(DEFAULT_DRAFT).unwrap();
    assert_eq!(hash(&fs::read(&path).unwrap()), SHA256);
    let written = path.metadata().unwrap().modified().unwrap();
    assert_eq!(world.pull(DEFAULT_DRAFT).0.unwrap(), path);
    assert_eq!(path.metadata().unwrap().modified().unwrap(), written);
    assert!(world.hub.requests("/").is_empty());
}

#[test]
fn a_wrong_file_in_its_place_is_replaced() {
    let world = World::new();
    let path = world.locate(DEFAULT_DRAFT).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    for wrong in [&bytes[..], &bytes[..1000], &[]] {
        fs::write(&path, wrong).unwrap();
        assert_eq!(world.locate(DEFAULT_DRAFT), Some(path.clone()));
        assert_eq!(hash(&fs::read(&path).unwrap()), SHA256);
    }
    assert_eq!(files(&world.options.models_dir).len(), 1);
}
