//! Tables: which columns are inputs, in which order, and which class is which output.

use crate::folder::{Folder, difference};
use ndarray::Array4;

const NAMES: [&str; 3] = ["virginica", "setosa", "versicolor"];

/// A flower of each class in turn: its class, and four numbers which tell the classes apart in two of them.
fn flower(at: usize) -> (usize, [f64; 4]) {
    let (class, step) = (at % 3, |factor: f64| (at as f64 * factor).fract() - 0.5);
    let centre = [[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]][class];
    (class, [step(0.7548), centre[0] + step(0.5698), step(0.3361) * 2.0, centre[1] + step(0.8192)])
}

/// Some flowers as a table. Columns are `a` to `d`, `class` (a name), `number`, `sign` and `size` (to be predicted).
fn table(rows: impl Iterator<Item = usize>, columns: &[&str]) -> String {
    let mut text = columns.join(",") + "\n";
    for at in rows {
        let (class, numbers) = flower(at);
        let cell = |name: &&str| match *name {
            "class" => NAMES[class].to_owned(),
            "number" => class.to_string(),
            "sign" => (2 * i32::from(class == 0) - 1).to_string(),
            "size" => (numbers[1] - 2.0 * numbers[3]).to_string(),
            name => numbers[usize::from(name.as_bytes()[0] - b'a')].to_string(),
        };
        text += &(columns.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
    }
    text
}

const NET: &str = "[mlp]\ninputs = [4]\nwidths = [16]\noutputs = 3\n";
const TRAIN: &str = "--epochs 60 --batch 16 --learning-rate 0.02";

/// A training table, test tables in another order of columns, and a subset of two classes.
fn folder() -> Folder {
    let folder = Folder::with(&[]);
    let write = |name: &str, rows: &mut dyn Iterator<Item = usize>, columns: &[&str]| {
        folder.write(name, table(rows, columns).as_bytes());
    };
    write("t.csv", &mut (0..90), &["a", "b", "class", "c", "d"]);
    write("n.csv", &mut (0..90), &["a", "b", "c", "d", "number"]);
    write("r.csv", &mut (0..90), &["a", "size", "b", "c", "d"]);
    write("test.csv", &mut (90..150), &["a", "b", "c", "d"]);
    write("permuted.csv", &mut (90..150), &["d", "class", "b", "a", "c"]);
    write("two.csv", &mut (90..150).filter(|at| at % 3 != 0), &["c", "a", "b", "d", "class"]);
    write("other.csv", &mut (90..150), &["a", "b", "c", "size"]);
    write("values.csv", &mut (90..150), &["size", "d", "c", "b", "a"]);
    folder.write("net.toml", NET.as_bytes());
    folder
}

/// A run that must succeed: what it printed, and its notes.
fn noted(folder: &Folder, line: &str) -> (String, String) {
    let run = folder.run(line);
    assert_eq!(run.code, Some(0), "mercer {line}: {}{}", run.out, run.err);
    (run.out, run.err)
}

/// A run that must be refused with these words, after any notes.
fn refused(folder: &Folder, line: &str, words: &[&str]) {
    let run = folder.run(line);
    assert_eq!(run.code, Some(2), "mercer {line}: {}{}", run.out, run.err);
    words.iter().for_each(|word| assert!(run.err.contains(word), "mercer {line}: no {word:?} in: {}", run.err));
}

#[test]
fn a_label_column_is_no_input() {
    let folder = folder();
    let note = "the column `size` is used as label, so it is not an input";
    let kernel = "--kernel linear()";
    for (name, rows) in [("own", format!("{kernel} --data r.csv")), ("rows", "--features r.csv".to_owned())] {
        let (_, err) = noted(&folder, &format!("fit ridge {rows} --labels ./r.csv:size --penalty 0.001 -o {name}"));
        assert!(err.contains(note), "{err}");
        // With and without the column, and in any order.
        folder.succeed(&format!("predict --from {name} --data test.csv -o {name}.npy"));
        let line = format!("predict --from {name} --data values.csv --labels values.csv:size -o {name}-2.npy");
        let report = folder.json(&line);
        assert!(report["r_squared"].as_f64().unwrap() > 0.99, "{name}: {report}");
        let (_, err) = noted(&folder, &format!("predict --from {name} --data values.csv -o {name}-3.npy"));
        assert!(err.contains("`size` was a label, id or group before"), "{err}");
        for other in ["2", "3"] {
            let (own, other) = (folder.read(&format!("{name}.npy")), folder.read(&format!("{name}-{other}.npy")));
            assert!(difference(&own, &other) < 1e-12, "{name}");
        }
        refused(&folder, &format!("predict --from {name} --data other.csv -o o.npy"), &["it lacks `d`", "`a`, `b`"]);
    }
    // Never an exact fit of the label by itself.
    refused(
        &folder,
        &format!("fit ridge {kernel} --data r.csv:a,size --labels r.csv:size -o m"),
        &["`size` is used as label"],
    );
    let (_, err) =
        noted(&folder, &format!("kernel {kernel} --data r.csv --labels r.csv:size --against values.csv -o k.npy"));
    assert!(err.contains(note) && err.contains("`size` was a label"), "{err}");
    assert_eq!(folder.read("k.npy").shape(), [90, 60]);
    let (_, err) = noted(&folder, &format!("eigen exact {kernel} --data r.csv --labels r.csv:size -k 3 -o e"));
    assert!(err.contains(note), "{err}");
}

#[test]
fn columns_are_matched_by_name() {
    let folder = folder();
    folder.succeed(&format!("train --arch net.toml --data n.csv --labels n.csv:number {TRAIN} -o run"));
    let plain = folder.json("predict --net run/model.onnx --data test.csv -o plain.npy");
    assert_eq!(plain["n_samples"], 60);
    folder.succeed("predict --net run/model.onnx --data permuted.csv:-class -o permuted.npy");
    assert_eq!(folder.read("plain.npy"), folder.read("permuted.npy"));
    refused(
        &folder,
        "predict --net run/model.onnx --data other.csv -o o.npy",
        &["it lacks `d`", "unknown columns: `size`"],
    );
    // A machine, the sets of one command, and functions that were saved.
    folder.succeed("fit glm --kernel rbf() --data t.csv --labels t.csv:class -o machine");
    let report = folder.json("predict --from machine --data permuted.csv --labels permuted.csv:class");
    assert!(report["accuracy"].as_f64().unwrap() > 0.95, "{report}");
    for (file, out) in [("test.csv", "k1.npy"), ("permuted.csv:-class", "k2.npy")] {
        folder.succeed(&format!("kernel --kernel rbf() --data n.csv:-number --against {file} -o {out}"));
    }
    assert_eq!(folder.read("k1.npy"), folder.read("k2.npy"));
    folder.succeed("eigen exact --kernel rbf() --data n.csv:-number -k 3 --test test.csv -o functions");
    folder.succeed("predict --from functions --data permuted.csv:-class -o loaded.npy");
    let (own, loaded) = (folder.read("functions/psi.npy"), folder.read("loaded.npy"));
    assert!(difference(&loaded, &own) < 1e-12);
}

#[test]
fn classes_are_those_of_the_network() {
    let folder = folder();
    let line = format!("train --arch net.toml --data t.csv --labels t.csv:class {TRAIN} -o run");
    let json = folder.json(&format!("{line} --test two.csv --test-labels two.csv:class"));
    assert!(json["history"][59]["evaluation_accuracy"].as_f64().unwrap() > 0.95, "{}", json["history"][59]);
    for file in ["permuted.csv", "two.csv"] {
        let json = folder.json(&format!("predict --net run/model.onnx --data {file} --labels {file}:class"));
        assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{file}: {json}");
    }
    // The other way round the alphabet decides, which the network has been told.
    let line = format!(
        "train --arch net.toml --data t.csv --labels t.csv:class {TRAIN} --classes {} -o told",
        NAMES.join(",")
    );
    folder.succeed(&line);
    let json = folder.json("predict --net told/model.onnx --data two.csv --labels two.csv:class");
    assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    assert!(folder.succeed("info told/model.onnx").contains("Classes, in output order: virginica, setosa, versicolor"));
    let sure = "--data t.csv --labels t.csv:class --test two.csv --test-labels two.csv:class";
    let json = folder.json(&format!("uncertainty --net told/model.onnx {sure} -o sure"));
    assert!(json["laplace"]["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    refused(
        &folder,
        "predict --net told/model.onnx --data two.csv --labels two.csv:class --classes setosa,versicolor,virginica",
        &["it was trained with `virginica`, `setosa`, `versicolor`"],
    );
    folder.write("new.csv", (table(90..93, &["a", "b", "c", "d", "class"]) + "0,0,0,0,tulip\n").as_bytes());
    refused(
        &folder,
        "predict --net told/model.onnx --data new.csv --labels new.csv:class",
        &["label 3 is tulip", "`setosa`"],
    );
}

#[test]
fn names_are_not_guessed() {
    let folder = folder();
    // A network that knows numbers only, as those of others do.
    folder.succeed(&format!("train --arch net.toml --data n.csv --labels n.csv:number {TRAIN} -o run"));
    let line = "predict --net run/model.onnx --data two.csv:-class --labels two.csv:class";
    refused(&folder, line, &["`setosa`, `versicolor`", "3 outputs", "--classes"]);
    folder.write("names.txt", (NAMES.join("\n") + "\n").as_bytes());
    for classes in ["names.txt", "virginica,setosa,versicolor"] {
        let json = folder.json(&format!("{line} --classes {classes}"));
        assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    }
    refused(&folder, &format!("{line} --classes setosa,versicolor"), &["2 names", "3 outputs"]);
    let sure = "uncertainty --net run/model.onnx --data n.csv --labels n.csv:number --test two.csv:-class";
    refused(&folder, &format!("{sure} --test-labels two.csv:class -o sure"), &["3 outputs", "--classes"]);
    // Numbers that are no outputs.
    folder.write("two.toml", NET.replace("outputs = 3", "outputs = 2").as_bytes());
    folder.write("s.csv", table(0..90, &["a", "b", "sign", "c", "d"]).as_bytes());
    folder.write("z.csv", table(0..90, &["a", "b", "c", "d"]).as_bytes());
    folder.succeed(&format!("train --arch two.toml --data s.csv --labels s.csv:sign {TRAIN} -o signs"));
    let json = folder.json("predict --net signs/model.onnx --data s.csv --labels s.csv:sign");
    assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    folder.succeed(&format!("train --arch two.toml --data s.csv --labels s.csv:sign --classes=1,-1 {TRAIN} -o turned"));
    let json = folder.json("predict --net turned/model.onnx --data s.csv --labels s.csv:sign");
    assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    let foreign = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    foreign.write("y.csv", b"y\n-1\n1\n1\n-1\n1\n1\n-1\n1\n1\n-1\n");
    foreign
        .refuse("predict --net mlp.onnx --data mlp.x.npy --labels y.csv:y", &["`-1`, `1`", "3 outputs", "--classes"]);
    // More outputs than names: which are they?
    refused(
        &folder,
        &format!("train --arch net.toml --data s.csv --labels s.csv:sign {TRAIN} -o more"),
        &["3 outputs", "2 classes", "--classes"],
    );
}

#[test]
fn machines_keep_their_classes() {
    let folder = folder();
    let names = NAMES.join(",");
    for (name, more) in [("sorted", String::new()), ("told", format!("--classes {names}"))] {
        folder.succeed(&format!("fit glm --kernel rbf() --data t.csv --labels t.csv:class {more} -o {name}"));
        let json = folder.json(&format!("predict --from {name} --data two.csv --labels two.csv:class"));
        assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
    }
    folder.succeed("fit glm --kernel rbf() --data n.csv --labels n.csv:number -o numbers");
    let line = "predict --from numbers --data two.csv:-class --labels two.csv:class";
    refused(&folder, line, &["label 0 is", "`0`, `1`, `2`"]);
    let json = folder.json(&format!("{line} --classes {names}"));
    assert!(json["accuracy"].as_f64().unwrap() > 0.95, "{json}");
}

#[test]
fn bytes_that_go_in_unscaled_get_a_hint() {
    let folder = Folder::with(&["cnn.onnx", "cnn.pixels.npy", "cnn.image.npy"]);
    let line = "predict --net cnn.onnx --data cnn.pixels.npy --layout nhwc";
    let (_, err) = noted(&folder, &format!("{line} -o raw.npy"));
    assert!(err.contains("note: cnn.pixels.npy holds bytes") && err.contains("--scale 1/255"), "{err}");
    let (_, err) = noted(&folder, &format!("{line} --scale 1/255 -o scaled.npy"));
    assert!(!err.contains("note: cnn"), "{err}");
    let (_, err) = noted(&folder, "predict --net cnn.onnx --data cnn.image.npy -o floats.npy");
    assert!(!err.contains("note: cnn"), "{err}");
    let line = "kernel --net cnn.onnx --data cnn.pixels.npy --layout nhwc --kernel ck";
    assert!(noted(&folder, &format!("{line} -o k.npy")).1.contains("note: cnn.pixels"));
    // Trained on bytes, it is given bytes.
    let sides = folder.read("cnn.pixels.npy").shape().to_vec();
    let images =
        Array4::from_shape_fn((12, sides[1], sides[2], 3), |(n, i, j, c)| ((n * 37 + i * 5 + j * 11 + c) % 256) as u8);
    folder.write_array("train.npy", images.view());
    folder.write_array("y.npy", ndarray::Array1::from_shape_fn(12, |n| (n % 2) as i64).view());
    let net = format!(
        "[cnn]\ninputs = [3, {}, {}]\noutputs = 2\nlayers = [{{ conv = {{ channels = 2, kernel = 3 }} }}]\n",
        sides[1], sides[2]
    );
    folder.write("net.toml", net.as_bytes());
    let train = "train --arch net.toml --data train.npy --labels y.npy --layout nhwc --epochs 1";
    assert!(noted(&folder, &format!("{train} -o raw")).1.contains("note: train.npy holds bytes"));
    noted(&folder, &format!("{train} --scale 1/255 -o scaled"));
    let predict =
        |name: &str| format!("predict --net {name}/model.onnx --data train.npy --layout nhwc -o {name}-out.npy");
    assert!(!noted(&folder, &predict("raw")).1.contains("holds bytes"));
    assert!(noted(&folder, &predict("scaled")).1.contains("it was trained on scaled pixels"));
}
