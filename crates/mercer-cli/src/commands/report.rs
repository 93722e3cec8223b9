//! `mercer report`: one page about any number of results.

use crate::console::Console;
use crate::output::OutputFolder;
use mercer::Error;
use mercer::job::report::{Chosen, ReportFindings};
use mercer::job::{Job, Opened, Outcome, ReportJob};
use mercer::text::bytes;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  mercer report run why review sure -o report.html           a training run, an explanation, an audit, a posterior
  mercer report why -o why.html --samples wrong,17,42        the samples that are wrong, and two others
  mercer report run -o report.html --open                    look at it in the browser

The page holds everything it shows: it can be opened without a network, sent to others and printed. It has at most 2 MB,
for any number of samples. The same results give the same bytes.";

/// Sentences that are printed.
const PRINTED: usize = 5;

/// Make one page of HTML from the results of other commands
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArguments {
    /// Folders that commands wrote with -o; also .npy files and .zarr stores with their record
    #[arg(value_name = "RESULT", required = true, num_args = 1..)]
    runs: Vec<PathBuf>,

    #[command(flatten)]
    output: OutputFolder,

    /// Samples to show one by one: wrong, unfaithful, uncertain, random, or row numbers
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "wrong,unfaithful,uncertain,random")]
    samples: Vec<Chosen>,

    /// The title of the page [default: it names the network]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    #[command(flatten)]
    open: OpenOption,
}

/// Whether to show a page.
#[derive(Clone, Copy, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OpenOption {
    /// Open the page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

impl ReportArguments {
    pub(crate) fn run(&self, console: &Console) -> Result<(), Error> {
        let job = ReportJob { runs: self.runs.clone(), samples: self.samples.clone(), title: self.title.clone() };
        let outcome = job.open(&self.output.destination(), console.opening())?.run(console.context())?;
        console.result(&outcome, || text(&outcome))?;
        if self.open.open { show(&self.output.out) } else { Ok(()) }
    }
}

fn text(outcome: &Outcome<ReportFindings>) -> String {
    let found = &outcome.findings;
    let more = found.sentences.len().saturating_sub(PRINTED);
    let rest = if more > 0 { format!("… and {more} more.\n") } else { String::new() };
    format!("{}{rest}\nThe report is {} ({})\n", said(found), found.report, bytes(found.bytes))
}

/// The most important sentences.
pub(crate) fn said(found: &ReportFindings) -> String {
    found.sentences.iter().take(PRINTED).map(|own| format!("{}\n", own.sentence.text)).collect()
}

/// Opens a page with the program that the system has for it.
pub(crate) fn show(page: &Path) -> Result<(), Error> {
    let (program, before): (&str, &[&str]) = match std::env::consts::OS {
        "macos" => ("open", &[]),
        "windows" => ("cmd", &["/C", "start", ""]),
        _ => ("xdg-open", &[]),
    };
    let failed = |why: String| Error::new(format!("--open: {why}")).hint(format!("open {} yourself", page.display()));
    let status = std::process::Command::new(program).args(before).arg(page).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(failed(format!("{program} ended with {status}"))),
        Err(error) => Err(failed(format!("{program}: {error}"))),
    }
}
