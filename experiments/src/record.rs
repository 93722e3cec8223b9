//! Recorded runs: `results/NAME.json`.

use crate::Fallible;
use crate::experiment::{ALL, Experiment};
use crate::options::Options;
use crate::report::{Report, Table};
use mercer::data::Existing;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// All recorded runs of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) experiment: String,
    /// One for each seed and settings.
    pub(crate) runs: Vec<Run>,
    /// Remarks that somebody wrote. They stay when a run is recorded anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) date: String,
    pub(crate) machine: Machine,
    /// Of the whole run, where that was recorded.
    pub(crate) seconds: Option<f64>,
    /// None where a table has runs with several seeds.
    pub(crate) seed: Option<u64>,
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) tables: Vec<Table>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) figures: Vec<FigureFile>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

/// Where it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
}

/// A figure in `docs`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct FigureFile {
    pub(crate) file: String,
    pub(crate) caption: String,
}

impl Machine {
    fn this() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let cpu = cpu.map_or("an unknown processor", |(_, name)| name.trim()).to_owned();
        Self { cpu, cores: std::thread::available_parallelism().map_or(1, usize::from) }
    }
}

/// The folder of this package.
pub(crate) fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the page and its figures.
pub(crate) fn docs() -> PathBuf {
    home().join("../docs")
}

fn path(experiment: &Experiment) -> PathBuf {
    home().join("results").join(format!("{}.json", experiment.name))
}

/// What was recorded of an experiment; nothing if nothing was.
pub(crate) fn read(experiment: &Experiment) -> Fallible<Option<Record>> {
    let path = path(experiment);
    if !path.exists() {
        return Ok(None);
    }
    let record: Record = serde_json::from_str(&std::fs::read_to_string(&path)?)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    if record.experiment != experiment.name {
        return Err(format!("{} is of {}", path.display(), record.experiment).into());
    }
    Ok(Some(record))
}

/// All records, in the order of the page.
pub(crate) fn all() -> Fallible<Vec<(&'static Experiment, Option<Record>)>> {
    ALL.into_iter().map(|experiment| Ok((experiment, read(experiment)?))).collect()
}

/// Writes what was found, and its figures; the run of the same seed and settings is replaced. Says whether there are remarks, which
/// may no longer be true.
pub(crate) fn write(experiment: &Experiment, options: &Options, report: Report, seconds: f64) -> Fallible<bool> {
    let record = read(experiment)?;
    let mut record = record.unwrap_or_else(|| Record {
        experiment: experiment.name.to_owned(),
        runs: Vec::new(),
        notes: Vec::new(),
    });
    let mut figures = Vec::new();
    for drawing in report.figures {
        drawing.figure.write(&docs().join(drawing.file), Existing::Replace)?;
        figures.push(FigureFile { file: drawing.file.to_owned(), caption: drawing.caption.to_owned() });
    }
    let run = Run {
        date: today(),
        machine: Machine::this(),
        seconds: Some((seconds * 10.0).round() / 10.0),
        seed: Some(options.seed),
        settings: options.settings(),
        tables: report.tables,
        figures,
        notes: report.notes,
    };
    match record.runs.iter_mut().find(|old| old.seed == run.seed && old.settings == run.settings) {
        Some(old) => *old = run,
        None => record.runs.push(run),
    }
    std::fs::write(path(experiment), serde_json::to_string_pretty(&record)? + "\n")?;
    Ok(!record.notes.is_empty())
}

/// The date, in UTC.
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    (year, month as u64 + 1, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(59), (1970, 3, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_773), (2026, 11, 16));
    }

    #[test]
    fn every_result_belongs_to_an_experiment_and_has_whole_rows() {
        let files = std::fs::read_dir(home().join("results")).unwrap().count();
        let records: Vec<_> =
            all().unwrap().into_iter().filter_map(|(experiment, record)| Some((experiment, record?))).collect();
        assert_eq!(files, records.len(), "a file of no experiment");
        for (experiment, record) in records {
            for table in record.runs.iter().flat_map(|run| &run.tables) {
                let whole = table.rows.iter().all(|row| row.len() == table.columns.len());
                assert!(whole, "{}: {}", experiment.name, table.caption);
            }
            let written = serde_json::to_string_pretty(&record).unwrap() + "\n";
            assert_eq!(written, std::fs::read_to_string(path(experiment)).unwrap(), "{}", experiment.name);
        }
    }
}
