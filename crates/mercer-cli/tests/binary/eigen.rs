//! `mercer eigen`: methods against each other, what is written and read again, and what is refused.

use crate::folder::{Folder, difference};
use mercer::data::random::stream;
use ndarray::{Array2, ArrayD};
use rand::RngExt;
use std::process::Stdio;
use std::time::Duration;

/// Points on a line and in the plane.
fn points() -> Folder {
    let folder = Folder::with(&["mlp.onnx", "mlp.x.npy"]);
    let mut stream = stream(1, "points");
    let mut draw = |rows: usize, columns: usize| {
        Array2::from_shape_simple_fn((rows, columns), || 2.0 * stream.random::<f64>() - 1.0)
    };
    folder.write_array("line.npy", draw(120, 1).view());
    folder.write_array("plane.npy", draw(90, 2).view());
    folder.write_array("new.npy", draw(7, 2).view());
    folder.write_array("classes.npy", Array2::from_shape_fn((90, 1), |(row, _)| (row % 3) as i64).column(0));
    folder
}

fn values(folder: &Folder, name: &str) -> Vec<f64> {
    folder.read(&format!("{name}/values.npy")).iter().copied().collect()
}

/// Columns up to their sign agree.
fn same_columns(a: &ArrayD<f64>, b: &ArrayD<f64>, limit: f64) -> bool {
    let wide = |x: &ArrayD<f64>| x.clone().into_dimensionality::<ndarray::Ix2>().unwrap();
    let (a, b) = (wide(a), wide(b));
    let cosine = |j: usize| {
        let (x, y) = (a.column(j), b.column(j));
        (x.dot(&y) / (x.dot(&x) * y.dot(&y)).sqrt()).abs()
    };
    a.dim() == b.dim() && (0..a.ncols()).all(|j| cosine(j) > 1.0 - limit)
}

#[test]
fn methods_agree_and_folders_are_complete() {
    let folder = points();
    let line = "--kernel rbf() --data plane.npy --labels classes.npy --test new.npy -k 4";
    folder.succeed(&format!("eigen exact {line} -o exact"));
    let landmarks = ["nystrom --landmark-choice all", "nystrom --landmark-choice rpcholesky --landmarks 60"];
    for method in ["lanczos", "randomised"].into_iter().chain(landmarks) {
        folder.succeed(&format!("eigen {method} {line} -o other --force"));
        let (found, expected) = (values(&folder, "other"), values(&folder, "exact"));
        assert!(found.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4 * b), "{method}: {found:?} {expected:?}");
        assert!(same_columns(&folder.read("other/psi.npy"), &folder.read("exact/psi.npy"), 1e-4), "{method}");
    }
    for file in ["values.npy", "psi.npy", "psi_data.npy", "result.json", "run.json", "functions.svg", "folder.json"] {
        assert!(folder.path("exact").join(file).is_file(), "{file}");
    }
    let psi = folder.read("exact/psi_data.npy").into_dimensionality::<ndarray::Ix2>().unwrap();
    let products = psi.t().dot(&psi) / 90.0 - Array2::<f64>::eye(4);
    assert!(products.iter().all(|v| v.abs() < 1e-8), "orthonormal under the data");
    let svg = std::fs::read_to_string(folder.path("exact/functions.svg")).unwrap();
    assert!(svg.starts_with("<svg"));

    let report = folder.json("predict --from exact --data new.npy -o again.npy");
    assert_eq!((&report["n_samples"], &report["components"]), (&7.into(), &4.into()));
    assert_eq!(folder.read("again.npy"), folder.read("exact/psi.npy"));
    folder.refuse(&format!("eigen exact {line} -o exact"), &["already holds results", "--force"]);
}

#[test]
fn networks_and_their_kernels_come_back_from_the_folder() {
    let folder = points();
    let line = "--net mlp.onnx --data mlp.x.npy --test mlp.x.npy -k 3";
    folder.succeed(&format!("eigen exact {line} --kernel trace -o trace"));
    folder.succeed(&format!("eigen lanczos {line} --kernel trace --matrix-free=always -o free"));
    assert!(same_columns(&folder.read("free/psi.npy"), &folder.read("trace/psi.npy"), 1e-8));
    folder.succeed("predict --from trace --data mlp.x.npy -o again.npy");
    assert_eq!(folder.read("again.npy"), folder.read("trace/psi.npy"));
    // A matrix-valued kernel has a row per sample and output.
    folder.succeed(&format!("eigen exact {line} --kernel full -o full"));
    let (samples, rows) = (folder.read("mlp.x.npy").shape()[0], folder.read("full/psi.npy").shape()[0]);
    assert!(rows > samples && rows % samples == 0);
    folder.succeed(&format!("eigen rff {line} --kernel ck -o ck"));
    folder.succeed("predict --from ck --data mlp.x.npy -o ck2.npy");
    assert!(difference(&folder.read("ck2.npy"), &folder.read("ck/psi.npy")) < 1e-12);
}

/// The way that takes fewer operations is taken and told, and both give the same.
#[test]
fn the_matrix_is_made_where_that_is_cheaper() {
    let folder = points();
    let line = "eigen lanczos --net mlp.onnx --data mlp.x.npy --kernel trace -k 3";
    let run = |options: &str| {
        let run = folder.run(&format!("{line} {options} --json"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        (serde_json::from_str::<serde_json::Value>(&run.out).unwrap(), run.err)
    };
    let (auto, told) = run("--matrix-free -o auto");
    assert!(told.contains("Gflop") && told.contains("the matrix is made"), "{told}");
    assert_eq!(auto["choice"]["way"], "matrix");
    let number = |name: &str| auto["choice"][name].as_f64().unwrap();
    assert!(number("matrix_flops") < number("products_flops"));
    let (free, told) = run("--matrix-free=always -o free");
    assert!(told.contains("not made"), "{told}");
    assert_eq!(free["choice"]["way"], "products");
    assert!(same_columns(&folder.read("free/psi_data.npy"), &folder.read("auto/psi_data.npy"), 1e-8));
    assert!(difference(&folder.read("free/values.npy"), &folder.read("auto/values.npy")) < 1e-8);
    let (_, told) = run("-o silent");
    assert!(!told.contains("Gflop"), "{told}");
}

/// With samples that were held out the truth is measured there, too.
#[test]
fn truth_is_measured_on_other_samples() {
    let folder = points();
    let line = "--kernel rbf(lengthscale=0.05) --data plane.npy --test new.npy -k 3 --truth";
    let report = folder.json(&format!("eigen nystrom {line} --landmarks 45 -o half"));
    let part = |report: &serde_json::Value, place: &str| -> Vec<f64> {
        report.pointer(place).unwrap().as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    };
    let (seen, new) = (part(&report, "/truth/cosines"), part(&report, "/truth/held_out/cosines"));
    let gaps = part(&report, "/truth/held_out/gaps");
    assert!(gaps.iter().zip(seen.iter().zip(&new)).all(|(gap, (a, b))| (gap - (a - b)).abs() < 1e-12));
    let exact = folder.json(&format!("eigen exact {line} -o exact"));
    assert!(part(&exact, "/truth/held_out/cosines").iter().all(|c| *c > 1.0 - 1e-9));
    let text = folder.succeed(&format!("eigen neuralef {line} --iterations 20 --batch 90 -o learnt"));
    assert!(text.contains("|cos| held out") && text.contains("gap"), "{text}");
    let alone = folder.json("eigen exact --kernel rbf() --data plane.npy -k 3 --truth -o alone");
    assert!(alone["truth"]["held_out"].is_null());
}

/// What SpIN keeps of its averages is a setting; a damaged state of it is refused, and nothing of the user's is removed.
#[test]
fn spin_is_resumed_from_its_own_state_alone() {
    let folder = points();
    let line = "eigen spin --kernel rbf() --data line.npy -k 3 --batch 60 --checkpoint 20 --iterations 40";
    folder.succeed(&format!("{line} -o usual"));
    folder.succeed(&format!("{line} --keep 0.01 -o same"));
    folder.succeed(&format!("{line} --keep 0.99 -o other"));
    assert_eq!(folder.read("usual/values_before.npy"), folder.read("same/values_before.npy"));
    assert_ne!(folder.read("usual/values_before.npy"), folder.read("other/values_before.npy"));
    folder.refuse(&format!("{line} --keep 1 -o no"), &["--keep 1"]);
    folder.refuse("eigen exact --kernel rbf() --data line.npy --keep 0.5 -o no", &["--keep"]);
    // A run that is complete needs no state any more.
    assert!(!folder.path("usual/state.safetensors").exists());
    folder.refuse(&format!("{line} -o usual --resume"), &["already holds results", "--force"]);
    let line = line.replace("40", "4000000");
    let arguments = format!("{line} -q -o killed");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let state = folder.path("killed/state.safetensors");
    while !state.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    folder.refuse(&format!("{line} -o killed"), &["interrupted", "--resume", "--force"]);
    let mut bytes = std::fs::read(&state).unwrap();
    let last = bytes.len() - 3;
    bytes[last] ^= 1;
    std::fs::write(&state, &bytes).unwrap();
    folder.refuse(&format!("{line} -o killed --resume"), &["state.safetensors", "damaged", "--force"]);
    std::fs::write(&state, b"another's").unwrap();
    folder.refuse(&format!("{line} -o killed --force"), &["state.safetensors", "left alone"]);
    std::fs::write(&state, &bytes).unwrap();
    folder.write("killed/mine.npy", b"a user's");
    let line = line.replace("4000000", "40");
    folder.succeed(&format!("{line} -o killed --force"));
    assert!(folder.path("killed/mine.npy").is_file() && !state.exists());
    std::fs::create_dir(folder.path("plain")).unwrap();
    folder.write("plain/psi.npy", b"a user's");
    folder.refuse(&format!("{line} -o plain --force"), &["psi.npy", "left alone"]);
}

#[test]
fn a_matrix_has_a_spectrum_with_repairs() {
    let folder = points();
    folder.succeed("kernel --kernel rbf() --data plane.npy --precision f64 -o gram.npy");
    folder.succeed("eigen exact --gram gram.npy -k 3 -o matrix");
    folder.refuse("predict --from matrix --data plane.npy -o no.npy", &["their own samples alone"]);
    folder.succeed("eigen exact --kernel rbf() --data plane.npy -k 3 -o kernel");
    assert!(difference(&folder.read("matrix/values.npy"), &folder.read("kernel/values.npy")) < 1e-12);
    folder.write_array("indefinite.npy", ndarray::array![[1.0, 2.0], [2.0, 1.0]].view());
    let report = folder.json("eigen exact --gram indefinite.npy -k 5 -o indefinite");
    assert_eq!((&report["repairs"]["negative"], &report["repairs"]["dropped"]), (&1.into(), &4.into()));
    assert_eq!(report["repairs"]["most_negative"], -0.5);
    assert_eq!(values(&folder, "indefinite"), [1.5]);
    // What is left of an indefinite matrix is no share of its trace.
    let share = |line: &str| folder.succeed(line).contains('%');
    assert!(!share("eigen lanczos --gram indefinite.npy -k 1 -o lanczos"));
    assert!(share("eigen lanczos --gram gram.npy -k 1 -o share"));
}

#[test]
fn learnt_functions_are_compared_with_the_truth() {
    let folder = points();
    let report = folder.json(
        "eigen neuralef --kernel polynomial(degree=2,bias=1) --data line.npy -k 3 --iterations 300 --batch 120 \
         --learning-rate 5e-3 --truth --seed 1 -o learnt",
    );
    // Sines and cosines span polynomials on an interval well; the finish finds them in their span.
    let cosines = report["truth"]["cosines"].as_array().unwrap();
    assert!(cosines.iter().all(|c| c.as_f64().unwrap() > 0.99), "{cosines:?}");
    assert_eq!(report["before"]["values"].as_array().unwrap().len(), 3);
    assert_eq!(folder.read("learnt/values_before.npy").len(), 3);
    folder.succeed("predict --from learnt/before --data line.npy -o before.npy");
    assert_eq!(folder.read("before.npy").shape(), [120, 3]);
    folder.succeed("eigen exact --kernel rbf() --data line.npy -k 2 -o exact");
    folder.refuse("predict --from exact/before --data line.npy -o no.npy", &["no Rayleigh–Ritz step"]);
    folder.succeed("predict --from learnt --data line.npy -o again.npy");
    assert!(difference(&folder.read("again.npy"), &folder.read("learnt/psi_data.npy")) < 1e-4);
    assert!(difference(&folder.read("before.npy"), &folder.read("again.npy")) > 1e-4, "the finish changes something");
}

/// A matrix and the samples of its rows are as good as the kernel, whatever file it is in.
#[test]
fn functions_are_learnt_from_a_matrix() {
    let folder = points();
    let kernel = "--kernel polynomial(degree=2,bias=1) --data line.npy";
    folder.succeed(&format!("kernel {kernel} --precision f64 -o gram.npy"));
    folder.succeed(&format!("kernel {kernel} --precision f64 -o gram.zarr"));
    let settings = "-k 3 --iterations 60 --batch 60 --learning-rate 5e-3 --precision f64 --seed 1";
    for method in ["neuralef", "shared", "spin"] {
        let learn = |source: &str, name: &str| {
            folder.json(&format!("eigen {method} {source} {settings} --truth --test line.npy -o {method}-{name}"))
        };
        let direct = learn(kernel, "kernel");
        for file in ["npy", "zarr"] {
            let report = learn(&format!("--gram gram.{file} --data line.npy"), file);
            assert_eq!(report["values"], direct["values"], "{method}, {file}");
            for part in ["values", "cosines", "subspace_angles"] {
                assert_eq!(report["truth"][part], direct["truth"][part], "{method}, {file}");
            }
            assert!(report["truth"]["held_out"].is_null(), "the kernel is not known");
            let held_out = &direct["truth"]["held_out"];
            assert_eq!(held_out["cosines"].as_array().unwrap().len(), 3, "{held_out}");
            assert_eq!((&report["samples"], &report["evaluated"]), (&direct["samples"], &direct["evaluated"]));
            let psi = |name: &str| folder.read(&format!("{method}-{name}/psi.npy"));
            assert_eq!(psi(file), psi("kernel"), "{method}, {file}");
        }
        folder.succeed(&format!("predict --from {method}-npy --data line.npy -o {method}-again.npy"));
        let again =
            difference(&folder.read(&format!("{method}-again.npy")), &folder.read(&format!("{method}-npy/psi.npy")));
        assert!(again < 1e-10, "{method}: {again}");
    }
    // Samples in other numbers may be learnt from; it is said.
    folder.write_array("other.npy", folder.read("line.npy").mapv(|x| 2.0 * x).view());
    let run = folder.run(&format!("eigen shared --gram gram.zarr --data other.npy {settings} -o other"));
    assert!(run.code == Some(0) && run.err.contains("was not computed from"), "{}", run.err);
    // A matrix-valued kernel has a row per sample and output.
    folder.succeed("kernel --net mlp.onnx --data mlp.x.npy --kernel full --precision f64 -o full.zarr");
    folder.succeed(&format!("eigen shared --gram full.zarr --data mlp.x.npy {} -o full", settings.replace("60", "4")));
    let (samples, rows) = (folder.read("mlp.x.npy").shape()[0], folder.read("full/psi_data.npy").shape()[0]);
    assert!(rows > samples && rows % samples == 0);
}

#[test]
fn functions_that_a_batch_cannot_tell_apart_are_pointed_out() {
    let folder = points();
    let line = "eigen shared --kernel rbf() --data line.npy --iterations 2 --batch 20";
    let says = |rest: &str| folder.run(&format!("{line} {rest}")).err.contains("21 functions cannot be orthogonal");
    assert!(says("-k 21 -o many"));
    assert!(!says("-k 20 -o few"));
    assert!(!says("-k 21 --objective joint -o joint"));
}

/// More functions than are wanted make those that are wanted better; every objective gives functions.
#[test]
fn objectives_and_extra_functions() {
    let folder = points();
    let line = "eigen shared --kernel rbf() --data line.npy --batch 120 --learning-rate 5e-3 --iterations 150 -k 3 --truth --seed 1";
    let worst = |report: &serde_json::Value| {
        let cosines = report["truth"]["cosines"].as_array().unwrap().iter().map(|c| c.as_f64().unwrap());
        cosines.fold(1.0, f64::min)
    };
    for objective in ["game", "sequential", "joint", "unordered"] {
        let run = |extra: usize| {
            let name = format!("{objective}-{extra}");
            let report = folder.json(&format!("{line} --objective {objective} --extra {extra} -o {name}"));
            assert_eq!(report["values"].as_array().unwrap().len(), 3, "{name}");
            assert_eq!(report["before"]["values"].as_array().unwrap().len(), 3, "{name}");
            worst(&report)
        };
        let (few, more) = (run(0), run(5));
        assert!(more > 0.99 && more >= few, "{objective}: {few} with three functions, {more} with eight");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = points();
    folder.write_array("square.npy", ndarray::array![[2.0, 1.0], [1.0, 2.0]].view());
    folder.write_array("skew.npy", ndarray::array![[2.0, 1.0], [0.0, 2.0]].view());
    folder.write_array("nan.npy", ndarray::array![[2.0, f64::NAN], [f64::NAN, 2.0]].view());
    folder.write_array("many.npy", ndarray::Array2::<f32>::zeros((200_000, 1)).view());
    folder.write_array("two.npy", ndarray::array![[0.0], [1.0]].view());
    for (line, words) in [
        ("exact -o out", &["neither a kernel nor a matrix"][..]),
        ("exact --kernel rbf() -o out", &["no data", "--data"]),
        ("exact --kernel rbf() --data plane.npy -k 0 -o out", &["at least one"]),
        ("exact --kernel rfb() --data plane.npy -o out", &["rfb"]),
        ("exact --kernel rbf() --data plane.npy --iterations 5 -o out", &["--iterations"]),
        ("exact --kernel rbf() --data plane.npy --matrix-free -o out", &["--matrix-free"]),
        ("lanczos --kernel rbf() --data plane.npy --matrix-free -o out", &["tangent"]),
        ("exact --kernel rbf() --data plane.npy --landmarks 5 -o out", &["--landmarks"]),
        ("nystrom --kernel rbf() --data plane.npy --orthogonal -o out", &["--orthogonal"]),
        ("exact --gram plane.npy -o out", &["no Gram matrix"]),
        ("nystrom --gram plane.npy -o out", &["--gram"]),
        ("exact --gram square.npy --data line.npy -o out", &["--data", "only the matrix of --gram"]),
        ("lanczos --gram square.npy --matrix-free -o out", &["--matrix-free"]),
        ("exact --gram square.npy --test line.npy -o out", &["--test", "new samples"]),
        ("shared --gram square.npy -o out", &["shared", "--data"]),
        ("contrastive --gram square.npy --data plane.npy -o out", &["--gram"]),
        ("shared --gram square.npy --data plane.npy -o out", &["2 samples", "row i"]),
        ("shared --gram nan.npy -k 1 --data two.npy -o out", &["nan.npy", "sample 0 is NaN"]),
        ("neuralef --gram skew.npy -k 1 --data two.npy -o out", &["differ"]),
        ("spin --gram square.npy --objective joint -k 1 --data two.npy -o out", &["--objective"]),
        ("shared --gram square.npy -k 1 --extra 2 --data two.npy -o out", &["3 functions", "2 rows"]),
        ("exact --kernel rbf() --data plane.npy --extra 2 -o out", &["--extra"]),
        ("exact --kernel rbf() --data plane.npy --test line.npy -o out", &["--test", "shape"]),
        ("rff --kernel linear() --data plane.npy -o out", &["random Fourier features"]),
        (
            "nystrom --kernel rbf() --data plane.npy --landmarks 5 --landmark-choice all -o out",
            &["--landmark-choice all"],
        ),
        ("--kernel rbf() --data plane.npy -o out", &["Usage: mercer eigen"]),
        ("exact --kernel rbf() --data many.npy -o large", &["200000 × 200000", "may be used", "lanczos"]),
        ("lanczos --kernel rbf() --data many.npy -o large", &["memory"]),
        ("nystrom --kernel rbf() --data many.npy --landmarks 150000 -o large", &["landmarks", "may be used"]),
    ] {
        let run = folder.run(&format!("eigen {line}"));
        assert_eq!(run.code, Some(2), "{line}: {}{}", run.out, run.err);
        assert!(words.iter().all(|word| run.err.contains(word)), "{line}: {}", run.err);
        assert!(!folder.path("out").exists(), "{line}: nothing is written");
    }
}
