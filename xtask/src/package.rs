//! The Python package: a staged one for tests, and the wheel.

use crate::build::target;
use crate::python::{Environment, run};
use crate::{Outcome, root};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

/// The largest wheel, in megabytes, and the longest import, in seconds.
const LARGEST: f64 = 25.0;
const LONGEST: f64 = 0.3;

/// Builds the extension module with the development profile and puts the package beside it: a folder for `PYTHONPATH`.
pub(crate) fn staged() -> Result<PathBuf, Error> {
    run(Command::new(env!("CARGO")).current_dir(root()).args(["build", "--quiet", "--package", "mercer-py"]))?;
    let folder = target()?.join("python");
    let package = folder.join("mercer");
    if package.exists() {
        std::fs::remove_dir_all(&package)?;
    }
    copy_sources(&root().join("python/mercer"), &package)?;
    let built = format!("{}_mercer{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let ending = if cfg!(windows) { "pyd" } else { "abi3.so" };
    std::fs::copy(target()?.join("debug").join(built), package.join(format!("_mercer.{ending}")))?;
    Ok(folder)
}

/// Copies a package, without what interpreters leave in it.
fn copy_sources(from: &Path, to: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(to)?;
    for file in std::fs::read_dir(from)? {
        let path = file?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() && !path.ends_with("__pycache__") {
            copy_sources(&path, &target)?;
        } else if path.extension().is_some_and(|ending| ["py", "pyi", "typed"].iter().any(|own| ending == *own)) {
            std::fs::copy(&path, target)?;
        }
    }
    Ok(())
}

/// `cargo xtask wheel`: builds the wheel, and tries it in a fresh environment of every CPython that is found.
pub(crate) fn wheel(arguments: &[String]) -> Outcome {
    let folder = target()?.join("wheels");
    let maturin = Environment::new("maturin", &["maturin>=1.9,<2"])?;
    let start = Instant::now();
    let mut build = maturin.command();
    build.current_dir(root()).args(["-m", "maturin", "build", "--quiet", "--out"]).arg(&folder);
    if !arguments.iter().any(|argument| argument == "--light") {
        build.args(["--profile", "dist"]);
    }
    run(&mut build)?;
    let wheel = newest(&folder)?;
    let size = std::fs::metadata(&wheel)?.len() as f64 / 1e6;
    println!("{}: {size:.1} MB, built in {:.0} s", file_name(&wheel), start.elapsed().as_secs_f64());
    let mut fine = size < LARGEST;
    println!("\n| interpreter | `mercer --version` | import in s | tests |\n|---|---|---:|---|");
    for interpreter in interpreters() {
        fine &= tried(&interpreter, &wheel)?;
    }
    Ok(fine)
}

/// Installs the wheel with NumPy alone into a fresh environment, and prints a row.
fn tried(interpreter: &Path, wheel: &Path) -> Outcome {
    let version = output(Command::new(interpreter).arg("--version"))?;
    let folder = target()?.join("wheels").join(version.replace(' ', "-"));
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    run(Command::new(interpreter).args(["-m", "venv"]).arg(&folder))?;
    let python = folder.join("bin/python");
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(&python).args(pip).arg("--no-deps").arg(wheel))?;
    // Before NumPy is there.
    let command = output(Command::new(folder.join("bin/mercer")).arg("--version"))?;
    run(Command::new(&python).args(pip).arg("numpy"))?;
    let timed =
        "import time; start = time.perf_counter(); import mercer; mercer.Network; print(time.perf_counter() - start)";
    output(Command::new(&python).args(["-c", timed]))?;
    let seconds: f64 = output(Command::new(&python).args(["-c", timed]))?.parse()?;
    let smoke = root().join("tests/python/smoke.py");
    let found = output(Command::new(&python).arg(smoke))?;
    println!("| {version} | {command} | {seconds:.3} | {found} |");
    Ok(seconds < LONGEST)
}

/// The interpreters of CPython from 3.10 on: on the path, and those of pyenv.
fn interpreters() -> Vec<PathBuf> {
    let names = (10..20).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let mut pyenv: Vec<PathBuf> = std::fs::read_dir(home.join(".pyenv/versions"))
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin/python")).collect())
        .unwrap_or_default();
    pyenv.sort();
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for candidate in pyenv.into_iter().chain(names) {
        let ask = "import sys; print(sys.implementation.name, *sys.version_info[:2])";
        let Ok(answer) = output(Command::new(&candidate).args(["-c", ask])) else { continue };
        let words: Vec<&str> = answer.split(' ').collect();
        let ["cpython", "3", minor] = words[..] else { continue };
        let new = !found.iter().any(|(known, _)| *known == answer);
        if new && minor.parse::<u32>().is_ok_and(|minor| minor >= 10) {
            found.push((answer.clone(), candidate));
        }
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// What a command prints; an error if it fails.
fn output(command: &mut Command) -> Result<String, Error> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The wheel that was written last.
fn newest(folder: &Path) -> Result<PathBuf, Error> {
    let wheels = std::fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let wheels = wheels.filter(|path| path.extension().is_some_and(|ending| ending == "whl"));
    let newest = wheels.max_by_key(|path| std::fs::metadata(path).and_then(|data| data.modified()).ok());
    Ok(newest.ok_or("no wheel was built")?)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
