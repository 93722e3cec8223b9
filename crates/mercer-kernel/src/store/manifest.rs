//! The inputs of a store, and differences from them.

use super::error::{Difference, Result, StoreError};
use super::layout::StoreLayout;
use mercer_data::Fingerprint;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

/// The version of the manifest that this code writes, and the only one it reads.
const VERSION: u32 = 1;

/// The contents of a store and its inputs.
///
/// `facts` decide the numbers: kernel, fingerprints of network and data, instruction set. A store is continued
/// only by a run with the same layout and the same facts. `notes` are for people: file names, times.
///
/// ```
/// use mercer_data::DType;
/// use mercer_kernel::store::{StoreColumns, StoreLayout, Manifest};
/// use serde_json::json;
///
/// let columns = StoreColumns::Samples { count: 100, symmetric: true };
/// let layout =
///     StoreLayout { arrays: vec!["kernel".into()], rows: 100, columns, per_sample: 1, tile: 32, precision: DType::F32 };
/// let manifest = Manifest::new(layout)
///     .fact("kernel", json!({"name": "ntk", "kind": "trace"}))
///     .fact("data", "99aa06d3014798d86001c324468d497f")
///     .note("data file", "digits.npy");
/// assert_eq!(manifest.facts["kernel"]["kind"], "trace");
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Manifest {
    /// The version of Mercer that made the store.
    pub mercer: String,
    /// The layout of the arrays.
    pub layout: StoreLayout,
    /// The facts that decide the numbers, by name.
    pub facts: Map<String, Value>,
    /// Notes by name, which are never compared.
    pub notes: Map<String, Value>,
}

/// A manifest as stored: with the version of its format, and a fingerprint that reveals damage.
#[derive(Serialize, Deserialize)]
struct Sealed {
    version: u32,
    fingerprint: String,
    manifest: Value,
}

impl Manifest {
    /// A manifest without facts.
    pub fn new(layout: StoreLayout) -> Self {
        let mercer = env!("CARGO_PKG_VERSION").to_owned();
        Self { mercer, layout, facts: Map::new(), notes: Map::new() }
    }

    /// Adds a fact that decides the numbers.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a note.
    pub fn note(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.notes.insert(name.to_owned(), value.into());
        self
    }

    /// As the attribute of the group.
    pub(super) fn seal(&self) -> Value {
        let manifest = to_value(self);
        to_value(&Sealed { version: VERSION, fingerprint: fingerprint(&manifest), manifest })
    }

    /// From the attribute of a group; `place` is for errors.
    pub(super) fn unseal(attribute: &Value, place: &Path) -> Result<Self> {
        let malformed = |reason: String| StoreError::Malformed { place: place.display().to_string(), reason };
        // A later format may be entirely different, so the version is checked first.
        match attribute.get("version").and_then(Value::as_u64) {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => return Err(malformed(format!("its format has version {version}, this is {VERSION}"))),
            None => return Err(malformed("it has no version: Mercer did not make it".to_owned())),
        }
        let sealed = Sealed::deserialize(attribute).map_err(|error| malformed(error.to_string()))?;
        if fingerprint(&sealed.manifest) != sealed.fingerprint {
            return Err(malformed("its manifest was changed or damaged: the fingerprint does not match".to_owned()));
        }
        let manifest = Self::deserialize(&sealed.manifest).map_err(|error| malformed(error.to_string()))?;
        manifest.layout.check().map_err(|error| malformed(error.to_string()))?;
        Ok(manifest)
    }

    /// Every part of the layout and facts that differs in a run.
    pub(super) fn differences(&self, given: &Self) -> Vec<Difference> {
        let mut differences = Vec::new();
        compare("", Some(&to_value(&self.layout)), Some(&to_value(&given.layout)), &mut differences);
        let facts = |manifest: &Self| Value::Object(manifest.facts.clone());
        compare("", Some(&facts(self)), Some(&facts(given)), &mut differences);
        differences
    }
}

/// Descends into objects, so that only differences are named.
fn compare(name: &str, stored: Option<&Value>, given: Option<&Value>, differences: &mut Vec<Difference>) {
    if let (Some(Value::Object(stored)), Some(Value::Object(given))) = (stored, given) {
        let new = given.keys().filter(|&key| !stored.contains_key(key));
        for key in stored.keys().chain(new) {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            compare(&name, stored.get(key), given.get(key), differences);
        }
    } else if stored != given {
        let text = |value: Option<&Value>| value.map(Value::to_string);
        differences.push(Difference { name: name.to_owned(), stored: text(stored), given: text(given) });
    }
}

/// The fingerprint of a value's compact text, which is the same before it is written and after it is read.
fn fingerprint(value: &Value) -> String {
    let mut fingerprint = Fingerprint::new();
    fingerprint.update(value.to_string().as_bytes());
    fingerprint.finish()
}

/// Our own types have string keys and cannot fail.
fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or(Value::Null)
}
