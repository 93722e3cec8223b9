//! Plans of large results: what they take of memory and disk, and what is refused before the work.

use crate::folder::Folder;
use ndarray::Array2;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// A `.npy` file of so many bytes, one per sample, which takes no room on the disk.
fn sparse(folder: &Folder, name: &str, rows: u64) {
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({rows}, 1), }}");
    let header = format!("{text:<117}\n");
    let mut file = std::fs::File::create(folder.path(name)).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.set_len(10 + header.len() as u64 + rows).unwrap();
}

/// Twenty million samples have three thousand million tiles. The folder's commands run with 600 MB of addresses.
#[test]
fn twenty_million_samples_are_planned() {
    let folder = Folder::with(&[]);
    sparse(&folder, "many.npy", 20_000_000);
    let line = "kernel --kernel rbf() --data many.npy --memory 2GiB";
    let text = folder.succeed(&format!("{line} --dry-run"));
    for word in ["3,051,796,875 of 256 × 256", "1.4 PiB of numbers", "GFLOP", "about"] {
        assert!(text.contains(word), "{word} in {text}");
    }
    let plan = folder.json(&format!("{line} --dry-run"));
    assert_eq!(plan["plan"]["tiles"], 3_051_796_875_u64);
    assert_eq!(plan["result_bytes"], 1_600_000_000_000_000_u64);
    // With a place for the result there is one that is too small, for a plan as for a run.
    for extra in ["--dry-run", ""] {
        folder.refuse(&format!("{line} -o out.npy {extra}"), &["1.4 PiB", "are free"]);
    }
    let shown = folder.run(&format!("{line} -o out.npy --dry-run"));
    assert!(shown.out.contains("to write") && shown.out.contains("are free"), "{}", shown.out);
    folder.refuse(&format!("{line} -o out.zarr"), &["too many"]);
    // A part of it.
    let some = folder.json("kernel --kernel rbf() --data many.npy --memory 2GiB --dry-run --tiles 5..2000000000");
    assert_eq!(some["plan"]["tiles"], 1_999_999_995_u64);
}

/// What is there already is not written again, and needs no room.
#[test]
fn room_for_what_is_missing() {
    let folder = Folder::with(&[]);
    let x = Array2::from_shape_fn((700, 3), |(i, j)| ((i * 7 + j * 3) % 11) as f32);
    folder.write_array("x.npy", x.view());
    let line = "kernel --kernel rbf() --data x.npy -o gram.zarr";
    let room = |extra: &str| folder.json(&format!("{line} --dry-run {extra}"))["disk"]["needed"].as_u64().unwrap();
    let chunk = 256 * 256 * 4 + 4;
    assert_eq!((room(""), room("--tiles 0..2")), (9 * chunk, 3 * chunk));
    folder.succeed(&format!("{line} --tiles 0..2"));
    assert_eq!((room("--resume"), room("--force"), room("--resume --tiles 1..3")), (6 * chunk, 6 * chunk, 2 * chunk));
    folder.succeed(&format!("{line} --resume"));
    assert_eq!(room("--resume"), 0);
}

/// Whoever removes tiles while they are being computed does not get a store that claims to be complete.
#[test]
fn tiles_that_vanish_during_a_run_are_missed() {
    let folder = Folder::with(&["mlp.onnx"]);
    let x = Array2::from_shape_fn((2600, 4), |(i, j)| ((i * 37 + j * 11) % 211) as f32 / 100.0 - 1.0);
    folder.write_array("many.npy", x.view());
    let line = "kernel --net mlp.onnx --data many.npy --kernel full --precision f64 -o gram.zarr -q";
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let first = folder.path("gram.zarr/kernel/c/0/0/0/0");
    let mut removed = false;
    while child.try_wait().unwrap().is_none() {
        removed = removed || std::fs::remove_file(&first).is_ok();
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(removed, "the run was over before its first tile was seen: {text}");
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("1 of the tiles that were written") && text.contains("tile 0"), "{text}");
    folder.succeed(&format!("{line} --resume"));
    assert_eq!(folder.json("info gram.zarr")["complete"], true);
}
