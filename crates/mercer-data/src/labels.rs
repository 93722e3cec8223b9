//! Labels: classes or regression targets.

use ndarray::{Array2, Ix2};

use crate::classes::ClassOrder;
use crate::dataset::Dataset;
use crate::element::DataScalar;
use crate::error::{DataError, Result};
use crate::images::ImageFolder;
use crate::inputs::{Role, Used, open_inputs};
use crate::source::Source;

/// Integer labels below this are their own index; others are numbered in sorted order.
const MOST_CLASSES: usize = 65_536;

/// The value to predict for each sample.
#[derive(Clone, Debug, PartialEq)]
pub enum Labels {
    /// One of several classes.
    Classes(Classes),
    /// One or more numbers, with one row per sample.
    Targets(Array2<f64>),
}

impl Labels {
    /// Classes if the labels are texts or whole numbers, one per sample; regression targets otherwise.
    ///
    /// If that guess is wrong, use [`Classes::read`] or [`Labels::targets`].
    pub fn read(dataset: &Dataset) -> Result<Self> {
        if dataset.class_names().is_some() || dataset.is_integer() && is_column(dataset.shape()) {
            return Classes::read(dataset).map(Self::Classes);
        }
        let targets = targets(dataset)?;
        if is_column(dataset.shape()) && targets.iter().all(|&value| is_class(value)) {
            return Classes::read(dataset).map(Self::Classes);
        }
        Ok(Self::Targets(targets))
    }

    /// Regression targets, whatever the numbers look like.
    pub fn targets(dataset: &Dataset) -> Result<Self> {
        targets(dataset).map(Self::Targets)
    }

    /// The number of samples.
    pub fn n_samples(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.indices.len(),
            Self::Targets(targets) => targets.nrows(),
        }
    }

    /// The number of outputs of a network that predicts them: classes, or targets per sample.
    pub fn n_outputs(&self) -> usize {
        match self {
            Self::Classes(classes) => classes.names.len(),
            Self::Targets(targets) => targets.ncols(),
        }
    }

    /// One row per sample and one column per output. Classes become one-hot.
    pub fn matrix<T: DataScalar>(&self) -> Result<Array2<T>> {
        match self {
            Self::Classes(classes) => classes.one_hot(),
            Self::Targets(targets) => Ok(targets.mapv(T::narrow)),
        }
    }

    /// The same labels in an order of classes; see [`Classes::ordered`]. Regression targets have none.
    pub fn ordered(&self, place: &str, order: &ClassOrder) -> Result<Self> {
        match self {
            Self::Classes(classes) => classes.ordered(place, order).map(Self::Classes),
            Self::Targets(_) => Ok(self.clone()),
        }
    }

    /// The labels of some samples, in the given order.
    pub fn select(&self, indices: &[usize]) -> Result<Self> {
        let n_samples = self.n_samples();
        if let Some(&row) = indices.iter().find(|&&row| row >= n_samples) {
            return Err(DataError::Row { place: "labels".to_owned(), row, n_samples });
        }
        Ok(match self {
            Self::Classes(classes) => {
                let chosen = indices.iter().map(|&row| classes.indices[row]).collect();
                Self::Classes(Classes { indices: chosen, ..classes.clone() })
            }
            Self::Targets(targets) => Self::Targets(targets.select(ndarray::Axis(0), indices)),
        })
    }
}

fn is_column(shape: &[usize]) -> bool {
    matches!(shape, [_] | [_, 1])
}

/// Whether the number is an integer, and small enough for all integers around it to be exact in `f64`.
fn is_class(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() <= (1_u64 << 53) as f64
}

fn targets(dataset: &Dataset) -> Result<Array2<f64>> {
    let (n_samples, shape) = (dataset.n_samples(), dataset.shape().to_vec());
    let n_targets = match shape.as_slice() {
        [_] => 1,
        [_, n_targets] => *n_targets,
        _ => {
            let (place, reason) = (dataset.place().to_owned(), "labels have one or two axes".to_owned());
            return Err(DataError::Shape { place, shape, reason });
        }
    };
    let too_large = |_| DataError::TooLarge { place: dataset.place().to_owned(), shape };
    dataset.read()?.into_shape_with_order(Ix2(n_samples, n_targets)).map_err(too_large)
}

/// One class per sample, as an index into the names of the classes.
///
/// ```
/// use mercer_data::{Classes, Dataset};
/// use ndarray::array;
///
/// let signs = Dataset::from_array("signs", array![1_i64, -1, 1].into_dyn().view())?;
/// let classes = Classes::read(&signs)?;
/// assert_eq!(classes.names(), ["-1", "1"]);
/// assert_eq!(classes.indices(), [1, 0, 1]);
/// assert_eq!(classes.one_hot::<f32>()?, array![[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]);
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classes {
    pub(crate) indices: Vec<usize>,
    pub(crate) names: Vec<String>,
    pub(crate) naming: Naming,
}

/// The kind of the class names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// The class numbers, from 0 on.
    Own,
    /// Other whole numbers.
    Numbers,
    /// Texts.
    Texts,
}

impl Naming {
    pub(crate) fn from_names(names: &[String]) -> Self {
        if names.iter().enumerate().all(|(index, name)| *name == index.to_string()) {
            Self::Own
        } else if names.iter().all(|name| name.parse::<i64>().is_ok()) {
            Self::Numbers
        } else {
            Self::Texts
        }
    }
}

impl Classes {
    /// Reads classes from a column of texts, integers or whole floats.
    ///
    /// Integers from 0 to 65 535 are their own index, so that a set that happens to lack a class still agrees with the
    /// others. Texts and other integers become classes in sorted order. To compare labels with a trained model, map
    /// them to its order with [`ordered`](Self::ordered).
    pub fn read(dataset: &Dataset) -> Result<Self> {
        let place = dataset.place();
        if !is_column(dataset.shape()) {
            let reason = "class labels are one number per sample".to_owned();
            return Err(DataError::Shape { place: place.to_owned(), shape: dataset.shape().to_vec(), reason });
        }
        if let Some(texts) = dataset.class_names() {
            let all = 0..dataset.n_samples();
            let codes: Vec<f64> = dataset.stored_values(&[all])?;
            let texts = codes.iter().map(|&code| texts[code as usize].clone());
            return Ok(Self::sorted(texts, |name| name.clone(), Naming::Texts));
        }
        let values = dataset.read::<f64>()?;
        if let Some((row, value)) = values.iter().enumerate().find(|(_, value)| !is_class(**value)) {
            let reason = "which is not an integer of reasonable size; are these regression targets?";
            return Err(DataError::Label { place: place.to_owned(), row, value: value.to_string(), reason });
        }
        if values.iter().all(|&value| (0.0..MOST_CLASSES as f64).contains(&value)) {
            let indices: Vec<usize> = values.iter().map(|&value| value as usize).collect();
            let n_classes = indices.iter().max().map_or(0, |last| last + 1);
            return Self::new(indices, n_classes);
        }
        let numbers = values.iter().map(|&value| value as i64);
        let classes = Self::sorted(numbers, |value| value.to_string(), Naming::Numbers);
        if let Some(row) = classes.indices.iter().position(|&index| index >= MOST_CLASSES) {
            let value = classes.names[classes.indices[row]].clone();
            let reason = "one of more than 65536 different values; are these regression targets?";
            return Err(DataError::Label { place: place.to_owned(), row, value, reason });
        }
        Ok(classes)
    }

    /// Classes from their indices, named by their numbers.
    pub fn new(indices: Vec<usize>, n_classes: usize) -> Result<Self> {
        if let Some((row, index)) = indices.iter().enumerate().find(|(_, index)| **index >= n_classes) {
            let (place, value) = ("labels".to_owned(), index.to_string());
            return Err(DataError::Label { place, row, value, reason: "which exceeds the number of classes" });
        }
        let names = (0..n_classes).map(|class| class.to_string()).collect();
        Ok(Self { indices, names, naming: Naming::Own })
    }

    fn sorted<V: Ord + Clone>(values: impl Iterator<Item = V>, name: impl Fn(&V) -> String, naming: Naming) -> Self {
        let values: Vec<V> = values.collect();
        let mut distinct = values.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let index = |value: &V| distinct.partition_point(|other| other < value);
        Self { indices: values.iter().map(index).collect(), names: distinct.iter().map(name).collect(), naming }
    }

    /// The class of each sample.
    pub fn indices(&self) -> &[usize] {
        &self.indices
    }

    /// The names of the classes, by index.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The number of classes.
    pub fn n_classes(&self) -> usize {
        self.names.len()
    }

    /// How many samples each class has.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.names.len()];
        self.indices.iter().for_each(|&index| counts[index] += 1);
        counts
    }

    /// Whether the names are just the class numbers.
    pub fn are_numbered(&self) -> bool {
        self.naming == Naming::Own
    }

    /// The same labels, numbered by another list of names, usually that of the training set.
    pub fn with_names(&self, names: &[String]) -> Result<Self> {
        self.ordered("labels", &ClassOrder::Names(names.to_vec()))
    }

    /// One row per sample, with a 1 in the column of its class.
    pub fn one_hot<T: DataScalar>(&self) -> Result<Array2<T>> {
        let shape = (self.indices.len(), self.names.len());
        let n_values = shape.0.saturating_mul(shape.1);
        let mut values = Vec::new();
        let memory =
            || DataError::Memory { place: "one-hot labels".to_owned(), bytes: n_values.saturating_mul(size_of::<T>()) };
        values.try_reserve_exact(n_values).map_err(|_| memory())?;
        values.resize(n_values, T::zero());
        self.indices.iter().enumerate().for_each(|(row, index)| values[row * shape.1 + index] = T::one());
        Array2::from_shape_vec(shape, values).map_err(|_| memory())
    }
}

/// Opens data and their labels, and checks that their numbers agree.
///
/// The columns of the labels are not inputs; see [`open_inputs`], which also reports what it left out.
pub fn open_labelled(data: &Source, labels: &Source) -> Result<(Dataset, Labels)> {
    let used = Used { role: Role::Label, source: labels.clone() };
    let mut inputs = open_inputs(std::slice::from_ref(data), &[used], &[])?;
    let dataset = inputs.sets.remove(0);
    let labels = Labels::read(&open_labels(labels, &dataset)?)?;
    Ok((dataset, labels))
}

/// Opens the labels of samples, and checks that their numbers agree. The labels of a folder of images are the names of its
/// class folders.
pub fn open_labels(labels: &Source, samples: &Dataset) -> Result<Dataset> {
    let set = match labels.path().is_dir() {
        true => ImageFolder::list(labels.path())?.labels()?,
        false => labels.open()?,
    };
    if set.n_samples() != samples.n_samples() {
        return Err(DataError::Count {
            data: samples.place().to_owned(),
            n_data: samples.n_samples(),
            labels: set.place().to_owned(),
            n_labels: set.n_samples(),
        });
    }
    Ok(set)
}
