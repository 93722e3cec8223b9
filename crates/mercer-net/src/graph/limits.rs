//! Limits on the values of a graph. Shapes come from files and are not trusted beyond these limits.

use super::Meta;
use crate::op::{InferError, MAX_RANK, Op};

/// Elements of one value for one sample: a gigabyte in single precision.
const MAX_ELEMENTS: usize = 1 << 28;

/// Elements of all values of a graph for one sample.
pub(super) const MAX_TOTAL: usize = 1 << 34;

/// The number of elements of a shape, if it is within the limits. The nonzero sizes of empty values count too, because
/// parts of their shapes are multiplied.
pub(crate) fn count(shape: &[usize]) -> Option<usize> {
    let bound = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)))?;
    (bound <= MAX_ELEMENTS).then(|| crate::shape::numel(shape))
}

/// A primitive's result, within limits.
pub(crate) fn infer(op: &dyn Op, inputs: &[&Meta]) -> Result<Meta, InferError> {
    let check_rank = |meta: &Meta| {
        if meta.rank() > MAX_RANK && !op.is_view() {
            return Err(InferError::Shape(format!("more than {MAX_RANK} axes")));
        }
        Ok(())
    };
    inputs.iter().try_for_each(|meta| check_rank(meta))?;
    let meta = op.infer(inputs)?;
    check_rank(&meta)?;
    match count(&meta.shape) {
        Some(_) => Ok(meta),
        None => Err(InferError::Shape(format!("a result of shape {:?} is too large", meta.shape))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_counted_without_overflow() {
        assert_eq!(count(&[2, 3]), Some(6));
        assert_eq!(count(&[]), Some(1));
        assert_eq!(count(&[0, 7]), Some(0));
        assert_eq!(count(&[1 << 20, 1 << 20]), None);
        assert_eq!(count(&[usize::MAX, usize::MAX]), None);
        assert_eq!(count(&[0, usize::MAX, usize::MAX]), None);
    }
}
