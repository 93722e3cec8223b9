//! `mercer explain` and `mercer audit`, as scripts use them.

use crate::folder::Folder;
use ndarray::{Array1, Array2, Axis};

/// Three classes of points in the plane, and a network that was trained on them. Every fifteenth label is wrong.
pub(crate) fn problem() -> Folder {
    let folder = Folder::with(&[]);
    let centre = [[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]];
    let noise = |i: usize, j: usize| ((i * 37 + j * 101 + i * i * 13) % 97) as f64 / 97.0 - 0.5;
    let points = |n: usize, from: usize| {
        Array2::from_shape_fn((n, 2), |(i, j)| centre[(i + from) % 3][j] + 1.2 * noise(i + from, j))
    };
    let classes = |n: usize, from: usize| Array1::from_shape_fn(n, |i| ((i + from) % 3) as i64);
    folder.write_array("x.npy", points(120, 0).view());
    folder.write_array("y.npy", classes(120, 0).view());
    folder.write_array("t.npy", points(30, 999).view());
    folder.write_array("l.npy", classes(30, 999).view());
    let wrong = |i: usize| i % 15 == 7;
    let flipped = Array1::from_shape_fn(120, |i| ((i + usize::from(wrong(i))) % 3) as i64);
    folder.write_array("flipped.npy", flipped.view());
    folder.write_array("wrong.npy", Array1::from_shape_fn(120, |i| i64::from(wrong(i))).view());
    folder.write("mlp.toml", b"[mlp]\ninputs = [2]\nwidths = [12]\noutputs = 3\n");
    folder.succeed(
        "train --arch mlp.toml --data x.npy --labels y.npy --epochs 12 --learning-rate 0.03 --batch 16 \
         --checkpoint-every 3 -o net",
    );
    folder
}

const EXPLAIN: &str = "explain --net net/model.onnx --data x.npy --labels y.npy --test t.npy --test-labels l.npy";

#[test]
fn the_contract_of_explain() {
    let folder = problem();
    let report = folder.json(&format!("{EXPLAIN} --rows 0,1 -o why"));
    let surrogates = report["surrogates"].as_array().unwrap();
    assert_eq!(surrogates.len(), 1);
    assert_eq!((&surrogates[0]["kernel"], &surrogates[0]["machine"]), (&"normalised(trace)".into(), &"glm".into()));
    for key in ["tau", "tau_interval", "tad", "agreement", "r2", "n_ties"] {
        assert!(!surrogates[0]["faithfulness"][key].is_null(), "{key}: {report}");
    }
    // The penalty was chosen by cross-validation on the training samples.
    assert_eq!(surrogates[0]["selection"]["by"], "cross-validation");
    assert_eq!(surrogates[0]["penalty_norm"], "weights");
    let text = std::fs::read_to_string(folder.path("why/top.csv")).unwrap();
    assert_eq!(text.lines().next(), Some("test,class,rank,train,attribution,kernel"));
    let (scores, parts) = (folder.read("why/scores.npy"), folder.read("why/attribution.npy"));
    assert_eq!((scores.shape(), parts.shape()), (&[30, 3][..], &[2, 120, 3][..]));
    for (sum, score) in parts.sum_axis(Axis(1)).iter().zip(&scores) {
        assert!((sum - score).abs() < 1e-10);
    }
    let report = folder.json("predict --from why/surrogate --data t.npy --labels l.npy -o again.npy");
    assert!(report["accuracy"].as_f64().unwrap() > 0.9, "{report}");
    for (a, b) in folder.read("again.npy").iter().zip(&scores) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    // The index explains new samples with the same numbers.
    folder.succeed("explain --from why --test t.npy --test-labels l.npy --rows 0,1 -o new");
    assert_eq!(folder.read("new/attribution.npy"), parts);
    folder.refuse("explain --from why --test t.npy --machine ridge -o no", &["--from", "--machine"]);
    folder.refuse("explain --from why --test t.npy --kernel ck -o no", &["--from", "--kernel"]);
    folder.refuse("explain --from why --test t.npy --weights net/weights.safetensors -o no", &["--from", "--weights"]);
    folder.refuse(&format!("{EXPLAIN} --subsets 20 -o no"), &["--validate"]);
    folder.refuse(&format!("{EXPLAIN} --cache x.npy -o no"), &["--cache x.npy", "file"]);
    folder.refuse(&format!("{EXPLAIN} --penalty -1 -o no"), &["--penalty -1: must be a positive number"]);
    folder.refuse(&format!("{EXPLAIN} --penalty -1,2 -o no"), &["--penalty -1: must be a positive number"]);
    folder.refuse("explain --from new --test t.npy -o no", &["surrogate of why"]);
    folder.succeed("replay why");
}

#[test]
fn several_kernels_are_compared_in_words() {
    let folder = problem();
    let text = folder.succeed(&format!(
        "{EXPLAIN} --kernel normalised(trace) --kernel ck --to network --machine ridge --penalty 1e-8 --ood t.npy -o why"
    ));
    assert!(text.contains("by construction") && text.contains("Use normalised(trace)"), "{text}");
    let text = folder.succeed(&format!("{EXPLAIN} --penalty 1 --dry-run -o nothing"));
    assert!(text.contains("nothing was done") && !folder.path("nothing").exists(), "{text}");
}

#[test]
fn attributions_are_validated_by_retraining_and_go_on_where_they_stopped() {
    let folder = problem();
    let line = format!("{EXPLAIN} --penalty 1 --validate lds --subsets 20 --repeats 2 -o lds");
    let report = folder.json(&line);
    let methods = report["validation"]["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|own| own["method"].as_str().unwrap()).collect();
    let all = ["attribution", "leave-one-out", "leave-one-out, glm", "representer", "TRAK", "TRAK, 3 checkpoints"];
    for name in all.into_iter().chain(["gradient dot", "gradient cosine", "influence"]) {
        assert!(names.contains(&name), "{names:?}");
    }
    let (parts, outputs) = (folder.read("lds/parts.npy"), folder.read("lds/retrained.npy"));
    assert_eq!((parts.shape(), outputs.shape()), (&[20, 120][..], &[2, 20, 30][..]));
    assert!(parts.outer_iter().all(|part| part.sum() == 60.0));
    assert_eq!(report["validation"]["n_networks"], 40);
    assert!(methods[0]["score"]["mean"].as_f64().unwrap() > 0.2, "{report}");
    // What was trained is there; the same command gives the same bits from it.
    let kept = std::fs::read_dir(folder.path("lds/retrained")).unwrap().count();
    assert_eq!(kept, 40);
    let again = folder.json(&format!("{line} --force"));
    assert_eq!(again["validation"], report["validation"]);
    let removal = folder.json(&format!("{EXPLAIN} --penalty 1 --validate removal --subsets 3 -o removal"));
    assert_eq!(removal["validation"]["n_networks"], 1 + 3 * 2 * 4);
    std::fs::copy(folder.path("net/model.onnx"), folder.path("alone.onnx")).unwrap();
    let line = "explain --net alone.onnx --data x.npy --labels y.npy --test t.npy --validate lds -o no";
    folder.refuse(line, &["no record", "mercer train"]);
}

#[test]
fn kernels_machines_and_other_samples_stand_in_one_table() {
    let folder = problem();
    let line = format!("{EXPLAIN} --penalty 1 --machine glm,sgd --kernel trace --kernel ck --ood t.npy --fgsm 0.1");
    let out = folder.succeed(&format!("{line} --validate sanity --cache kept -o why"));
    for words in ["On other samples:", "FGSM 0.1", "other kind", "weights shuffled from"] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path("kept")).unwrap().count(),
        4,
        "trace of three pairs of sets, and features"
    );
    folder.refuse(&format!("{EXPLAIN} --fgsm 0 -o no"), &["--fgsm 0", "positive"]);
    folder.refuse("audit --net net/model.onnx --data x.npy --labels y.npy --machine glm,sgd -o no", &["--machine"]);
}

#[test]
fn the_contract_of_audit() {
    let folder = problem();
    folder.succeed(
        "train --arch mlp.toml --data x.npy --labels flipped.npy --epochs 12 --learning-rate 0.03 --batch 16 -o bad",
    );
    let line = "audit --net bad/model.onnx --data x.npy --labels flipped.npy --wrong wrong.npy --penalty 1";
    let report = folder.json(&format!("{line} -o review"));
    assert!(report["measures"][0]["auroc"].as_f64().unwrap() > 0.95, "{report}");
    let text = std::fs::read_to_string(folder.path("review/review.csv")).unwrap();
    assert_eq!(text.lines().next(), Some("rank,id,label,suggested,score,reason"));
    assert_eq!(text.lines().count(), 121);
    assert!(folder.path("review/clean.npy").exists() && folder.path("review/found.svg").exists());
    // Exit code 1 is a check that failed, and the results are there.
    let run = folder.run(&format!("{line} --fail-above 0.001 -o failed"));
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(folder.path("failed/review.csv").exists());
    folder.succeed(&format!("{line} --fail-above 0.9 -o passed"));
}

#[test]
fn names_of_samples_are_in_every_table() {
    let folder = problem();
    let ids: String = std::iter::once("id,hospital\n".to_owned())
        .chain((0..120).map(|row| format!("\"case, {row}\",{}\n", ["A", "B"][row % 2])))
        .collect();
    std::fs::write(folder.path("ids.csv"), ids).unwrap();
    let report =
        folder.json(&format!("{EXPLAIN} --penalty 1 --ids ids.csv:id --groups ids.csv:hospital --top 2 -o why"));
    assert_eq!(report["summary"]["groups"], serde_json::json!(["A", "B"]));
    let text = std::fs::read_to_string(folder.path("why/top.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains("\"case, ")), "{text}");
    folder.succeed("explain --from why --test t.npy -o new");
    let text = std::fs::read_to_string(folder.path("new/examples.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains("\"case, ")), "{text}");
    let line = "audit --net net/model.onnx --data x.npy --labels y.npy --penalty 1 --ids ids.csv:id -o review";
    folder.succeed(line);
    let text = std::fs::read_to_string(folder.path("review/review.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains("\"case, ")), "{text}");
}

/// Ids are texts, also where they look like numbers.
#[test]
fn ids_are_as_they_are_written() {
    let folder = problem();
    // Rounded to doubles, all of the first would be the same; the second mix numbers and names.
    let ids: String = (0..120).map(|row| format!("{},{}\n", 1_234_567_890_123_456_000_u64 + row, mixed(row))).collect();
    folder.write("ids.csv", format!("tweet,file\n{ids}").as_bytes());
    for (column, first) in [("tweet", "1234567890123456000"), ("file", "000")] {
        let line = format!("audit --net net/model.onnx --data x.npy --labels y.npy --penalty 1 --ids ids.csv:{column}");
        folder.succeed(&format!("{line} -o {column}"));
        let text = std::fs::read_to_string(folder.path(column).join("scores.csv")).unwrap();
        assert!(text.lines().nth(1).unwrap().starts_with(&format!("{first},")), "{text}");
    }
    // A list may have a line that names it, or not.
    let list: String = (0..120).map(|row| format!("image-{row}\n")).collect();
    folder.write("list.csv", list.as_bytes());
    folder.write("two.csv", b"image-8\nimage-9\n");
    let report = folder.json(
        "audit --net net/model.onnx --data x.npy --labels y.npy --penalty 1 --ids list.csv --test t.npy \
         --poisoned two.csv -o list",
    );
    assert_eq!(report["forensics"]["n_poisoned"], 2, "{report}");
    folder.write("poisoned.csv", b"name\n007\nimage-8\n");
    let line = "audit --net net/model.onnx --data x.npy --labels y.npy --penalty 1 --ids ids.csv:file --test t.npy";
    let report = folder.json(&format!("{line} --poisoned poisoned.csv -o traced"));
    assert_eq!(report["forensics"]["n_poisoned"], 2, "{report}");
    // Programs that know no whole numbers write a point.
    folder.write("rows.csv", b"row\n3.0\n4.0\n");
    let report = folder.json(
        "audit --net net/model.onnx --data x.npy --labels y.npy --penalty 1 --test t.npy --poisoned rows.csv -o rows",
    );
    assert_eq!(report["forensics"]["n_poisoned"], 2, "{report}");
    folder.refuse(&format!("{line} --ids x.npy -o no"), &["--ids"]);
}

/// Columns with ids and groups are no inputs, also if they are numbers.
#[test]
fn groups_may_be_a_column_of_the_data() {
    let folder = problem();
    let (points, classes) = (folder.read("x.npy"), folder.read("y.npy"));
    let line = |(row, point): (usize, ndarray::ArrayView1<'_, f64>)| {
        format!("{},{},{},{},{row}\n", point[0], point[1], classes[row], row % 2)
    };
    let rows: String =
        points.view().into_dimensionality::<ndarray::Ix2>().unwrap().outer_iter().enumerate().map(line).collect();
    folder.write("t.csv", format!("a,b,class,ward,name\n{rows}").as_bytes());
    let line = "explain --net net/model.onnx --data t.csv --labels t.csv:class --penalty 1 --test t.npy";
    let report = folder.json(&format!("{line} --ids t.csv:name --groups t.csv:ward -o why"));
    assert_eq!(report["summary"]["groups"], serde_json::json!(["0", "1"]), "{report}");
    assert!(report["notes"].to_string().contains("`ward`"), "{report}");
}

fn mixed(row: u64) -> String {
    if row.is_multiple_of(2) && row > 0 { format!("image-{row}") } else { format!("{row:03}") }
}

/// The classes of a folder of images are its labels, for every command that needs some; and what is wrong with a folder is
/// said, instead of that labels are missing.
#[test]
fn folders_of_images_are_their_labels() {
    let folder = Folder::with(&[]);
    let images = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../mercer-data/tests/fixtures/images");
    let images = images.display();
    folder.write("cnn.toml", b"[cnn]\ninputs = [3, 8, 8]\noutputs = 2\nlayers = [{ dense = { width = 4 } }]\n");
    let data = format!("--data {images} --resize 8 --scale 1/255");
    folder.succeed(&format!("train --arch cnn.toml {data} --epochs 1 -o net"));
    folder.succeed(&format!("audit --net net/model.onnx {data} --penalty 1 -o review"));
    folder.succeed(&format!("probe --net net/model.onnx {data} --neighbours 3"));
    folder.succeed(&format!("explain --net net/model.onnx {data} --penalty 1 --test {images} -o why"));
    let text = std::fs::read_to_string(folder.path("review/scores.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains('/')), "{text}");
    folder.succeed(&format!("shift --net net/model.onnx {data} --test {images} -o look"));
    let text = std::fs::read_to_string(folder.path("look/samples.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.contains('/')), "{text}");
    std::fs::create_dir_all(folder.path("bad/empty")).unwrap();
    folder.refuse("train --arch cnn.toml --data bad -o no", &["bad"]);
    folder.refuse("audit --net net/model.onnx --data bad -o no", &["bad", "images"]);
    folder.refuse("audit --net net/model.onnx --data cnn.toml -o no", &["--labels"]);
    folder.refuse(&format!("fit ridge {data} --labels {images} --kernel rbf -o no"), &["--labels", "names of classes"]);
}
