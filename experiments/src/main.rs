//! Experiments of the papers that the methods come from, and some of our own; `cargo xtask reproduce` runs it.

mod eigen;
mod experiment;
mod explain;
mod images;
mod inside;
mod kernels;
mod limits;
mod machines;
mod matrices;
mod options;
mod peers;
mod record;
mod render;
mod report;
mod work;

use experiment::{ALL, Needs};
use mercer::run::Context;
use options::Options;
use report::Report;
use std::process::ExitCode;
use std::time::Instant;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Fallible<T> = Result<T, Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(arguments: &[String]) -> Fallible<bool> {
    match arguments {
        [] => list(),
        [flag] if flag == "--render" => std::fs::write(record::docs().join("experiments.md"), render::page()?)?,
        [flag, name] if flag == "--needs" => {
            experiment::named(name)?.needs.iter().for_each(|needs| println!("{}", needs.name()))
        }
        [name, rest @ ..] => return run(name, rest),
    }
    Ok(true)
}

fn list() {
    for experiment in ALL {
        let needs: String = experiment
            .needs
            .iter()
            .map(|needs| match needs {
                Needs::Folder(what) => format!("; needs --data-dir DIR with {what}"),
                set => format!("; needs {}", set.name()),
            })
            .collect();
        println!("{:<20} {} (about {} s{needs})", experiment.name, experiment.title, experiment.cost);
        let options: Vec<String> = experiment.options.iter().map(|name| format!("[--{name} …]")).collect();
        println!("{:<20} [--quick] [--seed N] [--threads N] [--work DIR] {}", "", options.join(" "));
    }
}

/// Runs an experiment and records it, unless it is a quick run; says whether its claim holds.
fn run(name: &str, arguments: &[String]) -> Fallible<bool> {
    let experiment = experiment::named(name)?;
    let options = Options::parse(experiment, arguments)?;
    let start = Instant::now();
    let report = on_threads(experiment, &options)?;
    let seconds = start.elapsed().as_secs_f64() + report.earlier;
    let holds = report.holds;
    if let Some(holds) = holds {
        println!("{}", if holds { "the claim holds" } else { "the claim does NOT hold" });
    }
    if options.quick {
        println!("ran in {seconds:.1} s; quick runs are not recorded");
        return Ok(true);
    }
    let remarks = record::write(experiment, &options, report, seconds)?;
    println!(
        "recorded in experiments/results/{name}.json after {seconds:.0} s; `cargo xtask reproduce --render` writes the page"
    );
    if remarks {
        println!("its notes were kept: look whether they are still true");
    }
    Ok(holds != Some(false))
}

fn on_threads(experiment: &experiment::Experiment, options: &Options) -> Fallible<Report> {
    let context = Context::new();
    let context = if options.threads == 0 { context } else { context.with_threads(options.threads)? };
    context.install(|| (experiment.run)(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that need nothing from outside, in tiny sizes: they run, use the options that they say they have, and report something.
    #[test]
    fn every_experiment_runs() {
        for experiment in ALL.into_iter().filter(|experiment| experiment.needs.is_empty()) {
            let options = Options::parse(experiment, &["--quick".to_owned()]).unwrap();
            let report =
                on_threads(experiment, &options).unwrap_or_else(|error| panic!("{}: {error}", experiment.name));
            assert!(report.tables.iter().all(|table| !table.rows.is_empty()), "{}", experiment.name);
            assert!(!report.tables.is_empty(), "{}", experiment.name);
            for name in options.settings().keys() {
                assert!(experiment.options.contains(&name.as_str()), "{} has no option {name}", experiment.name);
            }
        }
    }

    #[test]
    fn unknown_options_are_refused() {
        let refused = Options::parse(ALL[0], &["--step".to_owned(), "3".to_owned()]).err().unwrap().to_string();
        assert!(refused.contains("--step") && refused.contains("--steps"), "{refused}");
    }
}
