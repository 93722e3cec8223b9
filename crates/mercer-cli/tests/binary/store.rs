//! `mercer info` on a store of Gram matrices.

use crate::folder::Folder;
use mercer::data::DType;
use mercer::kernel::store::{Manifest, Store, StoreColumns, StoreLayout};
use serde_json::json;

/// A symmetric store of 5 samples in tiles of 2 with two arrays, and these of its six tiles.
fn store(folder: &Folder, tiles: &[usize]) -> Store {
    let layout = StoreLayout {
        arrays: vec!["/conv1/weight".to_owned(), "fc".to_owned()],
        rows: 5,
        columns: StoreColumns::Samples { count: 5, symmetric: true },
        per_sample: 1,
        tile: 2,
        precision: DType::F32,
    };
    let manifest = Manifest::new(layout)
        .fact("kernel", json!({"name": "ntk", "kind": "trace"}))
        .fact("network", "aa00")
        .fact("data", "bb11")
        .note("network file", "net.onnx");
    let store = Store::create(&folder.path("gram.zarr"), manifest).unwrap();
    for &tile in tiles {
        let (rows, columns) = store.layout().tile_shape(&store.tile(tile).unwrap());
        let values = vec![tile as f32 + 0.5; rows * columns];
        store.write(tile, &[&values, &values]).unwrap();
    }
    store
}

#[test]
fn a_complete_store() {
    let folder = Folder::with(&[]);
    store(&folder, &[0, 1, 2, 3, 4, 5]);
    let json = folder.json("info gram.zarr");
    assert_eq!(json["kind"], "store");
    assert_eq!(json["facts"]["kernel"]["kind"], "trace");
    assert_eq!(json["facts"]["data"], "bb11");
    assert_eq!(json["notes"]["network file"], "net.onnx");
    assert_eq!(json["layout"]["arrays"], json!(["/conv1/weight", "fc"]));
    assert_eq!(json["layout"]["precision"], "f32");
    assert_eq!(json["shape"], json!([5, 5]));
    assert_eq!((json["n_tiles"].as_u64(), json["done"].as_u64()), (Some(6), Some(6)));
    assert_eq!((&json["complete"], &json["missing"], &json["damaged"]), (&json!(true), &json!([]), &json!([])));
    // Nine chunks of four numbers and a checksum, in two arrays.
    assert_eq!(json["bytes"], 2 * 9 * 20);
    let text = folder.succeed("info gram.zarr");
    for word in ["gram.zarr", "symmetric", "trace", "aa00", "net.onnx", "f32", "[5, 5]", "fc", "6 of 6", "360 B"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    assert_eq!(folder.json("info gram.zarr/")["done"], 6);
}

/// Incomplete is not damaged.
#[test]
fn an_incomplete_store() {
    let folder = Folder::with(&[]);
    store(&folder, &[1, 4]);
    let json = folder.json("info gram.zarr");
    assert_eq!((&json["complete"], &json["missing"]), (&json!(false), &json!([[0, 0], [2, 3], [5, 5]])));
    let text = folder.succeed("info gram.zarr");
    assert!(text.contains("2 of 6") && text.contains("missing: 0, 2-3, 5"), "{text}");
}

#[test]
fn damage_is_named() {
    let folder = Folder::with(&[]);
    store(&folder, &[0, 1, 2, 3, 4, 5]);
    let file = folder.path("gram.zarr/fc/c/2/1");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[7] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    std::fs::write(folder.path("gram.zarr/_conv1_weight/c/0/0"), "short").unwrap();
    let run = folder.run("info gram.zarr");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    for word in ["tile 0", "/conv1/weight", "5 bytes instead of 20", "tile 4", "gram.zarr/fc/c/2/1", "checksum"] {
        assert!(run.out.contains(word), "{word} in {}", run.out);
    }
    assert!(run.err.contains("2 tiles damaged") && run.err.contains("--resume"), "{}", run.err);
    let run = folder.run("info gram.zarr --json");
    let json: serde_json::Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(run.code, Some(1));
    assert_eq!((&json["damaged"][0]["tile"], &json["damaged"][1]["array"]), (&json!(0), &json!("fc")));
}

/// Two tiles that changed places: their checksums are good, and both are named. Without their places nothing is seen, and that
/// is said.
#[test]
fn swapped_tiles_are_named() {
    let folder = Folder::with(&[]);
    store(&folder, &[0, 1, 2, 3, 4, 5]);
    assert!(!folder.succeed("info gram.zarr").contains("earlier version"));
    let file = |name: &str| folder.path("gram.zarr/fc/c").join(name);
    std::fs::rename(file("0/0"), file("kept")).unwrap();
    std::fs::rename(file("1/1"), file("0/0")).unwrap();
    std::fs::rename(file("kept"), file("1/1")).unwrap();
    let run = folder.run("info gram.zarr");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    for word in ["tile 0", "tile 3", "fc", "swapped"] {
        assert!(run.out.contains(word), "{word} in {}", run.out);
    }
    for array in ["fc", "_conv1_weight"] {
        std::fs::remove_dir_all(folder.path("gram.zarr").join(array).join(".places")).unwrap();
    }
    let json = folder.json("info gram.zarr");
    assert_eq!((&json["places_checked"], &json["damaged"]), (&json!(false), &json!([])));
    assert!(folder.succeed("info gram.zarr").contains("earlier version"));
}

#[test]
fn what_is_no_store() {
    let folder = Folder::with(&[]);
    store(&folder, &[]);
    folder.refuse("info gram.zarr:fc", &["gram.zarr", "leave out"]);
    folder.refuse("info missing.zarr", &["missing.zarr"]);
    std::fs::create_dir(folder.path("empty.zarr")).unwrap();
    folder.refuse("info empty.zarr", &["empty.zarr", "zarr.json"]);
    folder.write("gram.zarr/zarr.json", b"{\"zarr_format\": 3, \"node_type\": \"group\"}");
    folder.refuse("info gram.zarr", &["gram.zarr", "Mercer did not make it"]);
    folder.write("gram.zarr/zarr.json", b"{");
    folder.refuse("info gram.zarr", &["gram.zarr/zarr.json"]);
}
