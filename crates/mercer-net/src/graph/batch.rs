//! Tracking the batch axis.
//!
//! A graph is written for one sample and run for many: a value that depends on the data has its shape for *one* sample,
//! and the runtime adds the sample axis. Files, however, have a batch axis, and operations along it may mix samples. So
//! every such value carries the places in its shape where the file's batch axis may be. A primitive that works along an
//! axis rules that axis out. When no place is left, the primitive mixes samples.
//!
//! There may be several candidates, because a reshape next to axes of size one is ambiguous.

/// A place for the batch inside a shape: `major` elements of axis `axis` come before each step along the batch
/// (1 when the batch is the outer part of a folded axis, as in `B·heads`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The axis.
    pub axis: usize,
    /// How much of that axis is outside the batch.
    pub major: usize,
}

/// What is known about the batch axis of a value that depends on the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Batch {
    /// The file does not say, or has squeezed the axis away. Nothing can be checked.
    Untracked,
    /// It is at one of these places (at least one).
    At(Vec<Position>),
}

/// A primitive works along the only axis that could be the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixes;

impl Batch {
    /// The batch is the whole of `axis`.
    pub fn axis(axis: usize) -> Self {
        Self::At(vec![Position { axis, major: 1 }])
    }

    fn keep(candidates: impl Iterator<Item = Position>) -> Result<Self, Mixes> {
        let kept: Vec<_> = candidates.collect();
        if kept.is_empty() { Err(Mixes) } else { Ok(Self::At(kept)) }
    }

    /// After an operation that mixes elements along `axes`.
    pub fn not_along(&self, axes: &[usize]) -> Result<Self, Mixes> {
        match self {
            Self::Untracked => Ok(Self::Untracked),
            Self::At(places) => Self::keep(places.iter().copied().filter(|p| !axes.contains(&p.axis))),
        }
    }

    /// After axes moved: axis `a` of the old shape is axis `to(a)` of the new one, or is gone.
    pub fn moved(&self, to: impl Fn(usize) -> Option<usize>) -> Result<Self, Mixes> {
        match self {
            Self::Untracked => Ok(Self::Untracked),
            Self::At(places) => {
                Self::keep(places.iter().filter_map(|p| to(p.axis).map(|axis| Position { axis, major: p.major })))
            }
        }
    }

    /// After a reshape, which keeps the number of elements outside the batch.
    pub fn reshaped(&self, from: &[usize], to: &[usize]) -> Self {
        let Self::At(places) = self else { return Self::Untracked };
        let mut found: Vec<Position> = Vec::new();
        for place in places {
            let outside = from[..place.axis].iter().product::<usize>() * place.major;
            let mut before = 1;
            for (axis, &size) in to.iter().enumerate() {
                let fits = before != 0 && outside.is_multiple_of(before) && {
                    let major = outside / before;
                    major == 1 || (major <= size && size.is_multiple_of(major))
                };
                let here = Position { axis, major: outside.checked_div(before).unwrap_or(1) };
                if fits && !found.contains(&here) {
                    found.push(here);
                }
                before *= size;
            }
        }
        if found.is_empty() { Self::Untracked } else { Self::At(found) }
    }

    /// Both hold: the values meet elementwise.
    pub fn meet(&self, other: &Self) -> Result<Self, Mixes> {
        match (self, other) {
            (Self::Untracked, known) | (known, Self::Untracked) => Ok(known.clone()),
            (Self::At(a), Self::At(b)) => Self::keep(a.iter().copied().filter(|p| b.contains(p))),
        }
    }
}

/// The batch of the result of an elementwise operation, from each operand's shape and batch.
///
/// An axis along which an operand is broadcast is not its batch: several samples could not be broadcast, and a shared
/// operand with several entries there has one per position in a batch.
pub fn meet_all<'a>(
    operands: impl Iterator<Item = (&'a [usize], Option<&'a Batch>)>,
    shape: &[usize],
) -> Result<Option<Batch>, Mixes> {
    let mut result: Option<Batch> = None;
    for (own, batch) in operands {
        let Some(batch) = batch else { continue };
        let missing = shape.len() - own.len();
        let shifted = batch.moved(|axis| (own[axis] == shape[axis + missing]).then_some(axis + missing))?;
        result = Some(match result {
            None => shifted,
            Some(known) => known.meet(&shifted)?,
        });
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fold_of_heads_into_the_batch_and_back_is_followed() {
        // [B, T, H, D] -> transpose -> [B, H, T, D] -> [B·H, T, D] -> [B, H, T, D], for one sample with T=5, H=2, D=3.
        let folded = Batch::axis(0).reshaped(&[1, 2, 5, 3], &[2, 5, 3]);
        assert_eq!(folded, Batch::At(vec![Position { axis: 0, major: 1 }]));
        assert!(folded.not_along(&[0]).is_err());
        assert!(folded.not_along(&[1, 2]).is_ok());
        let back = folded.reshaped(&[2, 5, 3], &[1, 2, 5, 3]);
        assert!(matches!(&back, Batch::At(p) if p.contains(&Position { axis: 0, major: 1 })));
    }

    #[test]
    fn a_sequence_first_layout_is_followed() {
        // [T, B, D] -> [T·B, D] -> [T, B, D] with T=5, D=3.
        let folded = Batch::axis(1).reshaped(&[5, 1, 3], &[5, 3]);
        assert_eq!(folded, Batch::At(vec![Position { axis: 0, major: 5 }, Position { axis: 1, major: 1 }]));
        let after_dense = folded.not_along(&[1]).unwrap();
        assert!(after_dense.not_along(&[0]).is_err());
        assert!(matches!(after_dense.reshaped(&[5, 3], &[5, 1, 3]), Batch::At(p) if p.iter().any(|q| q.axis == 1)));
    }

    #[test]
    fn mixing_is_seen() {
        assert_eq!(Batch::axis(0).not_along(&[0]), Err(Mixes));
        assert_eq!(Batch::axis(0).meet(&Batch::axis(1)), Err(Mixes));
        assert_eq!(Batch::axis(0).moved(|_| None), Err(Mixes));
    }
}
