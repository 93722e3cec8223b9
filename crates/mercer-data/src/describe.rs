//! Descriptions of data files, for `mercer info`.

use std::collections::BTreeMap;
use std::fmt;

use mercer_run::Context;
use serde::Serialize;

use crate::dataset::Dataset;
use crate::element::DType;
use crate::error::{DataError, Result};
use crate::format::{self, Format, npz, table};
use crate::images::{ImageFolder, ImageWish};
use crate::labels::Classes;
use crate::source::Source;

/// The approximate number of values in memory at a time.
const BLOCK: usize = 1 << 20;

/// Integers with at most this many distinct values are also counted individually.
const MOST_COUNTED: usize = 100;

/// What a file holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The file and key.
    pub place: String,
    /// Its format.
    pub format: Format,
    /// The arrays in an npz file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrays: Vec<NpzEntry>,
    /// The columns of a CSV file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// A summary of the array, if it is clear which one is meant and it holds numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Why there is no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One array of an npz file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NpzEntry {
    /// Its key.
    pub key: String,
    /// Its element type, or `None` if it is not supported.
    pub dtype: Option<DType>,
    /// Its shape.
    pub shape: Vec<usize>,
}

/// The numbers of one array.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// The element type.
    pub dtype: DType,
    /// Whether the numbers are integers by type (in CSV: by how they are written).
    pub is_integer: bool,
    /// The shape, samples first.
    pub shape: Vec<usize>,
    /// The smallest finite number.
    pub min: Option<f64>,
    /// The largest finite number.
    pub max: Option<f64>,
    /// The mean of the finite numbers.
    pub mean: Option<f64>,
    /// How many are NaN or infinite.
    pub n_not_finite: usize,
    /// How often each label occurs, if the array looks like labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<(String, usize)>,
}

/// Describes a data file by reading it once, in blocks.
pub fn describe(source: &Source) -> Result<Description> {
    if source.path().is_dir() {
        return describe_images(source);
    }
    let (format, gzipped) = format::detect(source.path())?;
    let mut description = Description {
        place: source.place(),
        format,
        arrays: Vec::new(),
        columns: Vec::new(),
        summary: None,
        note: None,
    };
    match format {
        Format::Npz => {
            let layouts = npz::Archive::open(source.path())?.layouts();
            description.arrays = layouts.into_iter().map(|(key, layout)| NpzEntry::new(key, layout.ok())).collect();
        }
        Format::Csv => description.columns = table::header(source.path(), gzipped)?.names,
        _ => {}
    }
    match source.open() {
        Ok(dataset) => description.summary = Some(summarise(&dataset)?),
        Err(error @ (DataError::KeyNeeded { .. } | DataError::Cell { .. })) => {
            description.note = Some(error.to_string())
        }
        Err(error) => return Err(error),
    }
    Ok(description)
}

/// Describes a folder of images. Sizes that differ are no error here.
fn describe_images(source: &Source) -> Result<Description> {
    let folder = ImageFolder::list(source.path())?;
    let (summary, note) = match folder.open(ImageWish::default(), &Context::new()) {
        Ok((set, _)) => {
            let labels = folder.class_names().map(|_| folder.labels().and_then(|set| summarise(&set))).transpose()?;
            (
                Some(Summary { labels: labels.map_or_else(Vec::new, |own| own.labels), ..summarise(&set)? }),
                folder.note(),
            )
        }
        Err(error @ DataError::Refused { .. }) => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let (place, format) = (source.place(), Format::Images);
    Ok(Description { place, format, arrays: Vec::new(), columns: Vec::new(), summary, note })
}

impl NpzEntry {
    fn new(key: String, layout: Option<crate::stored::Layout>) -> Self {
        match layout {
            Some(layout) => Self { key, dtype: Some(layout.dtype), shape: layout.shape },
            None => Self { key, dtype: None, shape: Vec::new() },
        }
    }
}

/// Summarises an open array; its preprocessing is not applied, and NaN is counted instead of refused.
pub fn summarise(dataset: &Dataset) -> Result<Summary> {
    let mut summary = Summary {
        dtype: dataset.dtype(),
        is_integer: dataset.is_integer(),
        shape: dataset.stored_shape().to_vec(),
        min: None,
        max: None,
        mean: None,
        n_not_finite: 0,
        labels: Vec::new(),
    };
    if dataset.class_names().is_some() {
        let classes = Classes::read(dataset)?;
        summary.labels = classes.names().iter().cloned().zip(classes.counts()).collect();
        return Ok(summary);
    }
    let n_samples = dataset.n_samples();
    let sample_len = dataset.stored_shape()[1..].iter().product::<usize>().max(1);
    let n_rows = (BLOCK / sample_len).max(1);
    let (mut sum, mut count) = (0.0, 0_usize);
    let mut counts = (sample_len == 1).then(BTreeMap::<i64, usize>::new);
    for start in (0..n_samples).step_by(n_rows) {
        let rows = start..n_samples.min(start + n_rows);
        let values: Vec<f64> = dataset.stored_values(&[rows])?;
        // One sum per block keeps the rounding error small.
        let mut block = 0.0;
        for value in values {
            if !value.is_finite() {
                summary.n_not_finite += 1;
                continue;
            }
            block += value;
            count += 1;
            summary.min = Some(summary.min.map_or(value, |min: f64| min.min(value)));
            summary.max = Some(summary.max.map_or(value, |max: f64| max.max(value)));
            counts = counts.and_then(|counts| counted(counts, value));
        }
        sum += block;
    }
    summary.mean = (count > 0).then(|| sum / count as f64);
    let counts = counts.unwrap_or_default();
    summary.labels = counts.into_iter().map(|(value, count)| (value.to_string(), count)).collect();
    Ok(summary)
}

/// Counts a value, or gives up when the values cannot be labels.
fn counted(mut counts: BTreeMap<i64, usize>, value: f64) -> Option<BTreeMap<i64, usize>> {
    if value.fract() != 0.0 || value.abs() > 1e9 {
        return None;
    }
    *counts.entry(value as i64).or_default() += 1;
    (counts.len() <= MOST_COUNTED).then_some(counts)
}

impl fmt::Display for Description {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{}: {}", self.place, self.format)?;
        for NpzEntry { key, dtype, shape } in &self.arrays {
            match dtype {
                Some(dtype) => writeln!(formatter, "  {key}: {dtype} {shape:?}")?,
                None => writeln!(formatter, "  {key}: type not supported")?,
            }
        }
        if !self.columns.is_empty() {
            writeln!(formatter, "  columns: {}", self.columns.join(", "))?;
        }
        if let Some(summary) = &self.summary {
            write!(formatter, "{summary}")?;
        }
        if let Some(note) = &self.note {
            writeln!(formatter, "  {note}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_samples = self.shape.first().copied().unwrap_or(0);
        writeln!(formatter, "  {} {:?}, {n_samples} samples", self.dtype, self.shape)?;
        if let (Some(min), Some(max), Some(mean)) = (self.min, self.max, self.mean) {
            writeln!(formatter, "  min {min}, max {max}, mean {mean:.6}")?;
        }
        if self.n_not_finite > 0 {
            writeln!(formatter, "  {} values are NaN or infinite", self.n_not_finite)?;
        }
        if !self.labels.is_empty() {
            let labels: Vec<_> = self.labels.iter().map(|(name, count)| format!("{name} × {count}")).collect();
            writeln!(formatter, "  labels: {}", labels.join(", "))?;
        }
        Ok(())
    }
}
