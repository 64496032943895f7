//! Disks that do not take the file: the error names cause and bytes, and nothing half-written stays.

use std::fs;

use tandem_prepared::{Store, StoreError};

use crate::child::{hear, start};
use crate::world::{World, obtain_with};

#[test]
fn a_file_that_may_not_become_so_large() {
    let world = World::new();
    let mut child = start(&world, "limited");
    let error = hear(&mut child, "error ");
    assert!(
        error.contains("cannot write") && error.contains("bytes of prepared weights"),
        "{error}"
    );
    assert!(child.wait().unwrap().success(), "the system ended it");
    assert_eq!(world.names(), [""; 0]);
    world.obtain().assert_made(&world.model(), "");
}

#[test]
fn a_directory_that_cannot_be() {
    let world = World::new();
    let file = world.root().join("file");
    fs::write(&file, "").unwrap();
    let store = Store::new(file.join("prepared"), 1 << 20);
    let run = obtain_with(&store, &world.path, "test", &|_| {});
    let error = run.result.unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("file/prepared"), "{error}");
    assert_eq!((run.packed, run.stages.len()), (0, 0), "nothing was begun");
    assert!(store.list().is_err());
}

#[test]
fn a_tensor_that_cannot_be_packed_leaves_nothing() {
    let world = World::new();
    let file = fs::File::open(&world.path).unwrap();
    let model = tandem_prepared::Model {
        file: &file,
        path: &world.path,
        name: "made up",
        tensors: 3,
        bytes: 10,
        isa: "test",
        layout: 1,
    };
    let pack = |index: usize, writer: &tandem_prepared::Writer| match index {
        2 => Err(StoreError::Changed {
            path: "tensor".into(),
        }),
        _ => writer
            .put(&format!("t{index}"), "Q9", &[3], b"abc")
            .map(|()| 3),
    };
    let result = tandem_prepared::obtain(
        &world.store,
        &model,
        crate::world::THREADS,
        pack,
        &mut |_, _, _| {},
    );
    assert!(result.is_err());
    assert_eq!(world.names(), [""; 0]);
}
