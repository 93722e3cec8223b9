//! The arguments of the front door: arrays of samples and arrays of labels.

use crate::Error;
use mercer_data::{Classes, Dataset, Labels};
use mercer_kernel::Real;
use ndarray::{Array1, Array2, ArrayBase, ArrayView, Axis, Data, Dimension};

/// Samples in memory: an array whose first axis counts samples, or a tuple of them for a network with several inputs, in the order of
/// its inputs.
///
/// ```
/// use mercer::prelude::*;
///
/// let images = ndarray::Array4::<f32>::zeros((5, 1, 8, 8));
/// assert_eq!((&images).into_datasets()?[0].sample_shape(), [1, 8, 8]);
/// assert_eq!((images.view(), &images).into_datasets()?.len(), 2);
/// # Ok::<(), mercer::Error>(())
/// ```
pub trait InputArrays {
    /// The type of the numbers. Kernels are computed in it.
    type Scalar: Real;

    /// A data set per input. The numbers are copied.
    ///
    /// # Errors
    /// If an array has no axes, or the sets have different lengths.
    fn into_datasets(self) -> Result<Vec<Dataset>, Error>;
}

impl<T: Real, S: Data<Elem = T>, D: Dimension> InputArrays for &ArrayBase<S, D> {
    type Scalar = T;

    fn into_datasets(self) -> Result<Vec<Dataset>, Error> {
        Ok(vec![Dataset::from_array("array", self.view().into_dyn())?])
    }
}

impl<T: Real, D: Dimension> InputArrays for ArrayView<'_, T, D> {
    type Scalar = T;

    fn into_datasets(self) -> Result<Vec<Dataset>, Error> {
        (&self).into_datasets()
    }
}

impl<A: InputArrays, B: InputArrays<Scalar = A::Scalar>> InputArrays for (A, B) {
    type Scalar = A::Scalar;

    fn into_datasets(self) -> Result<Vec<Dataset>, Error> {
        let mut sets = self.0.into_datasets()?;
        sets.extend(self.1.into_datasets()?);
        match sets.iter().any(|set| set.n_samples() != sets[0].n_samples()) {
            true => Err(Error::with_code("shape", "the inputs have different numbers of samples")),
            false => Ok(sets),
        }
    }
}

/// The shape of one sample, for every input.
pub(super) fn shapes(inputs: &[Dataset]) -> Vec<Vec<usize>> {
    inputs.iter().map(|set| set.sample_shape().to_vec()).collect()
}

/// The labels of samples: numbers (one or several per sample) or classes (counted from 0).
pub trait TargetArrays {
    /// The targets of a machine: `Array2<f64>` or [`Classes`].
    type Targets;

    /// In the form that machines take.
    ///
    /// # Errors
    /// If the labels are not valid classes.
    fn targets(&self) -> Result<Self::Targets, Error>;

    /// In the form that networks and folders take.
    ///
    /// # Errors
    /// As [`targets`](Self::targets).
    fn labels(&self) -> Result<Labels, Error>;
}

impl TargetArrays for Array2<f64> {
    type Targets = Array2<f64>;

    fn targets(&self) -> Result<Array2<f64>, Error> {
        Ok(self.clone())
    }

    fn labels(&self) -> Result<Labels, Error> {
        Ok(Labels::Targets(self.clone()))
    }
}

impl TargetArrays for Array1<f64> {
    type Targets = Array2<f64>;

    fn targets(&self) -> Result<Array2<f64>, Error> {
        Ok(self.clone().insert_axis(Axis(1)))
    }

    fn labels(&self) -> Result<Labels, Error> {
        Ok(Labels::Targets(self.targets()?))
    }
}

impl TargetArrays for Classes {
    type Targets = Classes;

    fn targets(&self) -> Result<Classes, Error> {
        Ok(self.clone())
    }

    fn labels(&self) -> Result<Labels, Error> {
        Ok(Labels::Classes(self.clone()))
    }
}

impl TargetArrays for [usize] {
    type Targets = Classes;

    fn targets(&self) -> Result<Classes, Error> {
        let n_classes = self.iter().max().map_or(0, |largest| largest.saturating_add(1));
        Ok(Classes::new(self.to_vec(), n_classes)?)
    }

    fn labels(&self) -> Result<Labels, Error> {
        Ok(Labels::Classes(self.targets()?))
    }
}
