//! Damage is found and named, and no bytes whatever make a store panic.

use super::*;
use crate::store::{Report, StoreError};
use mercer_run::Context;

fn verify(store: &Store) -> Report {
    store.verify(&Context::new()).unwrap()
}

/// Every byte of every chunk of a small store, flipped in two ways.
#[test]
fn any_flipped_byte_is_found_and_named() {
    let (_folder, path) = fresh();
    let store =
        complete::<f32>(&path, layout(5, StoreColumns::Samples { count: 5, symmetric: true }, 1, 3, DType::F32));
    let tiles = [("c/0/0", 0), ("c/0/1", 1), ("c/1/0", 1), ("c/1/1", 2)];
    assert_eq!(files(&path).len(), tiles.len() + 2);
    for (name, tile) in tiles {
        let file = path.join("kernel").join(name);
        let sound = std::fs::read(&file).unwrap();
        for at in 0..sound.len() {
            for flip in [0x01, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= flip;
                std::fs::write(&file, &bytes).unwrap();
                let report = verify(&store);
                let [damage] = &report.damaged[..] else { panic!("{name}, byte {at}: {report:?}") };
                assert_eq!((damage.tile, &*damage.array), (tile, "kernel"));
                assert!(damage.file.ends_with(name), "{damage:?}");
                assert_eq!((report.done, report.missing.len()), (3, 0));
            }
        }
        let error = store.read_all::<f32>("kernel").unwrap_err();
        assert!(matches!(&error, StoreError::Damaged { tile: named, .. } if *named == tile));
        assert!(error.to_string().contains(name), "{error}");
        std::fs::write(&file, &sound).unwrap();
    }
    assert!(verify(&store).damaged.is_empty());
}

#[test]
fn chunks_of_another_length_are_found() {
    let (_folder, path) = fresh();
    let store = complete::<f32>(&path, small().layout);
    let file = path.join("kernel/c/1/2");
    let sound = std::fs::read(&file).unwrap();
    for length in [0, 1, 3, 4, sound.len() - 1, sound.len() + 1, 2 * sound.len()] {
        let mut bytes = sound.clone();
        bytes.resize(length, 0);
        std::fs::write(&file, bytes).unwrap();
        let report = verify(&store);
        assert_eq!(report.damaged.len(), 1, "{length}");
        assert_eq!(report.damaged[0].tile, 4);
        assert!(report.damaged[0].why.contains(&format!("{length} bytes")), "{report:?}");
    }
}

/// As earlier versions wrote them: without the places of chunks.
fn without_places(path: &Path) -> Store {
    std::fs::remove_dir_all(path.join("kernel/.places")).unwrap();
    let store = Store::open(path).unwrap();
    assert!(!store.checks_places());
    store
}

/// A sound chunk in the wrong place has a good checksum, but was not written there, and is not its neighbour's mirror image.
#[test]
fn halves_that_do_not_match_are_found() {
    for (precision, per_sample) in [(DType::F32, 1), (DType::F64, 2)] {
        let (_folder, path) = fresh();
        let layout = StoreLayout { precision, per_sample, ..small().layout };
        let (store, from, to) = match precision {
            DType::F32 => (complete::<f32>(&path, layout), "c/1/0", "c/2/0"),
            _ => (complete::<f64>(&path, layout), "c/1/0/0/0", "c/2/0/0/0"),
        };
        std::fs::copy(path.join("kernel").join(from), path.join("kernel").join(to)).unwrap();
        let check = |store: &Store, word: &str| {
            let report = verify(store);
            assert_eq!(report.damaged.len(), 1);
            assert_eq!(report.damaged[0].tile, 2);
            assert!(report.damaged[0].why.contains(word) && report.damaged[0].file.ends_with(to), "{report:?}");
        };
        check(&store, "place");
        check(&without_places(&path), "mirror");
    }
}

/// Two tiles with both of their halves, each in the place of the other: every checksum is good and every half has its mirror
/// image.
#[test]
fn swapped_tiles_are_named() {
    let (_folder, path) = fresh();
    let store = complete::<f32>(&path, small().layout);
    assert!(store.checks_places() && verify(&store).places_checked);
    let file = |name: &str| path.join("kernel").join(name);
    for (one, two) in [("c/0/1", "c/0/2"), ("c/1/0", "c/2/0")] {
        // A tile at the edge is padded, and stays sound as numbers.
        std::fs::rename(file(one), file("kept")).unwrap();
        std::fs::rename(file(two), file(one)).unwrap();
        std::fs::rename(file("kept"), file(two)).unwrap();
    }
    for store in [&store, &Store::open(&path).unwrap(), &Store::resume(&path, &small()).unwrap()] {
        let report = verify(store);
        let named: Vec<(usize, &str)> =
            report.damaged.iter().map(|damage| (damage.tile, &damage.file[damage.file.len() - 5..])).collect();
        assert_eq!(named, [(1, "c/0/1"), (1, "c/1/0"), (2, "c/0/2"), (2, "c/2/0")], "{report:?}");
        assert!(report.damaged.iter().all(|damage| damage.why.contains("swapped")), "{report:?}");
        assert!(matches!(store.read::<f32>("kernel", 2), Err(StoreError::Damaged { tile: 2, .. })));
        assert!(matches!(store.read_all::<f32>("kernel"), Err(StoreError::Damaged { .. })));
    }
    fill::<f32>(&store, [1, 2]);
    assert!(verify(&store).damaged.is_empty());
    // What has no places is read as before, and says so.
    let old = without_places(&path);
    assert!(!verify(&old).places_checked && verify(&old).damaged.is_empty());
    fill::<f32>(&old, [3]);
    assert!(!Store::resume(&path, &small()).unwrap().checks_places());
}

/// Any changed byte of a description that changes what it says is refused.
#[test]
fn damaged_descriptions_are_refused() {
    let (_folder, path) = fresh();
    complete::<f32>(&path, small().layout);
    for name in ["zarr.json", "kernel/zarr.json"] {
        let file = path.join(name);
        let sound = std::fs::read(&file).unwrap();
        let meaning: serde_json::Value = serde_json::from_slice(&sound).unwrap();
        for at in 0..sound.len() {
            for flip in [0x01, 0xff] {
                let mut bytes = sound.clone();
                bytes[at] ^= flip;
                // White space and the like.
                let harmless = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|value| value == meaning);
                std::fs::write(&file, &bytes).unwrap();
                assert_eq!(Store::open(&path).is_ok(), harmless, "{name}, byte {at} with {flip}");
            }
        }
        for length in (0..sound.len() - 2).step_by(7) {
            std::fs::write(&file, &sound[..length]).unwrap();
            assert!(Store::open(&path).is_err(), "{name} cut to {length}");
        }
        std::fs::write(&file, &sound).unwrap();
    }
    assert!(Store::open(&path).is_ok());
}

/// Descriptions that are valid in themselves, with a fingerprint to match, but with numbers nobody can mean.
#[test]
fn absurd_layouts_are_refused() {
    let (_folder, path) = fresh();
    Store::create(&path, small()).unwrap();
    let absurd: [fn(&mut StoreLayout); 7] = [
        |layout| layout.rows = 0,
        |layout| layout.tile = 0,
        |layout| layout.per_sample = usize::MAX,
        |layout| (layout.rows, layout.columns) = (usize::MAX, StoreColumns::Features(usize::MAX)),
        |layout| (layout.rows, layout.columns) = (1 << 30, StoreColumns::Samples { count: 1 << 30, symmetric: true }),
        |layout| layout.precision = DType::Bool,
        |layout| layout.arrays = Vec::new(),
    ];
    for change in absurd {
        let mut manifest = small();
        change(&mut manifest.layout);
        assert!(matches!(Store::create(&path.with_extension("new"), manifest.clone()), Err(StoreError::Layout { .. })));
        let json = json!({"zarr_format": 3, "node_type": "group", "attributes": {"mercer": manifest.seal()}});
        std::fs::write(path.join("zarr.json"), json.to_string()).unwrap();
        let error = Store::open(&path).unwrap_err();
        assert!(matches!(error, StoreError::Malformed { .. }), "{error}");
    }
    for text in ["", "null", "[]", "{}", "{\"attributes\": {\"mercer\": {\"version\": 2}}}", &"[".repeat(100_000)] {
        std::fs::write(path.join("zarr.json"), text).unwrap();
        assert!(matches!(Store::open(&path), Err(StoreError::Malformed { .. })), "{text:.40}");
    }
    let file = std::fs::File::create(path.join("zarr.json")).unwrap();
    file.set_len(17 << 20).unwrap();
    assert!(Store::open(&path).unwrap_err().to_string().contains("longer"));
}

/// Random changes of random length anywhere, also to the chunks: found, refused or harmless, and never a panic.
#[test]
fn random_damage() {
    use mercer_data::random::stream;
    use rand::Rng;
    let (_folder, path) = fresh();
    complete::<f64>(&path, layout(5, StoreColumns::Samples { count: 4, symmetric: false }, 2, 2, DType::F64));
    let all = files(&path);
    let mut random = stream(1, "store/damage");
    let mut draw = move |below: usize| (random.next_u64() % below as u64) as usize;
    for _ in 0..500 {
        let file = &all[draw(all.len())];
        let sound = std::fs::read(file).unwrap();
        let mut bytes = sound.clone();
        let (start, length) = (draw(bytes.len()), draw(20));
        let end = (start + length).min(bytes.len());
        let new: Vec<u8> = (0..draw(20)).map(|_| b"0123456789{}[]\",:.-eE\0\xff "[draw(24)]).collect();
        bytes.splice(start..end, new);
        std::fs::write(file, &bytes).unwrap();
        if let Ok(store) = Store::open(&path) {
            let report = verify(&store);
            let is_chunk = !file.ends_with("zarr.json");
            assert_eq!(report.damaged.len(), usize::from(is_chunk && bytes != sound), "{}", file.display());
        }
        std::fs::write(file, &sound).unwrap();
    }
}
