//! Patches of positions, and how covariances at a fixed offset propagate through them.
//!
//! The covariance between position `p` of one sample and `q` of the other is kept in planes of a fixed offset: the plane of
//! class `d` holds `K[p, (p + d) mod n]` for all `p`. A convolution adds up `K[s·p − b + δ, s·q − b + δ]` over its taps `δ`, the
//! same for both samples, so it reads positions at the offset `s·(q − p)` only. A pool has a tap for each sample, `δ` and `δ'`,
//! and reads the offsets `s·(q − p) + δ' − δ`. Both are products of one map per axis.

use super::refuse;
use crate::error::Result;

/// The numbers of rows and columns.
pub type Space = [usize; 2];

/// A patch of positions that slides over rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Its points along each axis.
    pub size: [usize; 2],
    /// Its steps.
    pub stride: [usize; 2],
    /// The distance between its points.
    pub dilation: [usize; 2],
    /// Padding before the first position.
    pub before: [usize; 2],
    /// Padding after the last position.
    pub after: [usize; 2],
    /// Whether padding is circular instead of zeros.
    pub circular: bool,
}

impl Patch {
    /// Steps of one, no padding.
    pub fn valid(size: [usize; 2]) -> Self {
        Self { size, stride: [1; 2], dilation: [1; 2], before: [0; 2], after: [0; 2], circular: false }
    }

    /// Steps of one, with zeros that keep the size of the image.
    pub fn same(size: [usize; 2]) -> Self {
        let before = size.map(|size| size.saturating_sub(1) / 2);
        let after = [0, 1].map(|axis| size[axis].saturating_sub(1) - before[axis]);
        Self { before, after, ..Self::valid(size) }
    }

    /// The same with other steps.
    pub fn stride(self, stride: [usize; 2]) -> Self {
        Self { stride, ..self }
    }

    /// The same with circular padding.
    pub fn circular(self) -> Self {
        Self { circular: true, ..self }
    }

    /// The number of points.
    pub(super) fn points(&self) -> usize {
        self.size[0] * self.size[1]
    }

    /// The positions of the result.
    pub(super) fn output(&self, input: Space, name: &str) -> Result<Space> {
        let along = |axis: usize| {
            let extent = (self.size[axis].checked_sub(1)?).checked_mul(self.dilation[axis])?.checked_add(1)?;
            let room = (input[axis] + self.before[axis] + self.after[axis]).checked_sub(extent)?;
            let narrow = !self.circular || self.before[axis].max(self.after[axis]) <= input[axis];
            (self.stride[axis] > 0 && self.dilation[axis] > 0 && narrow).then(|| room / self.stride[axis] + 1)
        };
        match (along(0), along(1)) {
            (Some(rows), Some(columns)) => Ok([rows, columns]),
            _ => refuse(name, &format!("its patch {self:?} does not fit {input:?} positions")),
        }
    }

    /// The maps of one axis that compute class `class` of the result, one for each source class.
    pub(super) fn maps(&self, axis: usize, input: usize, output: usize, class: usize, pool: bool) -> Vec<AxisMap> {
        let mut maps: Vec<AxisMap> = Vec::new();
        let (size, n) = (self.size[axis] as isize, input as isize);
        let point = |at: usize, tap: isize| {
            at as isize * self.stride[axis] as isize - self.before[axis] as isize + tap * self.dilation[axis] as isize
        };
        // The ends of the two ranges of the result in which the other sample's position has not, and has, wrapped
        // around.
        let stretches =
            [(0..output - class, class as isize), (output - class..output, class as isize - output as isize)];
        for (stretch, offset) in stretches {
            for left in 0..size {
                for right in if pool { 0..size } else { left..left + 1 } {
                    let shift = (right - left) * self.dilation[axis] as isize;
                    let offset = offset * self.stride[axis] as isize + shift;
                    let class = offset.rem_euclid(n) as usize;
                    for at in stretch.clone() {
                        let from = point(at, left);
                        let inside = |p: isize| (0..n).contains(&p);
                        if self.circular || inside(from) && inside(from + offset) {
                            let from = from.rem_euclid(n) as usize;
                            AxisMap::for_class(&mut maps, class).add(at, from, self.stride[axis]);
                        }
                    }
                }
            }
        }
        maps
    }

    /// The number of valid points of the patch at each position of the result.
    pub(super) fn counts(&self, axis: usize, input: usize, output: usize, count_padding: bool) -> Vec<usize> {
        let size = self.size[axis];
        let inside = |at: usize, tap: usize| {
            let from = (at * self.stride[axis] + tap * self.dilation[axis]).checked_sub(self.before[axis]);
            from.is_some_and(|from| from < input)
        };
        let whole = count_padding || self.circular;
        (0..output).map(|at| if whole { size } else { (0..size).filter(|&tap| inside(at, tap)).count() }).collect()
    }
}

/// The contribution of one class of an axis to the result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AxisMap {
    /// The source class.
    pub(super) class: usize,
    /// The sums to make.
    pub(super) taps: Vec<Tap>,
}

/// `result[to + i] += source[from + i·stride]` for `i < length`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tap {
    pub(super) to: usize,
    pub(super) from: usize,
    pub(super) length: usize,
    pub(super) stride: usize,
}

impl AxisMap {
    fn for_class(maps: &mut Vec<Self>, class: usize) -> &mut Self {
        let at = maps.iter().position(|map| map.class == class).unwrap_or_else(|| {
            maps.push(Self { class, taps: Vec::new() });
            maps.len() - 1
        });
        &mut maps[at]
    }

    fn add(&mut self, to: usize, from: usize, stride: usize) {
        if let Some(last) = self.taps.last_mut()
            && last.to + last.length == to
            && last.from + last.length * stride == from
        {
            last.length += 1;
            return;
        }
        self.taps.push(Tap { to, from, length: 1, stride });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All products of taps against the definition, for every offset.
    #[test]
    fn maps_are_the_sums_over_taps() {
        let same = Patch::same([3, 3]);
        let strided = Patch::same([3, 3]).stride([2, 2]);
        for (patch, n) in [(same, 5), (Patch::valid([3, 3]), 6), (strided, 7), (strided, 8), (same.circular(), 4)] {
            for pool in [false, true] {
                let m = patch.output([n, n], "patch").unwrap()[0];
                for p in 0..m {
                    for q in 0..m {
                        let mut expected = vec![0; n * n];
                        for left in 0..3 {
                            for right in if pool { 0..3 } else { left..left + 1 } {
                                let at = |p: usize, tap: usize| {
                                    (p * patch.stride[0] + tap) as isize - patch.before[0] as isize
                                };
                                let (i, j) = (at(p, left), at(q, right));
                                let inside = |i: isize| patch.circular || (0..n as isize).contains(&i);
                                if inside(i) && inside(j) {
                                    let wrap = |i: isize| i.rem_euclid(n as isize) as usize;
                                    expected[wrap(i) * n + wrap(j)] += 1;
                                }
                            }
                        }
                        let mut found = vec![0; n * n];
                        for map in patch.maps(0, n, m, (q + m - p) % m, pool) {
                            for tap in &map.taps {
                                if (tap.to..tap.to + tap.length).contains(&p) {
                                    let from = tap.from + (p - tap.to) * tap.stride;
                                    found[from * n + (from + map.class) % n] += 1;
                                }
                            }
                        }
                        assert_eq!(found, expected, "{patch:?} {pool} {p} {q}");
                    }
                }
            }
        }
    }
}
