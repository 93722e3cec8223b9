//! Stores that are interrupted, gone on with, and filled by several at once.

use super::*;
use crate::store::{StoreError, Tiles};
use std::time::{Duration, SystemTime};

#[test]
fn an_interrupted_store_goes_on() {
    let (_folder, path) = fresh();
    fill::<f32>(&Store::create(&path, small()).unwrap(), [0, 4]);
    let store = Store::resume(&path, &small().note("network file", "elsewhere.onnx")).unwrap();
    assert_eq!(store.missing().unwrap(), Tiles::from_iter([1, 2, 3, 5]));
    assert!(store.is_done(4).unwrap() && !store.is_done(1).unwrap());
    fill::<f32>(&store, [1, 2, 3, 5]);
    assert!(Store::open(&path).unwrap().missing().unwrap().is_empty());
    assert_eq!(store.read_all::<f32>("kernel").unwrap()[[2, 6]], entry::<f32>(store.layout(), 0, 2, 6));
}

/// Killed between a tile and its mirror image, or between two arrays: the tile is not done.
#[test]
fn half_a_tile_is_missing() {
    let (_folder, path) = fresh();
    let arrays = vec!["one".to_owned(), "two".to_owned()];
    let store = complete::<f32>(&path, StoreLayout { arrays, ..small().layout });
    for file in ["one/c/0/2", "two/c/2/0", "two/c/1/1"] {
        let bytes = std::fs::read(path.join(file)).unwrap();
        std::fs::remove_file(path.join(file)).unwrap();
        let tile = if file == "two/c/1/1" { 3 } else { 2 };
        assert_eq!(store.missing().unwrap(), Tiles::from_iter([tile]), "{file}");
        assert!(!store.is_done(tile).unwrap());
        std::fs::write(path.join(file), bytes).unwrap();
    }
    assert!(store.missing().unwrap().is_empty());
}

#[test]
fn other_inputs_are_refused_and_named() {
    let (_folder, path) = fresh();
    Store::create(&path, small()).unwrap();
    let with = |change: fn(&mut StoreLayout)| {
        let mut manifest = small();
        change(&mut manifest.layout);
        manifest
    };
    let cases: Vec<(Manifest, &[&str])> = vec![
        (small().fact("data", "cc22"), &["data: the store has \"bb11\", this run \"cc22\""]),
        (small().fact("network", "dd33"), &["network: the store has \"aa00\", this run \"dd33\""]),
        (
            small().fact("kernel", json!({"name": "ntk", "kind": "pseudo", "scale": 0.1})),
            &["kernel.kind: the store has \"trace\", this run \"pseudo\""],
        ),
        (
            small().fact("kernel", json!({"name": "ntk"})),
            &["kernel.kind: the store has \"trace\", this run none", "kernel.scale"],
        ),
        (small().fact("against", "ee44"), &["against: the store has none, this run \"ee44\""]),
        (with(|layout| layout.precision = DType::F64), &["precision: the store has \"f32\", this run \"f64\""]),
        (with(|layout| layout.tile = 4), &["tile: the store has 3, this run 4"]),
        (with(|layout| layout.per_sample = 2), &["per_sample: the store has 1, this run 2"]),
        (with(|layout| layout.arrays = vec!["a".into()]), &["arrays: the store has [\"kernel\"], this run [\"a\"]"]),
        (
            with(|layout| (layout.rows, layout.columns) = (8, StoreColumns::Samples { count: 8, symmetric: false })),
            &["rows: the store has 7, this run 8", "columns.samples.count", "columns.samples.symmetric"],
        ),
        (with(|layout| layout.columns = StoreColumns::Features(7)), &["columns.samples", "columns.features"]),
        (small().fact("data", "x").fact("network", "y"), &["data:", "network:"]),
    ];
    for (manifest, words) in cases {
        let Err(error @ StoreError::OtherInputs { .. }) = Store::resume(&path, &manifest) else {
            panic!("{words:?}: not refused");
        };
        let text = error.to_string();
        assert!(text.contains("gram.zarr") && text.lines().count() == words.len() + 1, "{text}");
        for word in words {
            assert!(text.contains(word), "{word} in {text}");
        }
    }
}

/// A run that was given up, but still writes, cannot put its tiles into the store of the next one.
#[test]
fn a_replaced_store_gets_no_tiles_of_the_old_one() {
    let (_folder, path) = fresh();
    let old = Store::create(&path, small()).unwrap();
    fill::<f32>(&old, [0]);
    old.clone().remove().unwrap();
    // Gone: there is nothing to write into.
    let values = vec![1.0_f32; 9];
    assert!(old.write(0, &[&values]).is_err() && !path.exists());
    let new = Store::create(&path, small().fact("data", "others")).unwrap();
    let error = old.write(0, &[&values]).unwrap_err();
    assert!(matches!(error, StoreError::Replaced { .. }), "{error}");
    assert_eq!(new.missing().unwrap().len(), new.n_tiles());
    // The same inputs give the same bytes, so a store of these may be filled by both.
    new.remove().unwrap();
    let same = Store::create(&path, small().note("data file", "elsewhere.npy")).unwrap();
    fill::<f32>(&old, [0]);
    assert!(same.is_done(0).unwrap());
}

#[test]
fn nothing_is_overwritten() {
    let (folder, path) = fresh();
    Store::create(&path, small()).unwrap();
    assert!(matches!(Store::create(&path, small()), Err(StoreError::Exists { .. })));
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(Store::create(&file, small()), Err(StoreError::Exists { .. })));
    assert!(matches!(Store::create(&folder.path().join("no/where"), small()), Err(StoreError::Io { .. })));
    assert!(matches!(Store::open(&folder.path().join("nowhere")), Err(StoreError::Io { .. })));
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

/// Many create the same store at once: one makes it, the others find it, and it is whole.
#[test]
fn several_create_at_once() {
    let (folder, path) = fresh();
    let made: usize = std::thread::scope(|scope| {
        let create = || match Store::create(&path, small()) {
            Ok(_) => 1,
            Err(StoreError::Exists { .. }) => Store::resume(&path, &small()).map(|_| 0).unwrap(),
            Err(other) => panic!("{other}"),
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(create)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(made, 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "temporaries are gone");
}

/// All tiles by all threads, while others look.
#[test]
fn several_write_at_once() {
    let (_folder, path) = fresh();
    let store = Store::create(&path, small()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| fill::<f32>(&Store::resume(&path, &small()).unwrap(), (0..6).chain((0..6).rev())));
        }
        scope.spawn(|| {
            for _ in 0..50 {
                for index in 0..6 {
                    match store.read::<f32>("kernel", index) {
                        Ok(values) => assert_eq!(values, tile::<f32>(&store, index)[0]),
                        Err(error) => assert!(matches!(error, StoreError::Missing { .. }), "{error}"),
                    }
                }
            }
        });
    });
    assert!(store.missing().unwrap().is_empty());
    assert!(store.verify(&mercer_run::Context::new()).unwrap().damaged.is_empty());
    assert_eq!(std::fs::read_dir(path.join("kernel/.parts")).unwrap().count(), 0);
}

#[test]
fn temporaries_of_the_dead_are_removed_and_those_of_the_living_kept() {
    let (_folder, path) = fresh();
    fill::<f32>(&Store::create(&path, small()).unwrap(), [0]);
    let parts = path.join("kernel/.parts");
    let long_ago = SystemTime::now() - Duration::from_secs(86_400);
    let part = |name: &str, old: bool| {
        let file = std::fs::File::create(parts.join(name)).unwrap();
        if old {
            file.set_modified(long_ago).unwrap();
        }
        file
    };
    drop(part(".mercer-dead.part", true));
    drop(part(".mercer-young.part", false));
    drop(part("somebody-else's", true));
    let writing = part(".mercer-slow.part", true);
    writing.lock().unwrap();
    let store = Store::resume(&path, &small()).unwrap();
    let mut left: Vec<_> = files(&parts).iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    left.sort();
    assert_eq!(left, [".mercer-slow.part", ".mercer-young.part", "somebody-else's"]);
    assert_eq!(store.missing().unwrap(), Tiles::from_iter([1, 2, 3, 4, 5]));
}

/// What is no chunk is no tile.
#[test]
fn other_files_are_passed_over() {
    let (_folder, path) = fresh();
    let store = Store::create(&path, small()).unwrap();
    fill::<f32>(&store, [0]);
    for name in ["c/0/01", "c/0/+1", "c/0/9", "c/0/x", "c/00", "c/7", ".DS_Store"] {
        std::fs::write(path.join("kernel").join(name), "x").unwrap();
    }
    std::fs::create_dir_all(path.join("kernel/c/1/1")).unwrap();
    assert_eq!(store.missing().unwrap(), Tiles::from_iter([1, 2, 3, 4, 5]));
    assert!(!store.is_done(3).unwrap());
}

/// A link does not lead out of the store, neither for reading nor for writing.
#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let (folder, path) = fresh();
    let outside = folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let store = Store::create(&path, small()).unwrap();
    std::fs::create_dir(path.join("kernel/c")).unwrap();
    std::os::unix::fs::symlink(&outside, path.join("kernel/c/0")).unwrap();
    assert!(store.write(0, &[&[1.0_f32; 9]]).unwrap_err().to_string().contains("c/0"));
    assert!(store.read::<f32>("kernel", 0).is_err());
    assert_eq!(store.missing().unwrap().len(), 6);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

/// A run that ends with fewer tiles than it wrote says so.
#[test]
fn tiles_that_vanish_are_missed() {
    let (_folder, path) = fresh();
    let store = Store::create(&path, small()).unwrap();
    fill::<f32>(&store, [0, 2, 4]);
    let written = Tiles::from_iter([0, 2, 4]);
    store.check_written(&written).unwrap();
    std::fs::remove_file(path.join("kernel/c/2/0")).unwrap();
    let error = store.check_written(&written).unwrap_err();
    assert!(matches!(error, StoreError::Vanished { count: 1, first: 2, .. }), "{error}");
    store.check_written(&Tiles::from_iter([0, 4])).unwrap();
    std::fs::remove_dir_all(path.join("kernel/c")).unwrap();
    assert!(matches!(store.check_written(&written), Err(StoreError::Vanished { count: 3, first: 0, .. })));
}

/// A store is removed with all that is its own, or not at all.
#[test]
fn only_what_is_ours_is_removed() {
    for name in ["notes.txt", "kernel/mine.npy", "other"] {
        let (folder, path) = fresh();
        fill::<f32>(&Store::create(&path, small()).unwrap(), [0, 1]);
        std::fs::write(path.join(name), "mine").unwrap();
        let error = Store::open(&path).unwrap().remove().unwrap_err();
        assert!(matches!(error, StoreError::Foreign { .. }) && error.to_string().contains(name), "{error}");
        assert_eq!(Store::open(&path).unwrap().missing().unwrap().len(), 4);
        std::fs::remove_file(path.join(name)).unwrap();
        Store::open(&path).unwrap().remove().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
