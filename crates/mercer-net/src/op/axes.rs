//! Small arithmetic on axes that several primitives need, without allocation.

use super::InferError;
use super::loops::{Loops, MAX_RANK};
use crate::element::Element;
use crate::graph::{Batch, Meta, Mixes};

/// The only operand of a primitive, with its rank checked.
pub(super) fn only<'a>(inputs: &[&'a Meta]) -> Result<&'a Meta, InferError> {
    let [x] = inputs else { return Err(InferError::Shape("needs one operand".into())) };
    check_rank(x.rank())?;
    Ok(x)
}

pub(super) fn check_rank(rank: usize) -> Result<(), InferError> {
    if rank > MAX_RANK { Err(InferError::Shape(format!("more than {MAX_RANK} axes"))) } else { Ok(()) }
}

pub(super) fn check_axis(axis: usize, rank: usize) -> Result<(), InferError> {
    if axis < rank { Ok(()) } else { Err(InferError::Shape(format!("there is no axis {axis}"))) }
}

/// Row-major strides; those of missing axes are 0.
pub(super) fn strides(shape: &[usize]) -> [usize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1;
    for axis in (0..shape.len()).rev() {
        strides[axis] = stride;
        stride *= shape[axis];
    }
    strides
}

/// Walks a shape in order and gives the group of each element. Elements that differ only along `axes` are in one group.
/// Also returns the number of groups and of elements per group.
pub(super) fn groups(shape: &[usize], axes: &[usize]) -> (Loops<1>, usize, usize) {
    let mut strides = [0; MAX_RANK];
    let (mut count, mut members) = (1, 1);
    for axis in (0..shape.len()).rev() {
        if axes.contains(&axis) {
            members *= shape[axis];
        } else {
            strides[axis] = count;
            count *= shape[axis];
        }
    }
    (Loops::strided(shape, [&strides[..shape.len()]]), count, members)
}

/// The shape and batch after a reduction along `axes`, which stay with size one or are removed.
pub(super) fn reduced(x: &Meta, axes: &[usize], keep: bool) -> Result<Meta, InferError> {
    axes.iter().try_for_each(|&axis| check_axis(axis, x.rank()))?;
    let gone = |axis: &usize| axes.contains(axis);
    let shape = if keep {
        (0..x.rank()).map(|axis| if gone(&axis) { 1 } else { x.shape[axis] }).collect()
    } else {
        (0..x.rank()).filter(|axis| !gone(axis)).map(|axis| x.shape[axis]).collect()
    };
    let place = |axis: usize| Some(if keep { axis } else { (0..axis).filter(|axis| !gone(axis)).count() });
    let follow = |batch: &Batch| -> Result<Batch, Mixes> { batch.not_along(axes)?.moved(place) };
    Ok(Meta { shape, batch: x.batch.as_ref().map(follow).transpose()? })
}

/// How many partial results a fold over a slice keeps: a full vector of the widest machines.
const LANES: usize = 16;

/// Folds terms in interleaved parts and a fixed order, so that it vectorises; `f` must not depend on the order.
#[inline(always)]
pub(super) fn fold<T: Element>(x: &[T], identity: T, f: impl Fn(T, T) -> T) -> T {
    fold2(x, x, identity, |x, _| x, f)
}

/// As [`fold`], over terms made from two slices of one length.
#[inline(always)]
pub(super) fn fold2<T: Element>(a: &[T], b: &[T], identity: T, term: impl Fn(T, T) -> T, f: impl Fn(T, T) -> T) -> T {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut parts = [identity; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            parts[lane] = f(parts[lane], term(a[lane], b[lane]));
        }
    }
    // In halves, unrolled by hand: from a loop, the compiler would move the parts out of vector registers.
    let eight: [T; 8] = std::array::from_fn(|lane| f(parts[lane], parts[lane + 8]));
    let four: [T; 4] = std::array::from_fn(|lane| f(eight[lane], eight[lane + 4]));
    let one = f(f(four[0], four[2]), f(four[1], four[3]));
    a_rest.iter().zip(b_rest).fold(one, |sum, (&a, &b)| f(sum, term(a, b)))
}

/// `Σ x`.
#[inline(always)]
pub(super) fn total<T: Element>(x: &[T]) -> T {
    fold(x, T::zero(), |a, b| a + b)
}

/// `Σ a·b`.
#[inline(always)]
pub(super) fn dot<T: Element>(a: &[T], b: &[T]) -> T {
    fold2(a, b, T::zero(), |a, b| a * b, |a, b| a + b)
}

/// A number as an index along an axis of `size`. Negative numbers count from the end. Numbers out of range are clamped,
/// because a kernel cannot fail; indices from a user are checked earlier.
#[inline(always)]
pub(super) fn position<T: Element>(index: T, size: usize) -> usize {
    let index = index.wide() as i64;
    let index = if index < 0 { index + size as i64 } else { index };
    index.clamp(0, size as i64 - 1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_of_any_length_and_positions() {
        for length in 0..50 {
            let x: Vec<f64> = (0..length).map(|i| i as f64 + 1.0).collect();
            assert_eq!(total(&x), (length * (length + 1) / 2) as f64);
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f64>());
        }
        assert_eq!([-1.0, -3.0, 2.0, 7.0, -9.0].map(|i: f32| position(i, 3)), [2, 0, 2, 2, 0]);
    }

    #[test]
    fn the_batch_follows_reductions() {
        let x = Meta::batched([5, 1, 3], Batch::axis(1));
        assert_eq!(reduced(&x, &[0], false).unwrap(), Meta::batched([1, 3], Batch::axis(0)));
        assert_eq!(reduced(&x, &[0, 2], true).unwrap(), Meta::batched([1, 1, 1], Batch::axis(1)));
        assert_eq!(reduced(&x, &[0, 1], true), Err(InferError::Mixes));
        assert!(matches!(reduced(&x, &[3], true), Err(InferError::Shape(_))));
    }
}
