//! Preprocessing: a list of steps that is applied to every block of rows as it is read.
//!
//! The list is data, so it can be stored with a trained network and applied to later inputs of the network.

use ndarray::{ArrayD, Axis, IxDyn, Zip};
use serde::{Deserialize, Serialize};

use crate::element::DataScalar;
use crate::error::{DataError, Result};
use crate::stored::checked_count;

/// One step. Shapes are those of a sample, without the axis of samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Step {
    /// x ← factor · x
    Scale(f64),
    /// x ← (x − mean) / std, with one value for everything or one per index of `axis`.
    Normalise {
        /// The means.
        mean: Vec<f64>,
        /// The standard deviations.
        std: Vec<f64>,
        /// The sample axis to which several values belong: the channels, 0 in a channels-first layout.
        #[serde(default)]
        axis: usize,
    },
    /// Move the last axis to the front: (H, W, C) → (C, H, W).
    ChannelsFirst,
    /// Move the first axis to the end: (C, H, W) → (H, W, C).
    ChannelsLast,
    /// Put an axis of length 1 in front: (H, W) → (1, H, W).
    AddChannel,
    /// Give the sample another shape with the same number of elements.
    Reshape(Vec<usize>),
    /// Make the sample a vector.
    Flatten,
}

/// The steps between a file and a network, in order. As JSON it is a list.
///
/// ```
/// use mercer_data::Preprocess;
///
/// let steps = Preprocess::new().scale(1.0 / 255.0).channels_first().normalise(vec![0.5; 3], vec![0.25; 3]);
/// assert_eq!(steps.sample_shape(&[32, 32, 3])?, [3, 32, 32]);
/// # Ok::<(), mercer_data::DataError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Preprocess {
    /// The steps, in the order of application.
    pub steps: Vec<Step>,
}

impl Preprocess {
    /// No steps: data are unchanged.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a step.
    pub fn then(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// Multiplies by a factor, such as 1/255.
    pub fn scale(self, factor: f64) -> Self {
        self.then(Step::Scale(factor))
    }

    /// Subtracts the mean and divides by the standard deviation: one value for all, or one per channel of a
    /// channels-first sample (one per feature of a vector).
    pub fn normalise(self, mean: Vec<f64>, std: Vec<f64>) -> Self {
        self.then(Step::Normalise { mean, std, axis: 0 })
    }

    /// (H, W, C) → (C, H, W), as most networks expect.
    pub fn channels_first(self) -> Self {
        self.then(Step::ChannelsFirst)
    }

    /// (C, H, W) → (H, W, C).
    pub fn channels_last(self) -> Self {
        self.then(Step::ChannelsLast)
    }

    /// (H, W) → (1, H, W).
    pub fn add_channel(self) -> Self {
        self.then(Step::AddChannel)
    }

    /// Gives every sample this shape.
    pub fn reshape(self, shape: &[usize]) -> Self {
        self.then(Step::Reshape(shape.to_vec()))
    }

    /// Makes every sample a vector.
    pub fn flatten(self) -> Self {
        self.then(Step::Flatten)
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The resulting shape of a sample of the given shape. This checks every step.
    pub fn sample_shape(&self, sample_shape: &[usize]) -> Result<Vec<usize>> {
        self.steps.iter().try_fold(sample_shape.to_vec(), |shape, step| step.shape(shape))
    }

    /// Applies the steps to an array whose first axis counts samples.
    pub fn apply<T: DataScalar>(&self, mut array: ArrayD<T>) -> Result<ArrayD<T>> {
        let Some((&n_samples, sample_shape)) = array.shape().split_first() else {
            let (place, reason) = ("preprocessing".to_owned(), "there is no axis of samples".to_owned());
            return Err(DataError::Shape { place, shape: Vec::new(), reason });
        };
        let mut shape = sample_shape.to_vec();
        for step in &self.steps {
            shape = step.shape(shape)?;
            let whole: Vec<usize> = std::iter::once(n_samples).chain(shape.iter().copied()).collect();
            array = step.apply(array, &whole)?;
        }
        Ok(array)
    }
}

impl Step {
    fn shape(&self, mut shape: Vec<usize>) -> Result<Vec<usize>> {
        let fail = |shape: &[usize], reason: &str| {
            let place = format!("preprocessing step {self:?}");
            Err(DataError::Shape { place, shape: shape.to_vec(), reason: reason.to_owned() })
        };
        match self {
            Self::Scale(factor) if !factor.is_finite() || *factor == 0.0 => {
                return argument("scale", format!("must be finite and not zero, not {factor}"));
            }
            Self::Scale(_) => {}
            Self::Normalise { mean, std, axis } => {
                if let Some(bad) = mean.iter().find(|mean| !mean.is_finite()) {
                    return argument("mean", format!("must be finite, not {bad}"));
                }
                if let Some(bad) = std.iter().find(|std| !(std.is_finite() && **std > 0.0)) {
                    return argument("std", format!("must be finite and positive, not {bad}"));
                }
                let several = if mean.len() > 1 || std.len() > 1 { shape.get(*axis).copied() } else { Some(1) };
                let fits = |values: &[f64]| values.len() == 1 || Some(values.len()) == several;
                if !fits(mean) || !fits(std) {
                    let (means, stds) = (mean.len(), std.len());
                    let reason = format!(
                        "{means} means and {stds} standard deviations were given, but there must be 1, or as many as the length of axis {axis} of the sample"
                    );
                    return fail(&shape, &reason);
                }
            }
            Self::ChannelsFirst | Self::ChannelsLast if shape.len() < 2 => {
                return fail(&shape, "a sample needs two or more axes to move its channels");
            }
            Self::ChannelsFirst => shape.rotate_right(1),
            Self::ChannelsLast => shape.rotate_left(1),
            Self::AddChannel => shape.insert(0, 1),
            Self::Reshape(to) => {
                let place = "preprocessing";
                if checked_count(place, &shape)? != checked_count(place, to)? {
                    return fail(&shape, "the number of elements differs");
                }
                shape.clone_from(to);
            }
            Self::Flatten => shape = vec![checked_count("preprocessing", &shape)?],
        }
        Ok(shape)
    }

    /// `to` is the whole shape afterwards, samples included; it has been checked.
    fn apply<T: DataScalar>(&self, mut array: ArrayD<T>, to: &[usize]) -> Result<ArrayD<T>> {
        match self {
            // In f64, so that x/255 is as accurate as a division in the narrow type.
            Self::Scale(factor) => array.mapv_inplace(|value| T::narrow(value.wide() * factor)),
            Self::Normalise { mean, std, axis } => {
                let normalised = |value: T, channel: usize| {
                    let (mean, std) = (mean[channel % mean.len()], std[channel % std.len()]);
                    T::narrow((value.wide() - mean) / std)
                };
                if mean.len() == 1 && std.len() == 1 {
                    array.mapv_inplace(|value| normalised(value, 0));
                } else {
                    for (channel, mut part) in array.axis_iter_mut(Axis(axis + 1)).enumerate() {
                        Zip::from(&mut part).for_each(|value| *value = normalised(*value, channel));
                    }
                }
            }
            Self::ChannelsFirst | Self::ChannelsLast => {
                let mut axes: Vec<usize> = (0..array.ndim()).collect();
                match self {
                    Self::ChannelsFirst => axes[1..].rotate_right(1),
                    _ => axes[1..].rotate_left(1),
                }
                array = array.permuted_axes(IxDyn(&axes)).as_standard_layout().into_owned();
            }
            Self::AddChannel | Self::Reshape(_) | Self::Flatten => {
                if !array.is_standard_layout() {
                    array = array.as_standard_layout().into_owned();
                }
                array = array.into_shape_with_order(IxDyn(to)).map_err(|error| DataError::Shape {
                    place: "preprocessing".to_owned(),
                    shape: to.to_vec(),
                    reason: error.to_string(),
                })?;
            }
        }
        Ok(array)
    }
}

fn argument<T>(name: &'static str, reason: String) -> Result<T> {
    Err(DataError::Argument { name, reason })
}
