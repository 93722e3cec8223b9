//! Experiments with eigenfunctions; `cargo xtask eigen` runs it. Prints tables and writes figures.

mod classic;
mod problem;

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

const USAGE: &str = "eigen classic|growth [--seed N] [--output DIR]";

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let mut options = Options { seed: 0, output: PathBuf::from("target/eigen"), rest: arguments.collect() };
    options.seed = options.number("--seed", 0)?;
    if let Some(folder) = options.value("--output") {
        options.output = PathBuf::from(folder);
    }
    std::fs::create_dir_all(&options.output)?;
    match command.as_deref() {
        Some("classic") => classic::tables(&options),
        _ => Err(USAGE.into()),
    }
}
