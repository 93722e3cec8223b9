//! Reports: one page about any number of results.
//!
//! The page is made from what the runs wrote: their records, their findings and their files, each checked against the
//! digest in its manifest. Every job has a section without more (sentences, figures, tables, settings, record); a few have
//! figures of their own (`figures.rs`) or a browser of samples (`samples.rs`). Data files are read for pictures alone, and
//! only if they still hold the numbers that the run saw.
//!
//! ```
//! use mercer::job::ReportJob;
//!
//! let job = ReportJob::new(["run".into(), "why".into()]);
//! let read: ReportJob = serde_json::from_str(&serde_json::to_string(&job)?)?;
//! assert_eq!(read, job);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod cards;
mod data;
mod figures;
mod run;
mod samples;
mod section;
mod words;

pub use words::Sentence;
pub(crate) use words::sentences;

use super::{Artefact, Destination, Job, Opened, Outcome, Stopwatch};
use crate::Error;
use crate::spec::Opening;
use crate::text::count;
use data::Library;
use mercer_data::{DataError, read_regular, write_atomic};
use mercer_report::page::{Finding, Page};
use mercer_run::Context;
use run::Run;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Makes a report of results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportJob {
    /// Folders that jobs wrote, or arrays and stores with a record.
    pub runs: Vec<PathBuf>,
    /// Which single samples the page shows.
    #[serde(default = "usual_samples")]
    pub samples: Vec<Chosen>,
    /// The title of the page; by default it names the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Which single samples a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chosen {
    /// Those that the network gets wrong; in an audit, the most suspicious ones.
    Wrong,
    /// Those on which network and surrogate differ most.
    Unfaithful,
    /// Those of which the network is least sure.
    Uncertain,
    /// Any.
    Random,
    /// The sample of this row.
    Row(usize),
}

fn usual_samples() -> Vec<Chosen> {
    vec![Chosen::Wrong, Chosen::Unfaithful, Chosen::Uncertain, Chosen::Random]
}

impl FromStr for Chosen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "wrong" => Self::Wrong,
            "unfaithful" => Self::Unfaithful,
            "uncertain" => Self::Uncertain,
            "random" => Self::Random,
            row => Self::Row(row.parse().map_err(|_| {
                format!("{row:?} is neither wrong, unfaithful, uncertain, random nor the number of a row")
            })?),
        })
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong => formatter.write_str("wrong"),
            Self::Unfaithful => formatter.write_str("unfaithful"),
            Self::Uncertain => formatter.write_str("uncertain"),
            Self::Random => formatter.write_str("random"),
            Self::Row(row) => row.fmt(formatter),
        }
    }
}

/// The longest file that ‹force› is asked to replace.
const LONGEST: u64 = 64 << 20;

/// The results that a report is about.
#[derive(Clone, Debug, Serialize)]
pub struct ReportPlan {
    /// The results.
    pub runs: Vec<RunFindings>,
}

/// The findings of a report.
#[derive(Clone, Debug, Serialize)]
pub struct ReportFindings {
    /// The page.
    pub report: String,
    /// Its length.
    pub bytes: usize,
    /// The results that it is about.
    pub runs: Vec<RunFindings>,
    /// What it says first, the most important first.
    pub sentences: Vec<ReportSentence>,
}

/// A result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunFindings {
    /// The job that wrote it.
    pub job: String,
    /// The folder or file.
    pub place: String,
}

/// A sentence of a report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportSentence {
    /// The job whose result it is about.
    pub job: String,
    /// The sentence.
    #[serde(flatten)]
    pub sentence: Sentence,
    /// The identifier of its figure, or of the section of its result.
    pub link: String,
}

impl ReportJob {
    /// A report of these results, with the usual samples.
    pub fn new(runs: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { runs: runs.into_iter().collect(), samples: usual_samples(), title: None }
    }
}

/// A report with everything opened.
#[derive(Debug)]
pub struct OpenedReport {
    job: ReportJob,
    runs: Vec<Run>,
    plan: ReportPlan,
    destination: Destination,
    watch: Stopwatch,
}

impl Job for ReportJob {
    const NAME: &'static str = "report";

    type Opened = OpenedReport;

    fn open(&self, destination: &Destination, _: Opening<'_>) -> Result<OpenedReport, Error> {
        let watch = Stopwatch::start();
        if self.runs.is_empty() {
            return Err(Error::new("there is nothing to report on").hint("name folders that commands wrote"));
        }
        let path = destination.path.as_ref().ok_or_else(|| Error::new("‹out›: where?").hint("‹out› report.html"))?;
        if path.is_dir() {
            return Err(Error::new(format!("‹out› {}: this is a folder", path.display())).hint("name a file in it"));
        }
        if !destination.force && path.symlink_metadata().is_ok() {
            return Err(DataError::Exists { place: path.display().to_string() }.into());
        }
        // ‹force› replaces a page, not any file.
        if path.symlink_metadata().is_ok() {
            let failed = |error: std::io::Error| crate::error::cannot_open(path.display(), &error);
            if !Page::is_ours(&read_regular(path, LONGEST).map_err(failed)?) {
                return Err(DataError::Foreign { place: path.display().to_string() }.into());
            }
        }
        destination.check_parent()?;
        let runs = self.runs.iter().map(|path| Run::open(path)).collect::<Result<Vec<_>, Error>>()?;
        let found = runs.iter().map(|run| RunFindings { job: run.job().to_owned(), place: run.place.clone() });
        let plan = ReportPlan { runs: found.collect() };
        Ok(OpenedReport { job: self.clone(), runs, plan, destination: destination.clone(), watch })
    }
}

impl Opened for OpenedReport {
    type Plan = ReportPlan;
    type Findings = ReportFindings;

    fn plan(&self) -> &ReportPlan {
        &self.plan
    }

    fn run(self, context: &Context) -> Result<Outcome<ReportFindings>, Error> {
        let phase = context.phase("page");
        let said = said(&self.runs);
        let html = self.page(&said, context)?.to_html();
        drop(phase);
        let path = self.destination.path.clone().unwrap_or_default();
        write_atomic(&path, self.destination.existing(), |writer| writer.write_all(html.as_bytes()))?;
        let place = path.display().to_string();
        let artefact = Artefact::file("report", place.clone());
        let findings = ReportFindings { report: place, bytes: html.len(), runs: self.plan.runs, sentences: said };
        Ok(self.watch.outcome(findings, vec![artefact], context))
    }
}

impl OpenedReport {
    fn page(&self, said: &[ReportSentence], context: &Context) -> Result<Page, Error> {
        let mut page = Page::new(self.job.title.clone().unwrap_or_else(|| title(&self.runs)));
        page.about = format!("A report on {}.", count(self.runs.len(), "result"));
        page.findings = said
            .iter()
            .map(|own| Finding { text: own.sentence.text.clone(), from: own.job.clone(), link: Some(own.link.clone()) })
            .collect();
        for (at, run) in self.runs.iter().enumerate() {
            if context.cancelled() {
                return Err(Error::interrupted("interrupted"));
            }
            run.check()?;
            page.sections.push(section::section(run, at, context)?);
            context.report(at + 1, self.runs.len(), "results");
        }
        let library = Library::new(context);
        page.cards = cards::cards(&self.runs, &library, context);
        page.browsers = samples::browsers(&self.runs, &self.job.samples, &library, context)?;
        page.foot = format!(
            "Made by Mercer {}. This page holds everything it shows and loads nothing. A sentence is as good as the run \
             behind it: its record says on which data.",
            env!("CARGO_PKG_VERSION")
        );
        Ok(page)
    }
}

/// All sentences, the most important first. A job that has spoken already lets others speak before it speaks again.
fn said(runs: &[Run]) -> Vec<ReportSentence> {
    const AGAIN: f64 = 0.12;
    let mut all = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for (turn, sentence) in sentences(run.job(), &run.result).into_iter().enumerate() {
            let drawn = sentence.figure.filter(|file| run.has(file) || *file == "course.svg");
            let link = drawn.map_or_else(|| format!("s{at}"), |file| section::figure_id(at, file));
            let weight = sentence.weight - AGAIN * turn as f64;
            all.push((weight, ReportSentence { job: run.job().to_owned(), sentence, link }));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, sentence)| sentence).collect()
}

/// What the results have in common: the network.
fn title(runs: &[Run]) -> String {
    let net = runs.iter().find_map(|run| match run.job() {
        "train" => Some(run.path.join("model.onnx").display().to_string()),
        _ => run.written.job.pointer("/net").and_then(|net| net.as_str()).map(str::to_owned),
    });
    match net {
        Some(net) => format!("What {net} is"),
        None => "Report".to_owned(),
    }
}
