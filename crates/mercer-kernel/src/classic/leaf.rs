//! One classic kernel in two phases: vectors are prepared, then pairs become values.

use super::catalogue::Family;
use super::error::ClassicError;
use super::expression::Term;
use super::pairs::{Vectors, absolute_distances, chords, dots, squared_distances};
use super::shape;
use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use crate::products::{all_finite, mirror, squares};
use mercer_linalg::elementary::{cos, sin_in_place};
use rayon::prelude::*;
use std::marker::PhantomData;

/// Samples per thread and step.
const GRAIN: usize = 64;

/// A kernel of the catalogue for samples of `size` numbers.
#[derive(Clone, Debug)]
pub(super) struct Leaf<T> {
    pub(super) term: Term,
    size: usize,
    scalar: PhantomData<T>,
}

/// Samples in the form that the kernel needs.
#[derive(Clone, Debug)]
pub(super) struct Prepared<T> {
    /// The vectors: unchanged, divided by lengthscales or by their lengths, or points on circles.
    pub(super) rows: Vec<T>,
    pub(super) width: usize,
    /// The squared lengths of the rows for distances, or the lengths of the samples for angles.
    pub(super) lengths: Vec<T>,
}

impl<T: Real> Prepared<T> {
    pub(super) fn vectors(&self, samples: usize) -> Vectors<'_, T> {
        Vectors { data: &self.rows, count: samples, width: self.width }
    }
}

impl Term {
    /// A setting that is one number.
    pub(super) fn one(&self, name: &str) -> f64 {
        let at = self.spec.settings.iter().position(|setting| setting.name == name);
        at.map_or(f64::NAN, |at| self.values[at][0])
    }

    /// The lengthscales of a stationary kernel; empty for others.
    pub(super) fn lengthscales(&self) -> &[f64] {
        let at = self.spec.settings.iter().position(|setting| setting.name == "lengthscale");
        at.map_or(&[], |at| &self.values[at])
    }
}

impl<T: Real> Leaf<T> {
    /// As many lengthscales as numbers, or one.
    pub(super) fn new(term: &Term, size: usize) -> Result<Self, ClassicError> {
        let given = term.lengthscales().len();
        if given > 1 && given != size {
            let kernel = term.spec.name.to_owned();
            return Err(ClassicError::Lengthscales { kernel, given, dimensions: size });
        }
        Ok(Self { term: term.clone(), size, scalar: PhantomData })
    }

    fn family(&self) -> Family {
        self.term.spec.family
    }

    /// The length of a prepared vector.
    fn width(&self) -> usize {
        if self.family() == Family::Periodic { 2 * self.size } else { self.size }
    }

    /// The lengthscale of every coordinate of a sample.
    pub(super) fn scales(&self) -> Vec<T> {
        let given = self.term.lengthscales();
        (0..self.size).map(|at| T::narrow(if given.len() == 1 { given[0] } else { given[at] })).collect()
    }

    pub(super) fn vectors(&self, data: &[T], samples: usize) -> Prepared<T> {
        let (size, width) = (self.size, self.width());
        let mut rows = vec![T::zero(); samples * width];
        let mut lengths = vec![T::zero(); samples];
        let (row_grain, grain) = ((GRAIN * width).max(1), (GRAIN * size).max(1));
        let pieces = rows.par_chunks_mut(row_grain).zip(lengths.par_chunks_mut(GRAIN)).zip(data.par_chunks(grain));
        let scales = if self.term.lengthscales().is_empty() { Vec::new() } else { self.scales() };
        pieces.for_each(|((rows, lengths), data)| match self.family() {
            Family::Linear | Family::Polynomial => rows.copy_from_slice(data),
            Family::Cosine | Family::ArcCosine => unit_vectors(data, rows, lengths),
            Family::Periodic => self.circles(data, &scales, rows),
            _ => {
                for (to, from) in rows.chunks_exact_mut(size).zip(data.chunks_exact(size)) {
                    to.iter_mut().zip(from).zip(&scales).for_each(|((to, &x), &scale)| *to = x / scale);
                }
            }
        });
        if self.family().by_distance() {
            lengths = squares(&rows, samples);
        }
        Prepared { rows, width, lengths }
    }

    /// `(cos, sin)(2πx/period)/ℓ`, all cosines before all sines: squared distances of these points are
    /// `4 Σ sin²(π(x − x')/period)/ℓ²`.
    fn circles(&self, data: &[T], scales: &[T], rows: &mut [T]) {
        let turn = T::narrow(std::f64::consts::TAU / self.term.one("period"));
        for (row, from) in rows.chunks_exact_mut(2 * self.size).zip(data.chunks_exact(self.size)) {
            let (cosines, sines) = row.split_at_mut(self.size);
            sines.iter_mut().zip(from).for_each(|(to, &x)| *to = turn * x);
            cos(sines, cosines);
            sin_in_place(sines);
            cosines.iter_mut().zip(sines).zip(scales).for_each(|((cosine, sine), &scale)| {
                *cosine /= scale;
                *sine /= scale;
            });
        }
    }

    /// The inner product or distance of every pair.
    pub(super) fn pairs(&self, (a, n): (&Prepared<T>, usize), (b, m): (&Prepared<T>, usize), tile: &mut [T]) {
        let (x, y) = (a.vectors(n), b.vectors(m));
        match self.family() {
            Family::Linear | Family::Polynomial | Family::Cosine => dots(x, y, tile),
            Family::ArcCosine => chords(x, y, tile),
            Family::Laplacian => absolute_distances(x, y, tile),
            _ => squared_distances((x, &a.lengths), (y, &b.lengths), tile),
        }
    }

    /// Turns them into kernel values. If both blocks are the same, only the upper triangle is computed and copied.
    pub(super) fn finish(&self, (a, n): (&Prepared<T>, usize), (b, m): (&Prepared<T>, usize), tile: &mut [T]) {
        let symmetric = a.vectors(n).is(&b.vectors(m));
        let cosine = self.family() == Family::Cosine;
        for (at, row) in tile.chunks_exact_mut(m.max(1)).enumerate() {
            let from = if symmetric { at } else { 0 };
            let row = &mut row[from..];
            match self.family() {
                Family::ArcCosine => shape::arc(self.term.one("order") as u32, row, a.lengths[at], &b.lengths[from..]),
                _ => shape::values(&self.term, row),
            }
            if cosine && symmetric {
                row[0] = unit(a.lengths[at]);
            }
        }
        if symmetric {
            mirror(tile, n);
        }
    }
}

impl<T: Real> Kernel<T> for Leaf<T> {
    fn cost(&self) -> Cost {
        let width = self.width();
        // An exponential takes about twenty operations; absolute distances take three per coordinate instead of two.
        let per_number = if self.family() == Family::Laplacian { 3 } else { 2 };
        Cost {
            sample_bytes: (width + 1) * size_of::<T>(),
            // Absolute distances are taken from a copy of the second block.
            contract_bytes: if self.family() == Family::Laplacian { width * size_of::<T>() } else { 0 },
            prepare_flops: if self.family() == Family::Periodic { 40 * width } else { 2 * width } as f64,
            pair_flops: (per_number * width + 20) as f64,
            ..Cost::default()
        }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!(self.term.to_string())
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        let [data] = inputs else {
            let text = format!("{} is a kernel of one input, not of {}", self.term, inputs.len());
            return Err(KernelError::Setting(text));
        };
        if data.len() != samples * self.size {
            let text = format!("{} numbers are not {samples} samples of {} each", data.len(), self.size);
            return Err(KernelError::Setting(text));
        }
        if !all_finite(data) {
            let at = data.iter().position(|x| !x.is_finite()).unwrap_or_default();
            return Err(KernelError::NotFinite { place: "the data".to_owned(), sample: at / self.size.max(1) });
        }
        let prepared = self.vectors(data, samples);
        if !(all_finite(&prepared.rows) && all_finite(&prepared.lengths)) {
            let wrong = |at: &usize| {
                let row = &prepared.rows[at * prepared.width..(at + 1) * prepared.width];
                !(all_finite(row) && prepared.lengths[*at].is_finite())
            };
            let sample = (0..samples).find(wrong).unwrap_or_default();
            let place = format!("the squared length, as {} scales it,", self.term.spec.name);
            return Err(KernelError::NotFinite { place, sample });
        }
        Ok(Block::new(samples, prepared))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        let x = (a.content::<Prepared<T>>(), a.samples());
        let y = (b.content::<Prepared<T>>(), b.samples());
        self.pairs(x, y, tile);
        self.finish(x, y, tile);
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        let prepared = a.content::<Prepared<T>>();
        match self.family() {
            Family::Linear => squares(&prepared.rows, a.samples()),
            Family::Polynomial => {
                let mut diagonal = squares(&prepared.rows, a.samples());
                shape::values(&self.term, &mut diagonal);
                diagonal
            }
            Family::Cosine => prepared.lengths.iter().map(|&length| unit(length)).collect(),
            Family::ArcCosine => {
                let order = self.term.one("order") as u32;
                let diagonal = |&length: &T| {
                    // A zero vector is orthogonal to all vectors, including itself: half of the steps are on.
                    let mut chord = [if length > T::zero() { T::zero() } else { T::narrow(2.0) }];
                    shape::arc(order, &mut chord, length, &[length]);
                    chord[0]
                };
                prepared.lengths.iter().map(diagonal).collect()
            }
            _ => vec![T::one(); a.samples()],
        }
    }
}

/// Vectors divided by their lengths, and the lengths. The largest element is factored out first, so that squares
/// neither overflow nor underflow.
fn unit_vectors<T: Real>(data: &[T], rows: &mut [T], lengths: &mut [T]) {
    let size = data.len() / lengths.len().max(1);
    for ((to, from), length) in rows.chunks_exact_mut(size.max(1)).zip(data.chunks_exact(size.max(1))).zip(lengths) {
        let most = from.iter().fold(T::zero(), |most, x| most.max(x.abs()));
        if most == T::zero() {
            continue;
        }
        to.iter_mut().zip(from).for_each(|(to, &x)| *to = x / most);
        let root = crate::products::square(to).sqrt();
        to.iter_mut().for_each(|x| *x /= root);
        *length = most * root;
    }
}

/// The cosine of a vector with itself.
fn unit<T: Real>(length: T) -> T {
    if length > T::zero() { T::one() } else { T::zero() }
}
