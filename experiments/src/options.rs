//! The options of a run, and which values it used.

use crate::Fallible;
use crate::experiment::{Experiment, Needs};
use crate::record::home;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

/// Options that every experiment has.
const COMMON: [&str; 4] = ["data-dir", "seed", "threads", "work"];

pub(crate) struct Options {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    /// Tiny sizes: whether the code runs, not what it finds.
    pub(crate) quick: bool,
    data: Option<PathBuf>,
    work: PathBuf,
    given: BTreeMap<String, String>,
    used: Mutex<BTreeMap<String, Value>>,
}

impl Options {
    /// Reads `--name VALUE` and `--quick`.
    pub(crate) fn parse(experiment: &Experiment, arguments: &[String]) -> Fallible<Self> {
        let (mut given, mut quick) = (BTreeMap::new(), false);
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let name = argument.strip_prefix("--").ok_or_else(|| format!("{argument} is not an option"))?;
            if name == "quick" {
                quick = true;
            } else if COMMON.contains(&name) || experiment.options.contains(&name) {
                let value = rest.next().ok_or_else(|| format!("{argument} needs a value"))?;
                given.insert(name.to_owned(), value.clone());
            } else {
                let all: Vec<String> =
                    COMMON.iter().chain(experiment.options).map(|name| format!("--{name}")).collect();
                return Err(format!(
                    "{} has no option {argument}; it has --quick, {}",
                    experiment.name,
                    all.join(", ")
                )
                .into());
            }
        }
        let number = |name: &str, default: usize| given.get(name).map_or(Ok(default), |text| parsed(name, text));
        Ok(Self {
            seed: number("seed", 0)? as u64,
            threads: number("threads", experiment.threads)?,
            quick,
            data: given.get("data-dir").map(PathBuf::from),
            work: given
                .get("work")
                .map_or_else(|| home().join("../target/experiments").join(experiment.name), PathBuf::from),
            given,
            used: Mutex::default(),
        })
    }

    /// A number: as given, or the usual one, or that of a quick run.
    pub(crate) fn number<T>(&self, name: &str, usual: T, quick: T) -> Fallible<T>
    where
        T: FromStr<Err: std::fmt::Display> + Copy + Into<Value>,
    {
        let value = match self.given.get(name) {
            Some(text) => parsed(name, text)?,
            None => {
                if self.quick {
                    quick
                } else {
                    usual
                }
            }
        };
        self.note(name, value.into());
        Ok(value)
    }

    /// Numbers, separated by commas.
    pub(crate) fn list(&self, name: &str, usual: &[usize], quick: &[usize]) -> Fallible<Vec<usize>> {
        let values = match self.given.get(name) {
            Some(text) => text.split(',').map(|part| parsed(name, part)).collect::<Fallible<_>>()?,
            None => if self.quick { quick } else { usual }.to_vec(),
        };
        self.note(name, values.clone().into());
        Ok(values)
    }

    /// Whether a part is wanted: `--only TEXT` wants those whose name contains the text.
    pub(crate) fn wants(&self, part: &str) -> bool {
        let Some(only) = self.given.get("only") else { return true };
        self.note("only", only.clone().into());
        part.contains(only.as_str())
    }

    /// A folder that the user has; it is no setting of the run.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.given.get(name).map(PathBuf::from)
    }

    /// The folder of `--data-dir`.
    pub(crate) fn data(&self) -> Fallible<&Path> {
        Ok(self.data.as_deref().ok_or("--data-dir DIR is missing")?)
    }

    /// The folder of a set: its own within that of `--data-dir`, or that folder itself.
    pub(crate) fn set(&self, set: Needs) -> Fallible<PathBuf> {
        let own = self.data()?.join(set.name());
        Ok(if own.is_dir() { own } else { self.data()?.to_owned() })
    }

    /// A folder of further data: in that of `--more-data`, or in that of `--data-dir`.
    pub(crate) fn more(&self, name: &str) -> Option<PathBuf> {
        let folders = [self.path("more-data"), self.data.clone()];
        folders.into_iter().flatten().map(|folder| folder.join(name)).find(|folder| folder.is_dir())
    }

    /// The folder for data and runs that are kept, so that an interrupted experiment goes on where it stopped: that of `--work`, or
    /// one in `target/experiments`.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// The Python of `--peers`, with other people's software to compare with.
    pub(crate) fn peers(&self) -> Option<&Path> {
        self.given.get("peers").map(Path::new)
    }

    /// What was asked for, with the values that were used.
    pub(crate) fn settings(&self) -> BTreeMap<String, Value> {
        self.used.lock().expect("nobody panics with the lock").clone()
    }

    fn note(&self, name: &str, value: Value) {
        self.used.lock().expect("nobody panics with the lock").insert(name.to_owned(), value);
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(name: &str, text: &str) -> Fallible<T> {
    text.parse().map_err(|error| format!("--{name} {text}: {error}").into())
}
