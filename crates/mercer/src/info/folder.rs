//! The contents of a results folder (a network, eigenfunctions, a machine, a posterior), and whether they are intact.

use super::{Findings, Looked, plain};
use crate::Error;
use crate::error::cannot_open;
use crate::job::RUN;
use crate::job::report::sentences;
use crate::text::{count, shape};
use mercer_data::folder::{Folder, MANIFEST};
use mercer_data::{self as data, RECORD, Source, read_regular};
use mercer_kernel::Recipe;
use mercer_net::train::files as training;
use mercer_run::Context;
use mercer_spectral::EigenDescription;
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::ErrorKind;
use std::path::Path;

/// Size limit for a file that describes a folder.
const LONGEST: u64 = 64 << 20;

/// The identity of the kernel.
const IDENTITY: &str = "kernel identity";

/// A folder.
#[derive(Clone, Debug, Serialize)]
pub struct FolderFindings {
    /// What was saved, such as `network`.
    pub kind: String,
    /// The folder.
    pub path: String,
    /// The version of the format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// The version of Mercer that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mercer: Option<String>,
    /// What the folder says about itself.
    pub description: Value,
    /// The findings of the command that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What the findings say, the most important first; a report says the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sentences: Vec<String>,
    /// Of eigenfunctions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<f64>>,
    /// The saved parts, by their names in the manifest.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objects: Vec<FileFindings>,
    /// All files except objects.
    pub files: Vec<FileFindings>,
    /// The damaged parts.
    pub damaged: Vec<FileDamage>,
    /// Further facts, with readable names.
    #[serde(skip)]
    pub facts: Vec<(String, String)>,
}

/// A file of a folder.
#[derive(Clone, Debug, Serialize)]
pub struct FileFindings {
    /// Its name, within the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Of an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shape: Option<Vec<usize>>,
    /// The type of its numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub precision: Option<String>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDamage {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub why: String,
}

/// Describes a folder from its contents, and reads all of them.
pub(super) fn look(path: &Path, context: &Context) -> Result<Looked, Error> {
    let mut found = FolderFindings {
        kind: "results".to_owned(),
        path: path.display().to_string(),
        version: None,
        mercer: None,
        description: Value::Null,
        result: None,
        sentences: Vec::new(),
        values: None,
        objects: Vec::new(),
        files: Vec::new(),
        damaged: Vec::new(),
        facts: Vec::new(),
    };
    match Folder::open(path, None) {
        Ok(folder) => found.read_saved(path, &folder, context)?,
        Err(data::DataError::Damaged { place, reason }) => found.damaged.push(FileDamage { file: place, why: reason }),
        // Earlier versions describe the folder in a different file.
        Err(data::DataError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => found.read_record(path)?,
        // Beside one of our results, it does not belong to another program.
        Err(data::DataError::Malformed { place, reason, .. }) if path.join(RECORD).is_file() => {
            found.damaged.push(FileDamage { file: place, why: reason });
            found.read_record(path)?;
        }
        Err(error) => return Err(error.into()),
    }
    collect(path, "", &mut found.files)?;
    if found.version.is_some() {
        found.files.retain(|file| !file.name.starts_with("objects/"));
    }
    found.files.sort_by(|a, b| a.name.cmp(&b.name));
    let failure = (!found.damaged.is_empty()).then(|| {
        let message = format!("{}: {} damaged", path.display(), count(found.damaged.len(), "file"));
        Error::check(message).hint("copy the folder again, or make it again")
    });
    Ok(Looked { findings: Findings::Folder(Box::new(found)), failure })
}

impl FolderFindings {
    /// The files listed in a manifest, verified.
    fn read_saved(&mut self, path: &Path, folder: &Folder, context: &Context) -> Result<(), Error> {
        self.kind = folder.kind().to_owned();
        self.version = Some(folder.kind_version());
        self.mercer = Some(folder.written_by().to_owned());
        self.description = folder.content()?;
        let objects = folder.object_names().map(|name| (true, name));
        let parts: Vec<(bool, &str)> = objects.chain(folder.file_names().map(|name| (false, name))).collect();
        for (done, &(is_object, name)) in parts.iter().enumerate() {
            if context.cancelled() {
                return Err(Error::interrupted("interrupted"));
            }
            let read = if is_object { folder.object(name) } else { folder.file(name) };
            match read {
                Ok(blob) if is_object => self.objects.push(object(folder, name, &blob)),
                Ok(_) => {}
                // Objects with the same digest are one file.
                Err(data::DataError::Damaged { place, .. }) if self.damaged.iter().any(|known| known.file == place) => {
                }
                Err(data::DataError::Damaged { place, reason }) => {
                    self.damaged.push(FileDamage { file: place, why: reason });
                }
                Err(error) => return Err(error.into()),
            }
            context.report(done + 1, parts.len(), "files");
        }
        let listed = |name: &str| folder.file_names().any(|own| own == name);
        if listed(RECORD)
            && let Ok(bytes) = folder.file(RECORD)
        {
            self.result = Some(parse(&path.join(RECORD), &bytes)?);
        }
        if listed(RUN)
            && let (Some(result), Ok(bytes)) = (&self.result, folder.file(RUN))
        {
            let record = parse(&path.join(RUN), &bytes)?;
            let said = sentences(record["job"]["name"].as_str().unwrap_or_default(), result);
            self.sentences = said.into_iter().map(|own| own.text).collect();
        }
        if self.kind == mercer_spectral::KIND.name
            && let Ok(description) = folder.content::<EigenDescription>()
        {
            self.values = folder
                .array("values")
                .and_then(|values| values.read::<f64>())
                .ok()
                .map(|v| v.iter().copied().collect());
            self.facts = of_eigenfunctions(&description);
        } else {
            self.facts = kernel_facts(self.description.get("kernel"));
            let steps = self.description["samples"]["inputs"].as_array().into_iter().flatten();
            let steps: Vec<String> = steps.map(|input| input["preprocess"].to_string()).collect();
            if steps.iter().any(|steps| steps != "[]") {
                self.facts.push(("preprocessing".to_owned(), steps.join(", ")));
            }
            self.add_scalars();
        }
        self.facts.push(("written by".to_owned(), format!("Mercer {}", folder.written_by())));
        Ok(())
    }

    /// A folder without a manifest, described by its record.
    fn read_record(&mut self, path: &Path) -> Result<(), Error> {
        let record = path.join(RECORD);
        if !record.is_file() {
            let error = Error::new(format!("{}: this folder holds no results", path.display()));
            let is_begun = path.join(training::STATE).is_file();
            return Err(error.hint(match is_begun {
                true => format!("{} belongs to an incomplete run: ‹resume› continues it", training::STATE),
                false => format!("{MANIFEST} or {RECORD} would say what it is"),
            }));
        }
        let failed = |error: std::io::Error| cannot_open(record.display(), &error);
        self.description = parse(&record, &read_regular(&record, LONGEST).map_err(failed)?)?;
        if let Some(kind) = self.description["kind"].as_str() {
            self.kind = kind.to_owned();
        }
        self.add_scalars();
        Ok(())
    }

    /// The single words and numbers in the description and the result; longer parts appear only in the full findings.
    fn add_scalars(&mut self) {
        for value in [Some(&self.description), self.result.as_ref()].into_iter().flatten() {
            let Value::Object(value) = value else { continue };
            for (name, text) in scalars(value) {
                if !self.facts.iter().any(|(known, _)| *known == name) {
                    self.facts.push((name, text));
                }
            }
        }
    }
}

fn of_eigenfunctions(description: &EigenDescription) -> Vec<(String, String)> {
    let note = |name: &str| description.notes.get(name).map(plain);
    let data = description.notes.get("data");
    let of_data = |name: &str| data.and_then(|data| data.get(name)).map(plain);
    let inputs: Vec<String> = description.inputs.iter().map(|input| shape(input)).collect();
    let mut facts = vec![
        ("method", note("method").unwrap_or_else(|| "unknown".to_owned())),
        ("functions", description.components.to_string()),
        ("precision", description.precision.clone()),
    ];
    if !inputs.is_empty() {
        facts.push(("samples", inputs.join(", ")));
    }
    if description.per_sample > 1 {
        facts.push(("outputs per sample", description.per_sample.to_string()));
    }
    facts.extend(of_data("place").map(|place| ("found from", place)));
    facts.extend(of_data("samples").map(|samples| ("number of samples", samples)));
    facts.extend(of_data("fingerprint").map(|print| ("data fingerprint", print)));
    facts.extend(note("preprocess").filter(|steps| steps != "[[]]").map(|steps| ("preprocessing", steps)));
    let mut facts: Vec<(String, String)> = facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
    facts.extend(kernel_facts(description.kernel.as_ref()));
    if !facts.iter().any(|(name, _)| name == IDENTITY) {
        facts.extend(description.basis.get("kernel").map(|identity| (IDENTITY.to_owned(), plain(identity))));
    }
    let basis = description.basis["type"].as_str().unwrap_or("unknown");
    match description.functions {
        0 => facts.push(("known on".to_owned(), format!("their own {basis} alone"))),
        count => facts.push(("combinations of".to_owned(), format!("{count} {basis}"))),
    }
    facts.extend(description.repairs.sentences().into_iter().map(|sentence| ("repair".to_owned(), sentence)));
    facts
}

/// A kernel in one line of the kernel language.
fn kernel_facts(kernel: Option<&Value>) -> Vec<(String, String)> {
    let Some(kernel) = kernel else { return Vec::new() };
    // Folders of the first version have a map, which reads as the same kernel.
    let recipe = kernel.get("recipe").map(|value| match serde_json::from_value::<Recipe>(value.clone()) {
        Ok(recipe) => recipe.to_string(),
        Err(_) => value.to_string(),
    });
    let mut facts = Vec::new();
    facts.extend(recipe.map(|text| ("kernel".to_owned(), text)));
    facts.extend(kernel.get("identity").map(|identity| (IDENTITY.to_owned(), plain(identity))));
    facts
}

/// A saved part that has been verified.
fn object(folder: &Folder, name: &str, blob: &[u8]) -> FileFindings {
    let array = blob.starts_with(b"\x93NUMPY").then(|| folder.array(name).ok()).flatten();
    FileFindings {
        name: name.to_owned(),
        bytes: blob.len() as u64,
        precision: array.as_ref().map(|array| array.dtype().to_string()),
        shape: array.map(|array| array.shape().to_vec()),
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Error> {
    let wrong = |error| Error::with_code("malformed-file", format!("{}: {error}", path.display()));
    serde_json::from_slice(bytes).map_err(wrong)
}

/// The files of a folder and its subfolders, without hidden ones.
fn collect(path: &Path, prefix: &str, found: &mut Vec<FileFindings>) -> Result<(), Error> {
    let failed = |error: std::io::Error| cannot_open(path.display(), &error);
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = format!("{prefix}{}", entry.file_name().display());
        let kind = entry.file_type().map_err(failed)?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // Results are nested at most one folder deep; links are not followed.
        if kind.is_dir() && prefix.matches('/').count() < 2 {
            collect(&entry.path(), &format!("{name}/"), found)?;
        } else if kind.is_file() {
            let bytes = entry.metadata().map_err(failed)?.len();
            let array = name.ends_with(".npy").then(|| Source::new(entry.path(), None).open().ok()).flatten();
            let precision = array.as_ref().map(|array| array.dtype().to_string());
            found.push(FileFindings { name, bytes, shape: array.map(|array| array.shape().to_vec()), precision });
        }
    }
    Ok(())
}

/// The single words and numbers in a description, including one level of nesting.
fn scalars(description: &Map<String, Value>) -> Vec<(String, String)> {
    let mut rows = Vec::new();
    let shown = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    for (name, value) in description.iter().filter(|(name, _)| !["kernel", "kind"].contains(&name.as_str())) {
        match value {
            Value::Object(inner) => {
                let inner = inner.iter().filter(|(_, value)| shown(value));
                rows.extend(inner.map(|(part, value)| (format!("{name}, {part}"), plain(value))));
            }
            value if shown(value) => rows.push((name.clone(), plain(value))),
            _ => {}
        }
    }
    rows.iter_mut().for_each(|(name, _)| *name = name.replace('_', " "));
    rows
}
