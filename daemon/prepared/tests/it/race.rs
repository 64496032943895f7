//! Several at once, and one that dies in the middle.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use crate::child::{hear, start};
use crate::world::{TENSORS, World, assert_right, obtain_with};

#[test]
fn of_threads_one_makes_the_file_and_the_others_wait_for_it() {
    let world = World::new();
    let (barrier, packed) = (Barrier::new(4), AtomicUsize::new(0));
    let made: usize = std::thread::scope(|scope| {
        let one = || {
            barrier.wait();
            let run = obtain_with(&world.store, &world.path, "test", &|_| {
                packed.fetch_add(1, Ordering::Relaxed);
            });
            let obtained = run.result.unwrap();
            assert_right(&obtained.image, &world.model());
            assert_eq!(obtained.replaced, None);
            usize::from(obtained.made)
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    assert_eq!((made, packed.into_inner()), (1, TENSORS));
    assert_eq!(world.names().len(), 1);
}

#[test]
fn of_processes_too() {
    let world = World::new();
    let mut children: Vec<_> = (0..3).map(|_| start(&world, "together")).collect();
    for child in &mut children {
        hear(child, "ready");
    }
    for child in &mut children {
        drop(child.stdin.take());
    }
    let made: Vec<String> = children
        .iter_mut()
        .map(|child| hear(child, "made "))
        .collect();
    assert_eq!(
        made.iter().filter(|made| *made == "true").count(),
        1,
        "{made:?}"
    );
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    world.obtain().assert_found(&world.model());
}

#[test]
fn a_writer_that_is_killed_leaves_a_part_which_the_next_one_removes() {
    let world = World::new();
    let mut child = start(&world, "hang");
    hear(&mut child, "hanging");
    let names = world.names();
    assert!(
        matches!(&names[..], [name] if name.ends_with(".part")),
        "{names:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    // Its lock died with it, so nobody waits for it.
    let run = world.obtain();
    run.assert_made(&world.model(), "");
    assert_eq!(
        world.names().len(),
        1,
        "or a daemon that is killed often fills the disk"
    );
    assert_eq!(world.store.clear().unwrap().len(), 1);
    assert_eq!(world.names(), [""; 0]);
    assert_right(&Arc::clone(&run.result.unwrap().image), &world.model());
}
