//! The classes that a machine can predict.

use crate::error::{LearnError, Result, check_size};
use crate::repair::Repair;
use mercer_data::Classes;
use ndarray::{Array2, ArrayView2, Axis};
use serde::{Deserialize, Serialize};

/// The classes of a classifier: those with training samples, and those known only by name.
///
/// Scores have a column per class with samples. Probabilities have a column per class, with zeros for absent classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassSet {
    names: Vec<String>,
    /// Ascending indices of the classes with samples.
    present: Vec<usize>,
}

impl ClassSet {
    /// The classes of some labels, and each label as an index into the present classes.
    pub fn from_labels(labels: &Classes) -> (Self, Vec<usize>) {
        let mut counts = vec![0_usize; labels.names().len()];
        labels.indices().iter().for_each(|&class| counts[class] += 1);
        let present: Vec<usize> = (0..counts.len()).filter(|&class| counts[class] > 0).collect();
        let mut place = vec![0; counts.len()];
        present.iter().enumerate().for_each(|(at, &class)| place[class] = at);
        let compact = labels.indices().iter().map(|&class| place[class]).collect();
        (Self { names: labels.names().to_vec(), present }, compact)
    }

    /// As [`from_labels`](Self::from_labels), for machines that need a boundary. Checks that there are at least two classes, and as many
    /// labels as samples.
    pub(crate) fn for_boundary(labels: &Classes, n_samples: usize) -> Result<(Self, Vec<usize>)> {
        check_size("the number of labels", n_samples, labels.indices().len())?;
        let (set, compact) = Self::from_labels(labels);
        match set.present.as_slice() {
            [] => Err(LearnError::Empty { what: "labels" }),
            &[only] => Err(LearnError::OneClass { class: set.names[only].clone() }),
            _ => Ok((set, compact)),
        }
    }

    /// The names of all classes.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The classes with samples, ascending.
    pub fn present(&self) -> &[usize] {
        &self.present
    }

    /// Whether the present classes exist and ascend; for classes read from a file.
    pub(crate) fn is_valid(&self) -> bool {
        !self.present.is_empty()
            && self.present.iter().zip(self.present.iter().skip(1)).all(|(a, b)| a < b)
            && self.present.iter().all(|&class| class < self.names.len())
    }

    /// A note for every class without samples.
    pub(crate) fn repairs(&self) -> Vec<Repair> {
        let absent = (0..self.names.len()).filter(|class| !self.present.contains(class));
        absent.map(|class| Repair::AbsentClass { class: self.names[class].clone() }).collect()
    }

    /// The class of the largest score of every row; the first one on ties.
    pub fn decide(&self, scores: ArrayView2<'_, f64>) -> Vec<usize> {
        scores.outer_iter().map(|row| self.present[largest(row.iter().copied())]).collect()
    }

    /// Spreads columns of present classes to all classes, with zeros for the others.
    pub fn spread(&self, columns: Array2<f64>) -> Array2<f64> {
        if self.present.len() == self.names.len() {
            return columns;
        }
        let mut all = Array2::zeros((columns.nrows(), self.names.len()));
        for (&class, column) in self.present.iter().zip(columns.axis_iter(Axis(1))) {
            all.column_mut(class).assign(&column);
        }
        all
    }
}

/// The index of the largest value; the first one on ties.
pub(crate) fn largest(values: impl Iterator<Item = f64>) -> usize {
    let mut best = (0, f64::NEG_INFINITY);
    for (at, value) in values.enumerate() {
        if value > best.1 {
            best = (at, value);
        }
    }
    best.0
}
