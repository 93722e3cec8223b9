//! `cargo xtask scale`: how the cost of kernels grows with the number of samples, and whether memory is kept.
//!
//! The ResNet-20 of the golden networks on CIFAR-10's test images: its pseudo-NTK into a store (work grows as N²), and
//! sparse Johnson–Lindenstrauss features of its trace-NTK (work grows as N). Results are removed afterwards.

use crate::cifar10::{PREPROCESSING, environment, fetch};
use crate::command::{Mercer, Report, report};
use crate::python::run;
use crate::{Outcome, option, root};
use std::path::Path;
use std::time::Instant;

const SIZES: [usize; 4] = [1250, 2500, 5000, 10_000];

/// What the runs may use.
const MEMORY: (&str, f64) = ("8GiB", 8.0 * 1_073_741_824.0);

/// A run: its name, its arguments, the end of its output's name, and the seconds that 10,000 images may take.
const RUNS: [(&str, &[&str], &str, f64); 2] = [
    ("pseudo-NTK, exact", &["--kernel=pseudo"], "pseudo.zarr", 600.0),
    ("trace-NTK, features sjlt:4096", &["--kernel=trace(sketch=sjlt:4096)", "--as-features"], "features.zarr", 360.0),
];

/// Takes `--sizes N,N` and `--threads N`.
pub(crate) fn run_all(arguments: &[String]) -> Outcome {
    let data = root().join("target/cifar10");
    fetch(&data)?;
    let folder = root().join("target/scale");
    std::fs::create_dir_all(&folder)?;
    let mercer = Mercer::build()?;
    let sizes: Vec<usize> = match option(arguments, "--sizes") {
        Some(list) => list.split(',').map(str::parse).collect::<Result<_, _>>()?,
        None => SIZES.to_vec(),
    };
    let threads = option(arguments, "--threads").unwrap_or("2");
    let mut good = true;
    for (name, kind, output, limit) in RUNS {
        println!("{name}, {threads} threads, --memory {}", MEMORY.0);
        println!("| images | seconds of work | with reading and writing | GF/s | peak GiB | growth |");
        println!("|---:|---:|---:|---:|---:|---:|");
        let mut before: Option<f64> = None;
        for &size in &sizes {
            let images = folder.join(format!("images-{size}.npy"));
            cut(&data, &images, size)?;
            let output = folder.join(output);
            let start = Instant::now();
            let report = kernel(&mercer, &images, kind, &output, threads)?;
            let wall = start.elapsed().as_secs_f64();
            let (seconds, peak) = (report.number("seconds")?, report.number("peak_bytes")?);
            let growth = before.map_or_else(String::new, |before| format!("{:.2}", seconds / before));
            let (rate, gib) = (report.number("gflop_per_second")?, peak / 1_073_741_824.0);
            println!("| {size} | {seconds:.1} | {wall:.1} | {rate:.0} | {gib:.2} | {growth} |");
            before = Some(seconds);
            good &= peak <= 1.05 * MEMORY.1 && (size > 10_000 || wall <= limit);
            std::fs::remove_dir_all(&output)?;
            std::fs::remove_file(&images)?;
        }
        println!();
    }
    if !good {
        println!("WRONG: too slow, or more than 1.05 times the memory");
    }
    Ok(good)
}

/// The first images.
fn cut(data: &Path, to: &Path, size: usize) -> Result<(), Box<dyn std::error::Error>> {
    let script = "import sys, numpy; numpy.save(sys.argv[2], numpy.load(sys.argv[1])[:int(sys.argv[3])])";
    let python = environment()?;
    let arguments = [Path::new("-c"), Path::new(script), &data.join("images.npy"), to];
    run(python.command().args(arguments).arg(size.to_string()))
}

fn kernel(
    mercer: &Mercer,
    images: &Path,
    kind: &[&str],
    output: &Path,
    threads: &str,
) -> Result<Report, Box<dyn std::error::Error>> {
    let mut command = mercer.command("kernel");
    command.args(["--net=tests/golden/nets/cifar10_resnet20.onnx", "--force"]).args(PREPROCESSING).args(kind);
    command.args(["--memory", MEMORY.0, "--threads", threads]);
    report(command.arg("--data").arg(images).arg("-o").arg(output))
}
