//! What a folder of results holds: eigenfunctions, a machine, a posterior, a trained network.

use super::store::plain;
use crate::console::Console;
use crate::failure::{Failure, cannot_open};
use crate::format::{bytes, count, shape, shortened};
use mercer::data::folder::{Folder, MANIFEST};
use mercer::data::{RECORD, Source};
use mercer::spectral::Description;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::Path;

/// Lists longer than this are cut.
const MOST_ROWS: usize = 40;

/// A file that describes a folder is small.
const LONGEST: u64 = 64 << 20;

/// All that `--json` shows of a folder.
#[derive(Debug, Serialize)]
struct FolderReport {
    kind: String,
    path: String,
    /// What the folder says about itself.
    description: Value,
    /// Of eigenfunctions.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<f64>>,
    files: Vec<FileReport>,
    #[serde(skip)]
    facts: Vec<(&'static str, String)>,
}

#[derive(Debug, Serialize)]
struct FileReport {
    name: String,
    bytes: u64,
    /// Of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<Vec<usize>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<String>,
}

/// Describes a folder, from what is written in it.
pub(super) fn show(path: &Path, console: &Console) -> Result<(), Failure> {
    let report = match path.join(MANIFEST).is_file() {
        true => saved(path)?,
        false => written(path)?,
    };
    console.result(&report, || report.text(console.verbose))
}

/// Something that was saved. All of it is read and compared with its digests.
fn saved(path: &Path) -> Result<FolderReport, Failure> {
    let folder = Folder::open(path, None)?;
    if let Some(error) = folder.verify().into_iter().next() {
        return Err(error.into());
    }
    if folder.kind() == mercer::spectral::KIND.name {
        return eigenfunctions(path, &folder);
    }
    let description: Value = folder.content()?;
    let mut facts = Vec::new();
    facts.extend(description["kernel"].get("recipe").map(|value| ("kernel", recipe(value))));
    let steps: Vec<Value> = description["samples"]["inputs"].as_array().into_iter().flatten().cloned().collect();
    let steps: Vec<&Value> = steps.iter().map(|input| &input["preprocess"]).collect();
    if !steps.is_empty() {
        facts.push(("preprocessing", serde_json::to_string(&steps).unwrap_or_default()));
    }
    facts.push(("written by", format!("Mercer {}", folder.written_by())));
    Ok(FolderReport {
        kind: folder.kind().to_owned(),
        path: path.display().to_string(),
        description,
        values: None,
        files: parts(path, &folder)?,
        facts,
    })
}

/// The objects of something that was saved, by their names, and the files beside them.
fn parts(path: &Path, folder: &Folder) -> Result<Vec<FileReport>, Failure> {
    let mut found = Vec::new();
    for (name, entry) in folder.object_entries() {
        let array = folder.array(name).ok();
        let precision = array.as_ref().map(|array| array.dtype().to_string());
        let shape = array.map(|array| array.shape().to_vec());
        found.push(FileReport { name: name.to_owned(), bytes: entry.bytes, shape, precision });
    }
    found.extend(files(path)?.into_iter().filter(|file| !file.name.starts_with("objects/")));
    Ok(found)
}

fn eigenfunctions(path: &Path, folder: &Folder) -> Result<FolderReport, Failure> {
    let description: Description = folder.content()?;
    let values = folder.array("values")?.read::<f64>()?;
    let note = |name: &str| description.notes.get(name).map(plain);
    let data = description.notes.get("data");
    let of_data = |name: &str| data.and_then(|data| data.get(name)).map(plain);
    let inputs: Vec<String> = description.inputs.iter().map(|input| shape(input)).collect();
    let mut facts = vec![
        ("method", note("method").unwrap_or_else(|| "unknown".to_owned())),
        ("functions", description.components.to_string()),
        ("precision", description.precision.clone()),
        ("samples", inputs.join(", ")),
    ];
    if description.per_sample > 1 {
        facts.push(("outputs per sample", description.per_sample.to_string()));
    }
    facts.extend(of_data("place").map(|place| ("found from", place)));
    facts.extend(of_data("samples").map(|samples| ("number of samples", samples)));
    facts.extend(of_data("fingerprint").map(|print| ("data fingerprint", print)));
    facts.extend(note("preprocess").filter(|steps| steps != "[[]]").map(|steps| ("preprocessing", steps)));
    let kernel = description.kernel.as_ref().and_then(|kernel| kernel.get("recipe")).map(recipe);
    facts.extend(kernel.map(|kernel| ("kernel", kernel)));
    facts.extend(description.basis.get("kernel").map(|identity| ("kernel identity", plain(identity))));
    let basis = description.basis["type"].as_str().unwrap_or("unknown");
    facts.push(("combinations of", format!("{} {basis}", description.functions)));
    facts.extend(description.repairs.sentences().into_iter().map(|sentence| ("repair", sentence)));
    facts.push(("written by", format!("Mercer {}", folder.written_by())));
    let described = serde_json::to_value(&description).unwrap_or_default();
    Ok(FolderReport {
        kind: "eigenfunctions".to_owned(),
        path: path.display().to_string(),
        description: described,
        values: Some(values.iter().copied().collect()),
        files: parts(path, folder)?,
        facts,
    })
}

/// The results of a command, which `result.json` tells of.
fn written(path: &Path) -> Result<FolderReport, Failure> {
    if !path.join(RECORD).is_file() {
        return Err(Failure::new(format!("{}: this folder holds no results", path.display()))
            .hint("folder.json or result.json would say what it is"));
    }
    let description = read_json(&path.join(RECORD))?;
    let kind = description["kind"].as_str().unwrap_or("results").to_owned();
    let (path_shown, facts) = (path.display().to_string(), Vec::new());
    Ok(FolderReport { kind, path: path_shown, description, values: None, files: files(path)?, facts })
}

fn read_json(path: &Path) -> Result<Value, Failure> {
    let failed = |error: std::io::Error| cannot_open(path.display(), &error);
    let text = mercer::data::read_regular(path, LONGEST).map_err(failed)?;
    serde_json::from_slice(&text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}

/// A kernel in a line: the formula, or its kind with what is not the default.
fn recipe(value: &Value) -> String {
    match value.get("classic").and_then(Value::as_str) {
        Some(formula) => formula.to_owned(),
        None => value.to_string(),
    }
}

/// The files of a folder and of its own folders.
fn files(path: &Path) -> Result<Vec<FileReport>, Failure> {
    let mut found = Vec::new();
    collect(path, "", &mut found)?;
    found.sort_by(|a: &FileReport, b| a.name.cmp(&b.name));
    Ok(found)
}

fn collect(path: &Path, prefix: &str, found: &mut Vec<FileReport>) -> Result<(), Failure> {
    let failed = |error: std::io::Error| cannot_open(path.display(), &error);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().display());
        let kind = entry.file_type().map_err(failed)?;
        // Folders of results are one deep in another; links are not followed.
        if kind.is_dir() && prefix.matches('/').count() < 2 {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else if kind.is_file() {
            let bytes = entry.metadata().map_err(failed)?.len();
            let array = name.ends_with(".npy").then(|| Source::new(entry.path(), None).open().ok()).flatten();
            let precision = array.as_ref().map(|array| array.dtype().to_string());
            found.push(FileReport { name, bytes, shape: array.map(|array| array.shape().to_vec()), precision });
        }
    }
    Ok(())
}

impl FolderReport {
    fn text(&self, verbose: bool) -> String {
        let most = if verbose { usize::MAX - 1 } else { MOST_ROWS };
        let mut text = format!("{}: {}\n\n", self.path, self.kind);
        let mut rows: Vec<Vec<String>> =
            self.facts.iter().map(|(name, value)| vec![(*name).to_owned(), value.clone()]).collect();
        if self.values.is_none()
            && let Value::Object(description) = &self.description
        {
            rows.extend(scalars(description));
        }
        text += &shortened(rows, most, &[]);
        if let Some(values) = &self.values {
            let rows = values.iter().enumerate().map(|(j, value)| vec![(j + 1).to_string(), format!("{value:.6e}")]);
            let _ = write!(text, "\nEigenvalues\n{}", shortened(rows.collect(), most / 2, &[0]));
        }
        let row = |file: &FileReport| {
            let array = match (&file.precision, &file.shape) {
                (Some(precision), Some(sizes)) => format!("{precision} {}", shape(sizes)),
                _ => String::new(),
            };
            vec![file.name.clone(), bytes(file.bytes as usize), array]
        };
        let rows = self.files.iter().map(row).collect();
        let _ = write!(text, "\n{}\n{}", count(self.files.len(), "file"), shortened(rows, most, &[1]));
        text
    }
}

/// What a description says in single words and numbers, one level down too; longer parts are shown by `--json`.
fn scalars(description: &Map<String, Value>) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let shown = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    for (name, value) in description.iter().filter(|(name, _)| *name != "kind") {
        match value {
            Value::Object(inner) => {
                let inner = inner.iter().filter(|(_, value)| shown(value));
                rows.extend(inner.map(|(part, value)| vec![format!("{name}, {part}"), plain(value)]));
            }
            value if shown(value) => rows.push(vec![name.clone(), plain(value)]),
            _ => {}
        }
    }
    rows.iter_mut().for_each(|row| row[0] = row[0].replace('_', " "));
    rows
}
