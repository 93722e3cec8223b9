//! Files that were made to hurt. Whatever is in a file, the binary answers with a result or with an error that says why,
//! within a gibibyte of address space and before anybody gives up waiting.

use crate::corpus::{chain, networks};
use crate::folder::{Folder, Run};
use crate::writer::{FLOAT, Model};
use ndarray::{Array2, Array4};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Address space in KiB.
const MEMORY: usize = 1 << 20;

/// A run that takes longer than this hangs. It is no measure of speed: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(100);

/// Networks that take images; the others take vectors.
const IMAGES: [&str; 8] = [
    "resize",
    "resize_nearest",
    "window",
    "conv_border",
    "kernel_shape",
    "conv_nothing",
    "conv_no_channels",
    "conv_no_window",
];

fn folder() -> Folder {
    let folder = Folder::with(&[]);
    let vectors = Array2::from_shape_fn((5, 4), |(i, j)| (i * 7 + j * 3) as f32 % 5.0 / 5.0 - 0.4);
    let images = Array4::from_shape_fn((5, 2, 4, 4), |(i, c, j, k)| (i * 7 + c * 5 + j * 3 + k) as f32 % 11.0 / 11.0);
    folder.write_array("x.npy", vectors.view());
    folder.write_array("image.npy", images.view());
    folder
}

/// Runs the binary with a gibibyte. It must end by itself, with a result or an error.
fn survives(folder: &Folder, line: &str) -> Run {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    let mut command = folder.command_within(MEMORY, &arguments);
    let mut child =
        command.args(["--threads", "2"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("mercer runs");
    let (start, mut hung) = (Instant::now(), false);
    let (out, err) = (drain(child.stdout.take()), drain(child.stderr.take()));
    while child.try_wait().expect("its state").is_none() {
        if start.elapsed() > PATIENCE {
            hung = true;
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = child.wait().expect("its end");
    assert!(!hung, "mercer {line} hangs");
    let (stdout, stderr) = (out.join().expect("its output"), err.join().expect("its errors"));
    let run = Run::new(line, std::process::Output { status, stdout, stderr });
    assert!(matches!(run.code, Some(0 | 2)), "mercer {line}: {:?} {}", run.code, run.err);
    assert_eq!(run.code == Some(2), run.err.contains("error: "), "mercer {line}: {}", run.err);
    let plain = |text: &str| text.chars().all(|letter| letter == '\n' || letter == '\t' || !letter.is_control());
    assert!(plain(&run.out) && plain(&run.err), "mercer {line} prints control characters: {:?} {:?}", run.out, run.err);
    run
}

fn drain(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

fn refused(folder: &Folder, line: &str, words: &[&str]) {
    let run = survives(folder, line);
    assert_eq!(run.code, Some(2), "mercer {line}: {}", run.out);
    words.iter().for_each(|word| assert!(run.err.contains(word), "mercer {line}: no {word:?} in {}", run.err));
}

#[test]
fn networks_that_hurt() {
    let folder = folder();
    for (name, model) in networks() {
        let (file, data) = (format!("{name}.onnx"), if IMAGES.contains(&name) { "image.npy" } else { "x.npy" });
        folder.write(&file, &model.bytes());
        for line in [
            format!("info {file}"),
            format!("predict --net {file} --data {data} -o out.npy --force"),
            format!("kernel --net {file} --data {data} --kernel trace -o kernel.npy --force"),
        ] {
            let start = Instant::now();
            let run = survives(&folder, &line);
            // Shown where the test fails, or with --nocapture.
            println!(
                "{:6.2} s  {:?}  {line}  {}",
                start.elapsed().as_secs_f64(),
                run.code,
                run.err.lines().next().unwrap_or("")
            );
        }
        std::fs::remove_file(folder.path(&file)).unwrap();
    }
}

#[test]
fn a_limit_is_named_and_can_be_raised() {
    let folder = folder();
    let fill = Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y").ints("shape", &[1 << 20]);
    let names: Vec<String> = (0..40).map(|index| format!("c{index}")).collect();
    let fill = names.iter().fold(fill, |model, name| model.node("ConstantOfShape", &["shape"], name));
    folder.write("fill.onnx", &fill.node("Relu", &["x"], "y").bytes());
    refused(
        &folder,
        "info fill.onnx",
        &["fill.onnx", "\"c31\" (ConstantOfShape)", "8388608", "268435456", "--import-limit"],
    );
    let run = survives(&folder, "info fill.onnx --import-limit 400MiB");
    assert_eq!(run.code, Some(0), "{}", run.err);
    refused(&folder, "info fill.onnx --import-limit 1MiB", &["limit"]);
}

#[cfg(target_os = "linux")]
#[test]
fn only_regular_files_are_read() {
    let folder = folder();
    assert!(std::process::Command::new("mkfifo").arg(folder.path("pipe")).status().unwrap().success());
    for name in ["pipe.onnx", "pipe.npy", "pipe.toml", "pipe.csv"] {
        std::os::unix::fs::symlink("pipe", folder.path(name)).unwrap();
    }
    for name in ["zero.onnx", "zero.npy", "zero.toml", "zero.csv"] {
        std::os::unix::fs::symlink("/dev/zero", folder.path(name)).unwrap();
    }
    let plain = Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y").weights("w", &[4, 4]);
    folder.write("plain.onnx", &plain.node("MatMul", &["x", "w"], "y").bytes());
    for from in ["pipe", "zero"] {
        refused(&folder, &format!("info {from}.onnx"), &["not a regular file"]);
        refused(&folder, &format!("info {from}.npy"), &["not a regular file"]);
        refused(&folder, &format!("predict --net {from}.onnx --data x.npy -o out.npy"), &["not a regular file"]);
        refused(&folder, &format!("predict --net plain.onnx --data {from}.npy -o out.npy"), &["not a regular file"]);
        refused(&folder, &format!("predict --net plain.onnx --data {from}.csv -o out.npy"), &["not a regular file"]);
        refused(
            &folder,
            &format!("kernel --arch {from}.toml --data x.npy --kernel nngp -o k.npy"),
            &["not a regular file"],
        );
        refused(
            &folder,
            &format!("train --arch {from}.toml --data x.npy --labels x.npy -o run"),
            &["not a regular file"],
        );
        refused(&folder, &format!("predict --from {from}.npy --data x.npy -o out.npy"), &[from]);
        refused(&folder, &format!("explain --from {from}.npy --test x.npy -o out"), &[from]);
        refused(&folder, &format!("shift --from {from}.npy --test x.npy"), &[from]);
    }
}

#[test]
fn external_data_is_measured_before_it_is_read() {
    let folder = folder();
    let model = |shape: &[usize], entries: &[(&str, &str)]| {
        let model = Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y");
        model.external("w", shape, entries).node("MatMul", &["x", "w"], "y").bytes()
    };
    folder.write("w.bin", &[0; 48]);
    std::fs::File::create(folder.path("long.bin")).unwrap().set_len(6 << 30).unwrap();
    for location in ["w.bin", "./w.bin"] {
        folder.write("fine.onnx", &model(&[4, 3], &[("location", location)]));
        assert_eq!(survives(&folder, "info fine.onnx").code, Some(0), "{location}");
    }
    for (shape, entries, words) in [
        (&[4usize, 3][..], &[("location", "long.bin")][..], &["\"w\"", "48", "6442450944"][..]),
        (&[4, 3], &[("location", "long.bin"), ("offset", "6442450940")], &["\"w\"", "48"]),
        (&[4, 3], &[("location", "w.bin"), ("length", "18446744073709551615")], &["\"w\""]),
        (&[4, 3], &[("location", "w.bin"), ("offset", "8")], &["\"w\"", "48", "40"]),
        (&[4, 1 << 28], &[("location", "long.bin"), ("length", "4294967296")], &["\"w\"", "4294967296"]),
        (&[4, 3], &[("location", "../w.bin")], &["outside"]),
        (&[4, 3], &[("location", ".")], &["outside"]),
        (&[4, 3], &[("location", "/etc/passwd")], &["outside"]),
        (&[4, 3], &[], &["outside"]),
    ] {
        folder.write("hurts.onnx", &model(shape, entries));
        refused(&folder, "info hurts.onnx", words);
    }
    // One megabyte that is used five hundred times.
    folder.write("w.bin", &vec![0; 1 << 20]);
    let mut many = Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y");
    for index in 0..500 {
        many = many.external(&format!("w{index}"), &[4, 1 << 16], &[("location", "w.bin")]);
    }
    folder.write("many.onnx", &many.node("Relu", &["x"], "y").bytes());
    refused(&folder, "info many.onnx", &["tensor", "268435456"]);
    #[cfg(unix)]
    {
        assert!(std::process::Command::new("mkfifo").arg(folder.path("pipe.bin")).status().unwrap().success());
        folder.write("pipe.onnx", &model(&[4, 3], &[("location", "pipe.bin")]));
        refused(&folder, "info pipe.onnx", &["not a regular file"]);
    }
}

#[test]
fn descriptions_that_hurt() {
    let folder = folder();
    for (text, words) in [
        ("[mlp]\ninputs = [4]\nwidths = [1000000000000]\noutputs = 2", &["width"][..]),
        ("[mlp]\ninputs = [4]\nwidths = [1000000, 1000000]\noutputs = 2", &["layer2"]),
        ("[mlp]\ninputs = [4]\nwidths = [8000, 8000, 8000, 8000, 8000, 8000]\noutputs = 2", &["--import-limit"]),
        ("[mlp]\ninputs = [4]\nwidths = [0]\noutputs = 2", &["width"]),
        ("[mlp]\ninputs = [1000000000, 1000000000, 1000000000]\noutputs = 2", &["inputs"]),
        ("[mlp]\ninputs = []\noutputs = 2", &["inputs"]),
        ("[two-layer]\ninputs = 1000000000000\nwidth = 5", &["inputs"]),
        ("[resnet]\ndepth = 6000000002\noutputs = 2", &["--import-limit"]),
        ("[resnet]\ndepth = 8\noutputs = 2\nwidth = 1000000", &["stem"]),
        (
            "[cnn]\ninputs = [2, 4, 4]\noutputs = 2\nlayers = [{ conv = { channels = 4, kernel = 1000000 } }]",
            &["layer1"],
        ),
        (
            "[cnn]\ninputs = [2, 4, 4]\noutputs = 2\nlayers = [{ conv = { channels = 4, kernel = 3, padding = 9000000000000000000 } }]",
            &["padding"],
        ),
        (
            "[cnn]\ninputs = [2, 4, 4]\noutputs = 2\nlayers = [{ conv = { channels = 1000000, kernel = 3, padding = 100000 } }]",
            &["layer1"],
        ),
        ("[cnn]\ninputs = [2, 4, 4]\noutputs = 2\nlayers = [{ max-pool = { size = 9 } }]", &["layer1"]),
    ] {
        folder.write("net.toml", text.as_bytes());
        refused(&folder, "kernel --arch net.toml --data x.npy --kernel trace -o k.npy", words);
    }
    folder.write("net.toml", format!("[mlp]\ninputs = [4]\noutputs = 2\n#{}", " ".repeat(2 << 20)).as_bytes());
    refused(&folder, "kernel --arch net.toml --data x.npy --kernel trace -o k.npy", &["net.toml", "bytes"]);
}

#[test]
fn data_that_hurts() {
    let folder = folder();
    let plain = Model::new().input("x", FLOAT, &["batch".into(), 4.into()]).output("y").weights("w", &[4, 4]);
    folder.write("plain.onnx", &plain.node("MatMul", &["x", "w"], "y").bytes());
    let npy = |header: &str| {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend_from_slice(&(header.len() as u16).to_le_bytes());
        bytes.extend_from_slice(header.as_bytes());
        bytes
    };
    folder.write("huge.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 4), }\n"));
    folder
        .write("over.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4), }\n"));
    folder.write("none.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }\n"));
    folder.write("thin.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (5, 0), }\n"));
    folder.write("endless.npy", &npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000, 0), }\n"));
    folder.write("idx", &[0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]);
    folder.write("wide.csv", &[b'0', b','].repeat(3 << 20));
    folder.write("quote.csv", &[b"a,b,c,d\n\"".to_vec(), vec![b'x'; 3 << 20]].concat());
    for name in ["huge.npy", "over.npy", "none.npy", "thin.npy", "endless.npy", "idx", "wide.csv", "quote.csv"] {
        survives(&folder, &format!("info {name}"));
        refused(&folder, &format!("predict --net plain.onnx --data {name} -o out.npy"), &["error: "]);
        refused(&folder, &format!("kernel --net plain.onnx --data {name} --kernel trace -o k.npy"), &["error: "]);
    }
}

/// Networks of every odd shape through everything that can be done with one.
#[test]
fn odd_networks_through_all_commands() {
    const ODD: [&str; 14] = [
        "no_parameters",
        "no_nodes",
        "only_constant",
        "scalar",
        "scalar_per_sample",
        "no_numbers",
        "no_inputs",
        "conv_nothing",
        "conv_no_channels",
        "conv_no_window",
        "long_name",
        "escapes",
        "unicode",
        "empty_name",
    ];
    let folder = folder();
    let targets = Array2::from_shape_fn((5, 4), |(i, j)| f64::from(u8::from(i % 4 == j)));
    folder.write_array("targets.npy", targets.view());
    folder.write_array("classes.npy", ndarray::array![0_i64, 1, 2, 3, 0].view());
    let all = networks().into_iter().filter(|(name, _)| ODD.contains(name));
    let short = chain(3, |model, from, to| model.node("Relu", &[from], to));
    for (name, model) in all.chain([("chain", short)]) {
        let data = if IMAGES.contains(&name) { "image.npy" } else { "x.npy" };
        folder.write("odd.onnx", &model.bytes());
        let net = format!("--net odd.onnx --data {data}");
        for kind in ["trace", "pseudo", "full", "logit(0)", "ck", "trace+ck", "nngp", "ntk-limit", "nngp-mc", "ntk-mc"]
        {
            survives(&folder, &format!("kernel {net} --kernel {kind} -o kernel.npy --force"));
        }
        survives(&folder, &format!("kernel {net} --kernel trace(sketch=sjlt:8) --as-features -o kernel.npy --force"));
        survives(&folder, &format!("kernel {net} --kernel trace --by-layer -o kernel.zarr --force"));
        survives(&folder, &format!("eigen exact {net} --kernel trace -k 2 -o functions --force"));
        survives(&folder, &format!("eigen lanczos {net} --kernel trace -k 2 --matrix-free -o functions --force"));
        survives(&folder, &format!("fit glm {net} --labels classes.npy --kernel trace -o machine --force"));
        for method in
            ["auto", "diag", "kron", "sketch", "eigen", "full", "last-layer-full", "last-layer-kron", "last-layer-diag"]
        {
            let line = format!("uncertainty --net odd.onnx --data {data} --labels classes.npy --test {data}");
            survives(&folder, &format!("{line} --method {method} -o posterior --force"));
        }
    }
}
