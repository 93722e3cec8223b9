//! What cannot be done ends with exit code 2, a message that names file, node, row or flag, and no file left behind.
//! Every run here has little memory (see `folder`), so a size that is believed is seen.

use crate::folder::{Folder, fixture};
use ndarray::{Array1, Array2, Array4, array};

#[test]
fn files_that_are_no_models() {
    let folder = Folder::with(&["mlp.x.npy"]);
    let whole = std::fs::read(fixture("mlp.onnx")).unwrap();
    for length in [1, 2, 10, 50, 100, 300, whole.len() - 1] {
        let name = format!("cut{length}.onnx");
        folder.write(&name, &whole[..length]);
        folder.refuse(&format!("info {name}"), &[&name, "try:"]);
        folder.refuse(&format!("predict --net {name} --data mlp.x.npy -o out.npy"), &[&name]);
    }
    let garbage: Vec<u8> = (0..5000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    folder.write("garbage.onnx", &garbage);
    folder.refuse("info garbage.onnx", &["garbage.onnx", "ONNX"]);
    folder.write("empty.onnx", &[]);
    folder.refuse("info empty.onnx", &["empty.onnx"]);
    folder.refuse("predict --net empty.onnx --data mlp.x.npy -o out.npy", &["empty.onnx"]);
    folder.refuse("info missing.onnx", &["missing.onnx", "No such file"]);
    folder.refuse("predict --net missing.onnx --data mlp.x.npy -o out.npy", &["missing.onnx"]);
    folder.refuse("info .", &["."]);
    folder.write("weights.pth", b"PK\x03\x04");
    folder.refuse("predict --net weights.pth --data mlp.x.npy -o out.npy", &["weights.pth", "torch.onnx.export"]);
}

/// One flipped byte or one more: the file may even be fine, but nothing may break.
#[test]
fn damaged_models_never_panic() {
    let folder = Folder::with(&["tokens.ids.npy"]);
    let whole = std::fs::read(fixture("tokens.onnx")).unwrap();
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        folder.write("damaged.onnx", &bytes);
        let run = folder.run("info damaged.onnx --shape 5");
        assert!(matches!(run.code, Some(0 | 2)), "byte {at}: {:?} {}", run.code, run.err);
    }
}

#[test]
fn models_that_cannot_be_run() {
    let cases: &[(&str, &[&str])] = &[
        ("unsupported", &["strange", "NotAnOperator", "try:"]),
        ("cyclic", &["cycle", "/early/Add"]),
        ("mixes", &["/mean/ReduceMean", "batch", "mix"]),
        ("huge_tensor", &["huge", "1000000000000"]),
        ("huge_overflow", &["huge", "too large"]),
        ("huge_fill", &["/fill/ConstantOfShape"]),
        ("huge_range", &["/range/Range"]),
        ("huge_expand", &["/wide/Expand"]),
        ("huge_pad", &["/y/Pad"]),
        ("outside", &["secret", "outside"]),
        ("nan_weight", &["bias", "not finite"]),
        ("misfit", &["/y/MatMul"]),
    ];
    for (name, words) in cases {
        let file = format!("{name}.onnx");
        let folder = Folder::with(&[&file, "mlp.x.npy"]);
        let words = [&[file.as_str()], *words].concat();
        if *name != "huge_pad" {
            folder.refuse(&format!("predict --net {file} --data mlp.x.npy -o out.npy"), &words);
        }
        folder.refuse(&format!("info {file}"), &words);
    }
}

/// Sizes that are only seen when shapes are multiplied, or when memory is asked for.
#[test]
fn sizes_beyond_all_memory() {
    let folder = Folder::with(&["mlp.x.npy"]);
    folder.write_array("image.npy", Array4::<f32>::zeros((3, 1, 4, 4)).view());
    let cases: &[(&str, &str, &str)] = &[
        ("huge_input", "mlp.x.npy", "x"),
        ("huge_border", "image.npy", "/y/Conv"),
        ("huge_margin", "image.npy", "/y/Conv"),
        ("huge_window", "image.npy", "/y/LRN"),
        ("huge_copies", "mlp.x.npy", "/rows/Expand"),
        ("huge_crop", "mlp.x.npy", "/y/Pad"),
    ];
    for (name, data, word) in cases {
        let file = format!("{name}.onnx");
        std::fs::copy(fixture(&file), folder.path(&file)).unwrap();
        folder.refuse(&format!("info {file}"), &[&file, word]);
        folder.refuse(&format!("predict --net {file} --data {data} -o out.npy"), &[&file, word]);
    }
}

#[test]
fn data_that_do_not_fit() {
    let folder = Folder::with(&["cnn.onnx", "cnn.pixels.npy", "mlp.x.npy", "mlp.onnx"]);
    folder.refuse("predict --net cnn.onnx --data mlp.x.npy -o out.npy", &["cnn.onnx", "image", "[4]", "[3, 8, 8]"]);
    folder.refuse("predict --net cnn.onnx --data cnn.pixels.npy -o out.npy", &["image", "--layout nhwc"]);
    folder.refuse("predict --net mlp.onnx --data mlp.x.npy --mean 1,2,3 -o out.npy", &["mlp.x.npy", "--mean"]);
    folder.refuse("predict --net mlp.onnx --data mlp.x.npy --std 0 -o out.npy", &["std", "positive"]);
    folder.write_array("none.npy", Array2::<f32>::zeros((0, 4)).view());
    folder.refuse("predict --net mlp.onnx --data none.npy -o out.npy", &["none.npy", "no samples"]);
    folder.write_array("large.npy", Array4::<f32>::zeros((2, 3, 9, 9)).view());
    folder.refuse("predict --net cnn.onnx --data large.npy -o out.npy", &["[3, 9, 9]", "[3, 8, 8]"]);
}

#[test]
fn numbers_that_are_none() {
    let folder = Folder::with(&["mlp.onnx"]);
    let mut data = Array2::<f32>::zeros((20_000, 4));
    data[[17_003, 2]] = f32::NAN;
    folder.write_array("nan.npy", data.view());
    folder.refuse("predict --net mlp.onnx --data nan.npy -o out.npy --chunk 16", &["nan.npy", "17003", "NaN"]);
    data[[17_003, 2]] = f32::INFINITY;
    folder.write_array("infinite.npy", data.view());
    folder.refuse("predict --net mlp.onnx --data infinite.npy -o out.npy", &["infinite.npy", "17003", "inf"]);
}

/// The library sees blocks; the user wants the row of the file.
#[test]
fn overflow_names_the_row_of_the_file() {
    let folder = Folder::with(&["pair.onnx"]);
    let mut left = Array2::<f32>::zeros((40_000, 3));
    left.row_mut(31_234).fill(3e38);
    folder.write_array("left.npy", left.view());
    folder.write_array("right.npy", Array2::<f32>::from_elem((40_000, 5), 1e30).view());
    folder.refuse(
        "predict --net pair.onnx --data left=left.npy --data right=right.npy -o out.npy",
        &["31234", "pair.onnx", "f64"],
    );
}

#[test]
fn arrays_that_are_not_there() {
    let folder = Folder::with(&["pair.onnx", "pair.npz", "mlp.onnx", "mlp.x.npy"]);
    let line = "predict --net mlp.onnx -o out.npy --data";
    folder.refuse(&format!("{line} pair.npz:middle"), &["pair.npz", "middle", "left", "right"]);
    folder.refuse(&format!("{line} pair.npz"), &["pair.npz:left"]);
    folder.refuse(&format!("{line} mlp.x.npy:key"), &["mlp.x.npy", "key"]);
    folder.refuse(&format!("{line} missing.npy"), &["missing.npy", "No such file"]);
    folder.refuse(&format!("{line} mlp.onnx"), &["mlp.onnx"]);
    folder.write("cut.npy", &std::fs::read(fixture("mlp.x.npy")).unwrap()[..200]);
    folder.refuse(&format!("{line} cut.npy"), &["cut.npy", "bytes"]);
    folder.refuse("info pair.npz:middle", &["pair.npz", "middle"]);
    let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 4), }";
    let huge =
        [b"\x93NUMPY\x01\x00", (header.len() as u16).to_le_bytes().as_slice(), header.as_bytes(), &[0; 16]].concat();
    folder.write("huge.npy", &huge);
    folder.refuse(&format!("{line} huge.npy"), &["huge.npy"]);
}

#[test]
fn inputs_that_are_not_clear() {
    let folder = Folder::with(&["pair.onnx", "pair.left.npy", "pair.right.npy", "mlp.onnx", "mlp.x.npy"]);
    let line = "predict --net pair.onnx -o out.npy";
    folder.refuse(&format!("{line} --data pair.left.npy --data pair.right.npy"), &["left, right", "--data left="]);
    folder.refuse(&format!("{line} --data left=pair.left.npy"), &["right", "--data right=FILE"]);
    folder.refuse(&format!("{line} --data lefd=pair.left.npy --data right=pair.right.npy"), &["lefd", "left"]);
    folder.refuse("predict --net mlp.onnx -o out.npy --data mlp.x.npy --data mlp.x.npy", &["more data than inputs"]);
    folder.write_array("short.npy", Array2::<f32>::zeros((5, 5)).view());
    folder.refuse(
        &format!("{line} --data left=pair.left.npy --data right=short.npy"),
        &["pair.left.npy has 6", "short.npy has 5"],
    );
}

#[test]
fn token_ids_out_of_range() {
    let folder = Folder::with(&["tokens.onnx"]);
    folder.write_array("ids.npy", array![[0_i64, 1, 2], [3, 10, 4]].view());
    folder.refuse("predict --net tokens.onnx --data ids.npy -o out.npy", &["ids", "sample 1", "10"]);
    folder.write_array("negative.npy", array![[0_i64, -11, 2]].view());
    folder.refuse("predict --net tokens.onnx --data negative.npy -o out.npy", &["ids", "-11"]);
    folder.write_array("fractions.npy", array![[0.5_f32, 1.0]].view());
    folder.refuse("predict --net tokens.onnx --data fractions.npy -o out.npy", &["ids", "0.5"]);
    folder.write_array("large.npy", array![[i64::MAX, 1]].view());
    folder.refuse("predict --net tokens.onnx --data large.npy -o out.npy", &["large.npy"]);
}

#[test]
fn nodes_that_are_not_there() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    folder.refuse("predict --net mlp.onnx --data mlp.x.npy --node featurs -o out.npy", &["featurs", "features"]);
    folder.refuse(
        "predict --net mlp.onnx --data mlp.x.npy --node zzzzzzzzzzzzzzzzzzz -o out.npy",
        &["zzz", "mercer info"],
    );
}

#[test]
fn labels_that_do_not_fit() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    let line = "predict --net mlp.onnx --data mlp.x.npy --labels";
    folder.write_array("short.npy", Array1::<i64>::zeros(9).view());
    folder.refuse(&format!("{line} short.npy"), &["mlp.x.npy", "10 samples", "short.npy", "9 labels"]);
    folder.write_array("many.npy", Array1::from_iter(0_i64..10).view());
    folder.refuse(&format!("{line} many.npy"), &["--labels many.npy", "label 3 is 3", "`0`, `1`, `2`"]);
    folder.write_array("numbers.npy", Array1::from_elem(10, 0.5_f32).view());
    folder.refuse(&format!("{line} numbers.npy"), &["--labels", "class"]);
    folder.refuse(&format!("{line} missing.npy"), &["missing.npy"]);
    let mut labels = Array1::<f64>::zeros(10);
    labels[4] = f64::NAN;
    folder.write_array("nan.npy", labels.view());
    folder.refuse(&format!("{line} nan.npy"), &["nan.npy: sample 4 is NaN; remove"]);
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    let line = "predict --net mlp.onnx --data mlp.x.npy";
    folder.write("out.npy", b"precious");
    folder.refuse(&format!("{line} -o out.npy"), &["out.npy", "exists", "--force"]);
    assert_eq!(std::fs::read(folder.path("out.npy")).unwrap(), b"precious");
    folder.succeed(&format!("{line} -o out.npy --force"));
    folder.refuse(&format!("{line} -o nowhere/out.npy"), &["nowhere"]);
    folder.refuse(&format!("{line} -o out.csv"), &["out.csv", ".npy"]);
    folder.refuse(line, &["-o", "--labels"]);
    // A run that fails replaces nothing, even if it may.
    folder.refuse("predict --net mlp.onnx --data mlp.onnx -o out.npy --force", &["mlp.onnx"]);
    assert_eq!(folder.read("out.npy").shape(), [10, 3]);
}
