//! `cargo xtask memory`: whether `mercer kernel` keeps its promise of memory, near the smallest that it accepts.
//!
//! Every configuration is first refused, with one mebibyte. Then it runs with exactly what the refusal suggests, and with more. The
//! peak is that of the process, as the system counts it. Data and networks are made here and removed afterwards.

mod configurations;

use crate::build::{Profile, built};
use crate::{Outcome, option, root};
use configurations::{ALL, Configuration, make_inputs};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A peak may be so much larger than the promise.
const TOLERANCE: f64 = 1.02;

/// Multiples of the smallest memory that are tried too.
const MULTIPLES: [f64; 2] = [1.05, 1.5];

/// Suggestions that are followed before we give up.
const ROUNDS: usize = 8;

const MEBIBYTE: f64 = 1_048_576.0;

type Error = Box<dyn std::error::Error>;

/// Takes `--only TEXT` and `--binary PATH`, another build of the command.
pub(crate) fn table(arguments: &[String]) -> Outcome {
    let binary = match option(arguments, "--binary") {
        Some(path) => std::fs::canonicalize(path)?,
        None => built("mercer-cli", "mercer", Profile::Release)?,
    };
    let only = option(arguments, "--only").unwrap_or("");
    let folder = root().join("target/memory");
    std::fs::create_dir_all(&folder)?;
    make_inputs(&folder)?;
    let bench = Bench { binary, folder };
    println!("| kernel | rounds | least MiB | peak MiB | ratio | at 1.05 | at 1.5 |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
    let (mut good, mut worst) = (true, 0.0_f64);
    for configuration in ALL.iter().filter(|configuration| configuration.name.contains(only)) {
        let Smallest { rounds, least, peak } = bench.smallest(configuration)?;
        let mut ratios = vec![peak / least];
        for multiple in MULTIPLES {
            let promised = (least * multiple).floor();
            match bench.attempt(configuration, &format!("{promised}"))? {
                Attempt::Done { peak } => ratios.push(peak / promised),
                Attempt::Refused { suggestion } => {
                    println!("WRONG: {} refuses {multiple} times {least}: {suggestion}", configuration.name);
                    good = false;
                }
            }
        }
        let most = ratios.iter().fold(0.0_f64, |most, ratio| most.max(*ratio));
        let ratios: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        let (name, least, peak) = (configuration.name, least / MEBIBYTE, peak / MEBIBYTE);
        println!("| {name} | {rounds} | {least:.1} | {peak:.1} | {} |", ratios.join(" | "));
        worst = worst.max(most);
        good &= rounds == 1 && most <= TOLERANCE;
    }
    println!("\nthe largest ratio is {worst:.3}");
    if !good {
        println!("WRONG: more than {TOLERANCE} times the promise, or a first suggestion that does not do");
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(good)
}

/// Where runs happen.
struct Bench {
    binary: PathBuf,
    folder: PathBuf,
}

/// How a run ended.
enum Attempt {
    /// With the peak of the process, in bytes.
    Done { peak: f64 },
    /// With the smallest memory that would do.
    Refused { suggestion: String },
}

/// The smallest memory that a configuration accepted, in bytes.
struct Smallest {
    /// Suggestions that were followed until then.
    rounds: usize,
    least: f64,
    peak: f64,
}

impl Bench {
    /// Follows suggestions, as they are written, until one does.
    fn smallest(&self, configuration: &Configuration) -> Result<Smallest, Error> {
        let mut memory = "1MiB".to_owned();
        for rounds in 0..ROUNDS {
            match self.attempt(configuration, &memory)? {
                Attempt::Done { peak } => return Ok(Smallest { rounds, least: bytes(&memory)?, peak }),
                Attempt::Refused { suggestion } => memory = suggestion,
            }
        }
        Err(format!("{}: {ROUNDS} suggestions did not do", configuration.name).into())
    }

    fn attempt(&self, configuration: &Configuration, memory: &str) -> Result<Attempt, Error> {
        let output = self.folder.join(configuration.output);
        let mut command = Command::new(&self.binary);
        command
            .current_dir(&self.folder)
            .arg("kernel")
            .args(configuration.arguments.split_whitespace())
            .args(["--memory", memory, "--threads", configuration.threads, "--json", "--quiet", "--force", "-o"])
            .arg(&output);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut watched = 0.0_f64;
        // What is printed fits into a pipe, so that nobody waits for us.
        while child.try_wait()?.is_none() {
            watched = watched.max(peak_of(child.id()));
            std::thread::sleep(Duration::from_millis(2));
        }
        let ended = child.wait_with_output()?;
        if ended.status.success() {
            let report: serde_json::Value = serde_json::from_slice(&ended.stdout)?;
            let told = report["measurements"]["peak_bytes"].as_f64().ok_or("the report has no peak")?;
            return Ok(Attempt::Done { peak: told.max(watched) });
        }
        let text = String::from_utf8_lossy(&ended.stderr).into_owned() + &String::from_utf8_lossy(&ended.stdout);
        let before = text.split(", the smallest").next().filter(|before| before.len() < text.len());
        let suggestion = before.and_then(|before| before.rsplit("--memory ").next());
        match suggestion {
            Some(suggestion) => Ok(Attempt::Refused { suggestion: suggestion.to_owned() }),
            None => Err(format!("{}: {text}", configuration.name).into()),
        }
    }
}

/// The peak of a process so far; zero if it is over.
fn peak_of(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kibibytes.unwrap_or(0.0) * 1024.0
}

/// `12.34MiB` in bytes.
fn bytes(text: &str) -> Result<f64, Error> {
    let units = [("MiB", MEBIBYTE), ("GiB", 1024.0 * MEBIBYTE)];
    let found = units.iter().find_map(|(unit, size)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * size));
    found.ok_or_else(|| format!("{text} is no amount of memory").into())
}
