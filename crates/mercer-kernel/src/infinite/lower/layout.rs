//! The axes of a value: units and positions.

use crate::infinite::patch::Space;

/// The axes of a value of some shape. All other axes have size one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The axis of units.
    pub(super) channel: usize,
    /// The axes of positions, rows before columns; at most two.
    pub(super) space: Vec<usize>,
    /// Whether the unit axis holds the units of all positions side by side.
    pub(super) flat: bool,
}

impl Layout {
    /// Units along one axis, positions along all other axes larger than one.
    pub(super) fn with_channel(shape: &[usize], channel: usize) -> Option<Self> {
        let space: Vec<usize> = (0..shape.len()).filter(|&axis| axis != channel && shape[axis] > 1).collect();
        (space.len() <= 2).then_some(Self { channel, space, flat: false })
    }

    /// Images with the units along axis one.
    pub(super) fn image(shape: &[usize]) -> Option<Self> {
        let space: Vec<usize> = (2..shape.len()).collect();
        (shape.first() == Some(&1) && space.len() <= 2).then_some(Self { channel: 1, space, flat: false })
    }

    /// Rows and columns.
    pub(super) fn sizes(&self, shape: &[usize]) -> Space {
        match self.space[..] {
            [row, column] => [shape[row], shape[column]],
            [column] => [1, shape[column]],
            _ => [1, 1],
        }
    }

    /// Whether units are along axis one and positions along all later axes.
    pub(super) fn is_image(&self, shape: &[usize]) -> bool {
        let wide = |axis: &usize| shape[*axis] > 1;
        let expected: Vec<usize> = (2..shape.len()).filter(wide).collect();
        let found: Vec<usize> = self.space.iter().copied().filter(wide).collect();
        !self.flat && self.channel == 1 && expected == found
    }

    /// The layout after a permutation of the axes.
    pub(super) fn transposed(&self, perm: &[usize]) -> Option<Self> {
        let place = |axis: usize| perm.iter().position(|&from| from == axis);
        let space: Option<Vec<usize>> = self.space.iter().map(|&axis| place(axis)).collect();
        let space = space.filter(|space| space.is_sorted())?;
        Some(Self { channel: place(self.channel)?, space, flat: self.flat })
    }

    /// The layout after a reshape that only moves axes of size one, or merges all axes.
    pub(super) fn reshaped(&self, from: &[usize], to: &[usize]) -> Option<Self> {
        let wide = |shape: &[usize]| (0..shape.len()).filter(|&axis| shape[axis] > 1).collect::<Vec<_>>();
        let (before, after) = (wide(from), wide(to));
        if before.iter().map(|&axis| from[axis]).eq(after.iter().map(|&axis| to[axis])) {
            let place = |axis: usize| before.iter().position(|&at| at == axis).map(|at| after[at]);
            let space: Vec<usize> = self.space.iter().filter_map(|&axis| place(axis)).collect();
            // A single unit has no axis; any free axis will do.
            let free = || (0..to.len()).rev().find(|&axis| to[axis] == 1);
            return Some(Self { channel: place(self.channel).or_else(free)?, space, flat: self.flat });
        }
        match after[..] {
            [axis] => Some(Self { channel: axis, space: Vec::new(), flat: true }),
            _ => None,
        }
    }

    /// The layout after axes have been reduced.
    pub(super) fn reduced(&self, axes: &[usize], keep: bool) -> Self {
        let place = |axis: usize| if keep { axis } else { axis - axes.iter().filter(|&&gone| gone < axis).count() };
        let left = |axis: &&usize| keep || !axes.contains(axis);
        let space = self.space.iter().filter(left).map(|&axis| place(axis)).collect();
        Self { channel: place(self.channel), space, flat: self.flat }
    }
}
