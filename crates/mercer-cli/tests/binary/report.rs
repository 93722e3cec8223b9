//! `mercer report`. The pages that it makes here are opened in a browser by `tests/python/test_report.py`.

use crate::folder::Folder;
use mercer::data::Existing;
use mercer::data::folder::{FolderKind, FolderWriter};
use mercer::report::{Axis, BoxSummary, Figure, Panel, Series};
use ndarray::{Array2, Array3, Array4};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const KIND: FolderKind = FolderKind { name: "results", version: 1 };

/// Where pages for the browser go.
fn pages() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A folder as a job writes it.
struct Written<'a> {
    writer: FolderWriter,
    job: Value,
    inputs: Vec<Value>,
    result: Value,
    folder: &'a Folder,
}

impl<'a> Written<'a> {
    fn new(folder: &'a Folder, name: &str, job: Value, result: Value) -> Self {
        let writer = FolderWriter::create(&folder.path(name), KIND, Existing::Refuse).unwrap();
        Self { writer, job, inputs: Vec::new(), result, folder }
    }

    fn input(mut self, setting: &str, place: &str, fingerprint: &str) -> Self {
        self.inputs.push(json!({ "setting": setting, "place": place, "fingerprint": fingerprint }));
        self
    }

    fn file(self, name: &str, text: &str) -> Self {
        self.writer.file(name, |file| file.write_all(text.as_bytes())).unwrap();
        self
    }

    fn figure(self, name: &str, figure: &Figure) -> Self {
        self.file(name, &figure.to_svg())
    }

    fn finish(self) {
        let record = json!({
            "format": "mercer run", "version": 1, "mercer": "0.1.0", "instructions": "x86-64-v3", "job": self.job,
            "inputs": self.inputs, "outputs": [{ "name": "result.json", "digest": "0".repeat(64) }],
            "measurements": { "seconds": 1.5, "peak_bytes": 1 << 20 },
        });
        self.writer.file("run.json", |file| file.write_all(record.to_string().as_bytes())).unwrap();
        self.writer.file("result.json", |file| file.write_all(self.result.to_string().as_bytes())).unwrap();
        self.writer.commit(&json!({})).unwrap();
        assert!(self.folder.path("").is_dir());
    }
}

fn line(name: &str) -> Figure {
    let series = Series::marked_line(name, [(0.0, 0.5), (1.0, 0.7), (2.0, 0.9)]);
    Figure::new("").panel(Panel::lines(name, Axis::names(name, [name, "b", "c"]), Axis::linear(name), [series]))
}

fn images(n: usize) -> Array4<f32> {
    Array4::from_shape_fn((n, 1, 8, 8), |(image, _, row, column)| ((image + row * column) % 9) as f32)
}

/// Results of every kind with names of a user in every place. All have the same test samples.
fn every(folder: &Folder, name: &str) -> Vec<String> {
    let text = || json!(name);
    folder.write_array("images.npy", images(6).view());
    let print = mercer::data::Source::new(folder.path("images.npy"), None).open().unwrap().fingerprint().unwrap();
    let image = folder.path("images.npy").display().to_string();
    let classes = json!([name, "other"]);
    let curves =
        json!({ "dimensions": [1, 2, 4], "neighbours": [0.5, 0.7, 0.9], "centre": [0.4, 0.6, 0.8], "svm": [] });
    let layer = |node: &str| {
        json!({ "node": node, "n_features": 8, "accuracy": { "neighbours": 0.9, "centre": 0.8, "svm": null }, "curves": curves,
                "explained": [0.3, 0.6, 0.9], "nc1": 0.5, "nc4": 0.1, "linear": { "accuracy": 0.9 } })
    };
    let layers = json!([layer(name), layer("second")]);
    let checkpoint = |name: &str| json!({ "name": name, "network_accuracy": 0.9, "layers": layers });
    let weight =
        |layer: &str| json!({ "layer": layer, "eigenvalues": [3.0, 1.0, 0.5, 0.2], "threshold": 2.0, "n_spikes": 1 });
    let spectra = |own: &str| {
        json!({ "name": own, "weights": [weight(name), weight("w")], "ck": { "kernel": name, "eigenvalues": [2.0, 1.0] },
                "ntk": { "kernel": name, "eigenvalues": [5.0, 1.0] } })
    };
    let simple = |job: &str, result: Value| {
        Written::new(folder, job, json!({ "name": job, "net": name, "settings": { "of": name, name: name } }), result)
            .input("net", name, name)
            .figure("figure.svg", &line(name))
            .finish();
    };
    let epoch = |epoch: usize| json!({ "epoch": epoch, "loss": 1.0 / epoch as f64, "accuracy": 0.9, "evaluation_loss": 0.5, "evaluation_accuracy": 0.88 });
    simple(
        "train",
        json!({ "n_samples": 100, "n_evaluation_samples": 50, "class_names": classes, "history": [epoch(1), epoch(2), epoch(3)] }),
    );
    simple(
        "fit",
        json!({ "machine": name, "n_samples": 10, "training_accuracy": 0.9, "converged": false, "repairs": [name] }),
    );
    simple(
        "probe",
        json!({ "layers": layers, "checkpoints": [checkpoint(name), checkpoint("epoch 2")], "sentences": [text()] }),
    );
    simple("spectrum", json!({ "checkpoints": [spectra(name), spectra("epoch 2")], "sentences": [text()] }));
    simple("shift", json!({ "sentences": [text()], "tests": [{ "name": name, "p_value": 0.01, "rejected": true }] }));
    simple("compare", json!({ "sentences": [text()], "pairs": [{ "a": name, "b": name, "cka": 0.5 }] }));
    simple("something-new", json!({ name: [{ name: name }], "sentences": [text()] }));
    let quoted = format!("\"{}\"", name.replace('"', "\"\""));
    let spec = json!({ "data": [image], "labels": null });
    let mut local =
        "test,label,compared,network,surrogate,network_log_odds,surrogate_log_odds,gap,warning\n".to_owned();
    let mut top = "test,class,rank,train,attribution,kernel\n".to_owned();
    for test in 0..6 {
        let odds = f64::from(test) - 2.0;
        local += &format!("{test},{quoted},{quoted},{quoted},other,{odds},{},{},{quoted}\n", odds + 0.5, 0.5);
        for rank in 1..3 {
            top += &format!("{test},{quoted},{rank},{rank},0.{rank},1\n");
        }
    }
    let points: Vec<(f64, f64)> = (0..6).map(|test| (f64::from(test) - 1.5, f64::from(test) - 2.0)).collect();
    let scatter = Panel::scatter("", Axis::linear("surrogate"), Axis::linear("network"), [(name, points)]).diagonal();
    let surrogate =
        json!({ "kernel": name, "machine": "glm", "faithfulness": { "tau": 0.7, "tau_interval": [0.6, 0.8] } });
    let explain = Written::new(
        folder,
        "explain",
        json!({ "name": "explain", "net": name, "test": [image], "train": spec, "ids": null }),
        json!({ "network": name, "n_train": 6, "n_test": 6, "classes": classes, "surrogates": [surrogate], "recommendation": [name],
                "summary": { "groups": [name, "other"], "effective_samples": 3.0, "top_share": 0.5 }, "n_doubtful": 1, "network_accuracy": 0.9 }),
    )
    .input("test", name, &print)
    .input("data", &image, &print)
    .file("local.csv", &local)
    .file("top.csv", &top)
    .figure("faithfulness.svg", &Figure::new("").panel(scatter));
    let statistics = Array3::from_shape_fn((6, 2, 8), |(_, _, at)| [3.0, 0.2, 0.1, 0.2, 0.3, 0.0, 0.5, 0.0][at]);
    explain.writer.array_file("distribution.npy", &statistics).unwrap();
    explain.finish();
    let mut review = "rank,id,label,suggested,score,reason\n".to_owned();
    (0..6).for_each(|row| review += &format!("{},{row},{quoted},other,0.{},{quoted}\n", row + 1, 9 - row));
    Written::new(
        folder,
        "audit",
        json!({ "name": "audit", "net": name, "train": spec, "ids": null }),
        json!({ "network": name, "n_samples": 6, "classes": classes, "n_disputed": 2, "estimated_noise": 0.1, "out_of_fold_accuracy": 0.9,
                "poison": [{ "class": name, "suspicious": true, "space": name }], "duplicates": { "n_conflicts": 1, "conflicts": [[name]] } }),
    )
    .input("data", &image, &print)
    .file("review.csv", &review)
    .finish();
    let probabilities = Array2::from_shape_fn((6, 2), |(_, class)| [0.8, 0.2][class]);
    let sure = Written::new(
        folder,
        "uncertainty",
        json!({ "name": "uncertainty", "net": name, "test": [image], "train": spec }),
        json!({ "network": name, "method": name, "prior": name, "prior_precision": 1.0, "map": { "auroc": 0.8, "ece": 0.1, "nll": 0.2 },
                "laplace": { "auroc": 0.9, "ece": 0.05, "nll": 0.1 }, "worse_than_network": true, "clipped": 1, "repairs": [] }),
    )
    .input("test", name, &print)
    .figure("entropy.svg", &Figure::new("").panel(Panel::histogram(name, name, 5, [(name, vec![0.1, 0.2, 0.5])])));
    sure.writer.array_file("probabilities.npy", &probabilities).unwrap();
    sure.writer.array_file("map_probabilities.npy", &probabilities).unwrap();
    sure.finish();
    let space = (0..6).map(|at| [f64::from(at), f64::from(at % 3), f64::from(at % 2)]).collect::<Vec<_>>();
    let boxes = Panel::boxes(name, [name], Axis::linear(name), [(name, [BoxSummary::of(&[1.0, 2.0, 9.0])])]);
    let eigen = Written::new(
        folder,
        "eigen",
        json!({ "name": "eigen", "data": spec }),
        json!({ "kernel": name, "values": [1.0, 0.5, 0.25], "mean_diagonal": 2.0, "repairs": { "dropped": 1 } }),
    )
    .input("data", &image, &print)
    .figure(
        "functions.svg",
        &Figure::new(name).panel(Panel::scatter3(name, [name, "v", "w"], [(name, space)])).panel(boxes),
    );
    eigen
        .writer
        .array_file("psi_data.npy", &Array2::from_shape_fn((6, 3), |(row, column)| (row * column) as f64))
        .unwrap();
    eigen.finish();
    folder.write_array("gram.npy", Array2::from_shape_fn((4, 4), |(a, b)| 1.0 / (1.0 + a.abs_diff(b) as f64)).view());
    let record = json!({ "format": "mercer run", "version": 1, "mercer": "0.1.0", "instructions": "x", "job": { "name": "kernel", "kernel": { "kernel": name } },
                         "inputs": [], "outputs": [], "measurements": {} });
    folder.write("gram.npy.run.json", record.to_string().as_bytes());
    let jobs = [
        "train",
        "explain",
        "audit",
        "uncertainty",
        "probe",
        "spectrum",
        "eigen",
        "fit",
        "shift",
        "compare",
        "something-new",
        "gram.npy",
    ];
    jobs.map(str::to_owned).to_vec()
}

fn report(folder: &Folder, runs: &[String], out: &Path) -> String {
    let mut arguments = vec!["report"];
    arguments.extend(runs.iter().map(String::as_str));
    let out = out.display().to_string();
    arguments.extend(["-o", &out, "--force"]);
    let output = folder.command(&arguments).output().unwrap();
    let run = crate::folder::Run::new("report", output);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    std::fs::read_to_string(&out).unwrap()
}

/// Every kind of job has a section with its sentences, figures and tables, and the same results give the same bytes.
#[test]
fn every_kind_of_result_has_a_section() {
    let folder = Folder::with(&[]);
    let runs = every(&folder, "name");
    let html = report(&folder, &runs, &pages().join("every.html"));
    for (at, run) in runs.iter().enumerate() {
        assert_eq!(html.matches(&format!("<section id=\"s{at}\" class=\"job\">")).count(), 1, "{run}");
    }
    assert!(
        html.contains("id=\"s1-faithfulness\"")
            && html.contains("id=\"s4-by-layer\"")
            && html.contains("id=\"s5-by-checkpoint\"")
    );
    assert!(
        html.contains("id=\"s0-course\"")
            && html.contains("id=\"s11-matrix\"")
            && html.contains("data:image/png;base64,")
    );
    assert_eq!(html, report(&folder, &runs, &folder.path("again.html")), "the same bytes");
    assert!(html.len() < 400_000, "{}", html.len());
    // `info` and the page say the same of every kind of result: nothing more, nothing less, in the same order.
    for (at, run) in runs.iter().enumerate() {
        let found = folder.json(&format!("info {run}"));
        let own: Vec<&str> = found["sentences"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let section = html.split(&format!("<section id=\"s{at}\" class=\"job\">")).nth(1).unwrap();
        let section = section.split("</section>").next().unwrap();
        let said = section.split("<ul class=\"said\">").nth(1).map(|part| part.split("</ul>").next().unwrap());
        let said: Vec<String> = said.into_iter().flat_map(|list| list.split("<li>").skip(1)).map(plain).collect();
        assert_eq!(own, said, "{run}");
        assert_eq!(own.is_empty(), run == "gram.npy", "{run}");
    }
    // A record with numbers of every kind: warnings are in words.
    assert!(html.contains("1 of the requested components do not exist") && !html.contains("Repaired:"));
}

/// The text of a line of the page.
fn plain(line: &str) -> String {
    let text = line.split("</li>").next().unwrap().replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

/// An array is compared with the digest in its record, as the files of folders are.
#[test]
fn an_array_that_was_changed_is_refused() {
    let folder = Folder::with(&[]);
    folder.write_array("x.npy", Array2::from_shape_fn((40, 3), |(row, column)| (row * (column + 2) % 7) as f32).view());
    folder.succeed("kernel --kernel rbf(lengthscale=2) --data x.npy -o gram.npy");
    folder.succeed("kernel --kernel rbf(lengthscale=2) --data x.npy -o gram.zarr");
    let html = report(&folder, &["gram.npy".to_owned(), "gram.zarr".to_owned()], &folder.path("page.html"));
    assert_eq!(html.matches("Kernel values, a row per sample.").count(), 2);
    // The picture of the store is that of the array.
    let drawn = |at: usize| {
        let figure = html.split(&format!("<figure id=\"s{at}-matrix\">")).nth(1).unwrap();
        figure.split("</figure>").next().unwrap().to_owned()
    };
    assert_eq!(drawn(0), drawn(1));
    let good = std::fs::read(folder.path("gram.npy")).unwrap();
    let mut bytes = good.clone();
    *bytes.last_mut().unwrap() ^= 1;
    folder.write("gram.npy", &bytes);
    folder.refuse("report gram.npy -o other.html", &["gram.npy", "is not what", "gram.npy.run.json"]);
    folder.write("gram.npy", &good);
    folder.succeed("report gram.npy -o other.html");
    let tile = folder.path("gram.zarr/kernel/c/0/0");
    let mut bytes = std::fs::read(&tile).unwrap();
    bytes[5] ^= 1;
    std::fs::write(&tile, bytes).unwrap();
    folder.refuse("report gram.zarr -o third.html", &["gram.zarr", "is not what"]);
}

/// Names of a megabyte, everywhere: the page is small and opens.
#[test]
fn any_names_make_small_pages() {
    let folder = Folder::with(&[]);
    let name = format!("a name & <more> {}", "of any length ".repeat(20_000));
    let runs = every(&folder, &name);
    let html = report(&folder, &runs, &pages().join("long.html"));
    assert!(html.len() <= 2_000_000, "{}", html.len());
    for part in ["id=\"s1-faithfulness\"", "id=\"s4-by-layer\"", "<article class=\"card\">", "\"samples\":[{"] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("<span title=\"a name &amp; &lt;more&gt; of any length "));
}

/// Names that would do something in a page if they were not text.
fn hostile() -> Vec<String> {
    let corpus = include_str!("../fixtures/hostile-names.txt");
    corpus.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A page per hostile name, with the name in every place. What it does in a browser is tested there; here, that markup of
/// ours is all that there is.
#[test]
fn hostile_names_stay_text() {
    let names = hostile();
    assert!(names.len() >= 50, "{}", names.len());
    let tags = |html: &str| {
        let plain = html.split("</style>").nth(1).unwrap().split("<script>\"use strict\"").next().unwrap();
        plain.split('<').skip(1).filter(|part| !part.starts_with('/')).count()
    };
    let mut expected = None;
    for (at, name) in names.iter().enumerate() {
        let folder = Folder::with(&[]);
        let runs = every(&folder, name);
        let html = report(&folder, &runs, &pages().join(format!("hostile-{at:02}.html")));
        let found = tags(&html);
        let usual = *expected.get_or_insert(found);
        // Long names are cut in figures, which then have other lines of text.
        assert!(found.abs_diff(usual) < usual / 10, "{name}: {found} tags, usually {usual}");
    }
}

/// A million samples, a thousand classes, two hundred layers.
#[test]
fn large_results_make_small_pages() {
    let folder = Folder::with(&[]);
    let classes: Vec<String> = (0..1000).map(|class| format!("class {class}")).collect();
    let mut local =
        "test,label,compared,network,surrogate,network_log_odds,surrogate_log_odds,gap,warning\n".to_owned();
    for test in 0..1_000_000 {
        use std::fmt::Write;
        let (class, other) = (test % 1000, (test / 7) % 1000);
        let odds = f64::from(test % 997) / 100.0;
        writeln!(local, "{test},class {class},class {class},class {other},class {class},{odds},{odds},0,").unwrap();
    }
    let cloud = (0..1_000_000).map(|at| (f64::from(at % 1009), f64::from(at % 997)));
    let scatter = Panel::scatter("", Axis::linear("surrogate"), Axis::linear("network"), [("test samples", cloud)]);
    let explain = json!({ "network": "m.onnx", "n_train": 1_000_000, "n_test": 1_000_000, "classes": classes, "recommendation": ["Use trace."],
                          "summary": { "groups": classes, "effective_samples": 1e5, "top_share": 0.01 }, "n_doubtful": 1000 });
    Written::new(&folder, "explain", json!({ "name": "explain", "net": "m.onnx", "test": ["x.npy"] }), explain)
        .input("test", "x.npy", "0")
        .file("local.csv", &local)
        .figure("faithfulness.svg", &Figure::new("").panel(scatter))
        .finish();
    drop(local);
    let mut review = "rank,id,label,suggested,score,reason\n".to_owned();
    (0..1_000_000)
        .for_each(|row| review += &format!("{row},{row},class {},class 1,0.5,it is close to others\n", row % 1000));
    Written::new(
        &folder,
        "audit",
        json!({ "name": "audit" }),
        json!({ "n_samples": 1_000_000, "classes": classes, "n_disputed": 9 }),
    )
    .file("review.csv", &review)
    .finish();
    let dimensions: Vec<usize> = (1..60).collect();
    let shares: Vec<f64> = dimensions.iter().map(|&d| 1.0 - 1.0 / d as f64).collect();
    let layers: Vec<Value> = (0..200)
        .map(|at| json!({ "node": format!("block {at}/relu"), "accuracy": { "neighbours": 0.9, "centre": 0.8 }, "explained": shares,
                          "curves": { "dimensions": dimensions, "neighbours": shares, "centre": shares, "svm": shares } }))
        .collect();
    let checkpoints: Vec<Value> =
        (0..20).map(|at| json!({ "name": format!("epoch {at}"), "layers": layers })).collect();
    Written::new(
        &folder,
        "probe",
        json!({ "name": "probe" }),
        json!({ "classes": classes, "layers": layers, "checkpoints": checkpoints }),
    )
    .finish();
    let eigenvalues: Vec<f64> = (1..400).map(|rank| 1.0 / f64::from(rank)).collect();
    let weights: Vec<Value> = (0..200)
        .map(|at| json!({ "layer": format!("weight {at}"), "eigenvalues": eigenvalues, "threshold": 0.5 }))
        .collect();
    let checkpoints: Vec<Value> =
        (0..4).map(|at| json!({ "name": format!("epoch {at}"), "weights": weights })).collect();
    Written::new(&folder, "spectrum", json!({ "name": "spectrum" }), json!({ "checkpoints": checkpoints })).finish();
    let page = pages().join("large.html");
    // The command may use 600 MB of address space in these tests; the peak is part of its result.
    let found = folder.json(&format!("report explain audit probe spectrum --force -o {}", page.display()));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.len() <= 2_000_000 && html.contains("1,000,000"), "{}", html.len());
    assert!(found["measurements"]["peak_bytes"].as_u64().unwrap() < 500_000_000, "{}", found["measurements"]);
    assert!(html.contains("id=\"s2-by-layer\"") && html.contains("id=\"s3-by-weight\""));
}

#[test]
fn samples_can_be_chosen() {
    let folder = Folder::with(&[]);
    every(&folder, "name");
    folder.succeed("report explain -o one.html --samples 4");
    let html = std::fs::read_to_string(folder.path("one.html")).unwrap();
    assert!(html.contains("1 of 6 test samples: asked for."));
    folder.refuse("report explain -o two.html --samples best", &["--samples", "best", "unfaithful"]);
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = Folder::with(&[]);
    every(&folder, "name");
    folder.refuse("report -o page.html", &["RESULT"]);
    folder.refuse("report missing -o page.html", &["missing"]);
    std::fs::create_dir(folder.path("empty")).unwrap();
    folder.refuse("report empty -o page.html", &["empty", "not the result of a run"]);
    folder.refuse("report images.npy -o page.html", &["images.npy", "run.json"]);
    folder.write("taken.html", b"mine");
    folder.refuse("report train -o taken.html", &["taken.html", "--force"]);
    folder.refuse("report train -o taken.html --force", &["taken.html"]);
    folder.refuse("report train -o empty", &["empty", "folder"]);
    folder.refuse("report train -o no/such/page.html", &["no/such"]);
    // Of a newer version.
    let record = std::fs::read_to_string(folder.path("gram.npy.run.json")).unwrap();
    folder.write("gram.npy.run.json", record.replace("\"version\":1", "\"version\":99").as_bytes());
    folder.refuse("report gram.npy -o page.html", &["gram.npy.run.json", "99"]);
    folder.write("gram.npy.run.json", &record.as_bytes()[..40]);
    folder.refuse("report gram.npy -o page.html", &["gram.npy.run.json"]);
    // Changed, half written.
    let result = folder.path("fit/result.json");
    std::fs::write(&result, "{}").unwrap();
    folder.refuse("report fit -o page.html", &["fit/result.json"]);
    let manifest = folder.path("probe/folder.json");
    let text = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    folder.refuse("report probe -o page.html", &["probe/folder.json"]);
    std::fs::remove_file(folder.path("shift/run.json")).unwrap();
    folder.refuse("report shift -o page.html", &["shift/run.json"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let locked = folder.path("locked");
        std::fs::create_dir(&locked).unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
        // Root may write anywhere.
        if std::fs::write(locked.join("probe"), b"").is_err() {
            folder.refuse("report train -o locked/page.html", &["locked"]);
        }
    }
}
