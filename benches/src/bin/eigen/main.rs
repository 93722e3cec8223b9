//! Experiments with eigenfunctions; `cargo xtask eigen` runs it. Prints tables and writes figures.

mod classic;
mod contrastive;
mod growth;
mod mnist;
mod moons;
mod ntk;
mod problem;
mod tools;

use std::path::PathBuf;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// What all experiments take.
struct Options {
    seed: u64,
    /// Where figures go.
    output: PathBuf,
    rest: Vec<String>,
}

impl Options {
    fn value(&self, flag: &str) -> Option<&str> {
        let at = self.rest.iter().position(|argument| argument == flag)?;
        self.rest.get(at + 1).map(String::as_str)
    }

    fn number<T: std::str::FromStr<Err: std::error::Error + 'static>>(
        &self,
        flag: &str,
        default: T,
    ) -> Result<T, Box<dyn std::error::Error>> {
        self.value(flag).map_or(Ok(default), |text| Ok(text.parse()?))
    }
}

const USAGE: &str = "\
eigen EXPERIMENT [--seed N] [--output DIR] [--threads N] …

  classic      two kernels on the line: learnt functions beside the exact ones
               [--samples N] [--batch N] [--steps N] [--only TEXT]
  growth       time against the number of samples [--sizes N,N] [--steps N]
  moons        two moons and circles through kernels of random networks [--samples N] [--networks S]
  ntk          the tangent kernel of a classifier of airplanes and automobiles
               --data-dir DIR [--epochs N] [--landmarks N] [--steps N] [--rate X] [--extra N]
  mnist        MNIST through the kernel of random CNNs with max-pools
               --data-dir DIR [--samples N] [--test N] [--networks S] [--outputs C] [--steps N] [--batch N] [--extra N]
               [--only classic] [--all N]
  contrastive  codes of several lengths from pairs of views
               --data-dir DIR [--samples N] [--test N] [--pairs N] [--steps N]";

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let mut options = Options { seed: 0, output: PathBuf::from("target/eigen"), rest: arguments.collect() };
    options.seed = options.number("--seed", 0)?;
    if let Some(folder) = options.value("--output") {
        options.output = PathBuf::from(folder);
    }
    std::fs::create_dir_all(&options.output)?;
    rayon::ThreadPoolBuilder::new().num_threads(options.number("--threads", 1)?).build_global()?;
    match command.as_deref() {
        Some("classic") => classic::tables(&options),
        Some("contrastive") => contrastive::curves(&options),
        Some("growth") => growth::table(&options),
        Some("mnist") => mnist::table(&options),
        Some("moons") => moons::projections(&options),
        Some("ntk") => ntk::clusters(&options),
        _ => Err(USAGE.into()),
    }
}
