//! Pools: the largest or the average number in a sliding window.
//!
//! For the maximum, padding is −∞. The first maximum (in row-major order of the window) has the derivative; its
//! position is found again from `x` and `y` instead of being stored. An average divides by the number of points inside
//! the image or, with `count_padding`, inside the padded image. Points past the end, when sizes are rounded up, never
//! count.

mod geometry;
mod halves;
mod window;

use super::axes::only;
use super::conv::Window;
use super::linear::clear;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use geometry::Geometry;

/// Slides a window over `[n, channels, …space]` with one to three spatial axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// What is computed from a window.
    pub kind: Pooling,
    /// The size of the window along each spatial axis.
    pub kernel: Vec<usize>,
    /// Stride, dilation and padding.
    pub window: Window,
    /// Whether the last window may extend past the end (`ceil_mode`).
    pub round_up: bool,
}

/// What a [`Pool`] computes from a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The largest number; the first of equals has the derivative.
    Max,
    /// The mean.
    Average {
        /// Whether padding counts as zeros.
        count_padding: bool,
    },
}

impl Pool {
    fn geometry(&self, x: &[usize], y: &[usize]) -> Geometry {
        Geometry::new(&self.window, &self.kernel, x, y)
    }

    fn count_padding(&self) -> bool {
        self.kind == Pooling::Average { count_padding: true }
    }
}

impl Op for Pool {
    fn name(&self) -> &'static str {
        "Pool"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let x = only(inputs)?;
        if !(3..=5).contains(&x.rank()) {
            return Err(InferError::Shape("a pool has one to three spatial axes".into()));
        }
        let mut shape = x.shape[..2].to_vec();
        shape.extend(self.window.output(&x.shape[2..], &self.kernel, self.round_up)?);
        for axis in 0..self.kernel.len() {
            let extent = (self.kernel[axis] - 1).saturating_mul(self.window.dilations[axis]).saturating_add(1);
            if self.window.before[axis].max(self.window.after[axis]) >= extent {
                return Err(InferError::Shape(
                    "padding is as wide as the window, so some windows would see only padding".into(),
                ));
            }
        }
        let space: Vec<usize> = (2..x.rank()).collect();
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&space)).transpose()?;
        Ok(Meta { shape, batch })
    }

    fn flops(&self, _: &[&Meta], output: &Meta) -> u64 {
        (output.numel() as u64).saturating_mul(crate::shape::numel(&self.kernel) as u64)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Pool {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>) {
        let x = call.arg(0);
        let g = self.geometry(x.shape, call.result().shape);
        match self.kind {
            Pooling::Max if g.halves() => halves::largest(&g, x.data, y),
            Pooling::Max => window::largest(&g, x.data, y),
            Pooling::Average { count_padding } => {
                let [scale] = scratch.take([g.row()]);
                window::average(&g, x.data, y, count_padding, scale);
            }
        }
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        _: usize,
        dx: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    ) {
        let (x, y) = (call.arg(0), call.result());
        let g = self.geometry(x.shape, y.shape);
        if self.kind != Pooling::Max {
            clear(dx, add);
            let [scale, scaled] = scratch.take([g.row(), g.row()]);
            return window::average_back(&g, dy, dx, self.count_padding(), scale, scaled);
        }
        let (own, size) = (x.numel() * seeds, y.numel() * seeds);
        let [hits, open] = scratch.take([g.row(), g.row()]);
        for sample in 0..call.samples {
            let (x, y) = (x.sample(sample), y.sample(sample));
            let dy = &dy[sample * size..(sample + 1) * size];
            let dx = &mut dx[sample * own..(sample + 1) * own];
            if g.halves() {
                halves::largest_back(&g, x, y, dy, dx, add);
                continue;
            }
            clear(dx, add);
            window::hits(
                &g,
                x,
                y,
                hits,
                open,
                #[inline(always)]
                |at, from, to, step, hits| {
                    for seed in 0..seeds {
                        let dy = &dy[seed * y.len() + at..][..hits.len()];
                        let dx = &mut dx[seed * x.len() + from..seed * x.len() + to];
                        window::add_hits(dx, dy, hits, step);
                    }
                },
            );
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (Some(tangent), x, y) = (tangents.operand(call, 0), call.arg(0), call.result()) else { return };
        let g = self.geometry(x.shape, y.shape);
        let [hits, open] = scratch.take([g.row(), g.row()]);
        if let Pooling::Average { count_padding } = self.kind {
            return window::average(&g, tangent.data, dy, count_padding, hits);
        }
        dy.fill(T::zero());
        window::hits(
            &g,
            x.data,
            y.data,
            hits,
            open,
            #[inline(always)]
            |at, from, to, step, hits| {
                let dy = &mut dy[at..at + hits.len()];
                let terms = dy.iter_mut().zip(tangent.data[from..to].iter().step_by(step).zip(hits));
                terms.for_each(|(dy, (&t, &hit))| *dy += t * hit);
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Batch;
    use crate::op::conformance::{batched, check, shared};

    fn pool(kind: Pooling, kernel: &[usize], strides: &[usize], before: &[usize], after: &[usize]) -> Pool {
        let window = Window {
            strides: strides.to_vec(),
            dilations: vec![1; kernel.len()],
            before: before.to_vec(),
            after: after.to_vec(),
        };
        Pool { kind, kernel: kernel.to_vec(), window, round_up: false }
    }

    const KINDS: [Pooling; 3] =
        [Pooling::Max, Pooling::Average { count_padding: true }, Pooling::Average { count_padding: false }];

    #[test]
    fn conforms() {
        for kind in KINDS {
            for round_up in [false, true] {
                let cases = [
                    (pool(kind, &[2, 2], &[2, 2], &[0, 0], &[0, 0]), vec![1, 3, 6, 8]),
                    (pool(kind, &[2, 2], &[2, 2], &[0, 0], &[0, 0]), vec![2, 1, 5, 7]),
                    (pool(kind, &[3, 3], &[2, 2], &[1, 1], &[1, 1]), vec![1, 2, 7, 6]),
                    (pool(kind, &[3, 2], &[1, 3], &[0, 1], &[2, 0]), vec![1, 2, 5, 5]),
                    (pool(kind, &[3], &[2], &[1], &[0]), vec![1, 2, 9]),
                    (pool(kind, &[2, 1, 2], &[1, 1, 2], &[0, 0, 1], &[1, 0, 1]), vec![1, 2, 3, 2, 5]),
                    (pool(kind, &[4, 3], &[1, 1], &[0, 0], &[0, 0]), vec![1, 1, 4, 3]),
                    (pool(kind, &[1, 1], &[2, 2], &[0, 0], &[0, 0]), vec![1, 1, 4, 3]),
                ];
                for (op, shape) in cases {
                    let op = Pool { round_up, ..op };
                    check(op.clone(), &[batched(&shape)]);
                    check(op, &[shared(&shape)]);
                }
                let mut dilated = pool(kind, &[2, 3], &[1, 2], &[1, 2], &[0, 1]);
                dilated.window.dilations = vec![2, 2];
                check(Pool { round_up, ..dilated }, &[batched(&[1, 2, 5, 7])]);
            }
        }
    }

    fn values(op: &Pool, x: &[f64], shape: &[usize]) -> Vec<f64> {
        let y_shape = op.infer(&[&Meta::shared(shape)]).unwrap().shape;
        let g = op.geometry(shape, &y_shape);
        let mut y = vec![0.0; crate::shape::numel(&y_shape)];
        match op.kind {
            Pooling::Max => window::largest(&g, x, &mut y),
            Pooling::Average { count_padding } => {
                window::average(&g, x, &mut y, count_padding, &mut vec![0.0; g.row()]);
            }
        }
        y
    }

    #[test]
    fn averages_count_padding_but_not_the_overhang() {
        // torch.nn.AvgPool1d(3, 2, padding=1, ceil_mode=True, count_include_pad=…) of [1, 2, 3, 4].
        let average =
            |count_padding| Pool { round_up: true, ..pool(Pooling::Average { count_padding }, &[3], &[2], &[1], &[1]) };
        let x = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(values(&average(true), &x, &[1, 1, 4]), [1.0, 3.0, 2.0]);
        assert_eq!(values(&average(false), &x, &[1, 1, 4]), [1.5, 3.0, 4.0]);
    }

    #[test]
    fn maxima_skip_padding_and_the_first_wins() {
        let op = pool(Pooling::Max, &[3], &[2], &[1], &[1]);
        assert_eq!(values(&op, &[-3.0, -1.0, -2.0, -5.0], &[1, 1, 4]), [-1.0, -1.0]);
        let g = op.geometry(&[1, 1, 4], &[1, 1, 2]);
        let mut dx = [0.0; 4];
        let (mut hits, mut open) = ([0.0; 2], [0.0; 2]);
        window::hits(&g, &[7.0, 7.0, 1.0, 7.0], &[7.0, 7.0], &mut hits, &mut open, |_, from, to, step, hits| {
            dx[from..to].iter_mut().step_by(step).zip(hits).for_each(|(dx, hit)| *dx += hit);
        });
        assert_eq!(dx, [1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn the_fast_path_is_the_slow_path() {
        let op = pool(Pooling::Max, &[2, 2], &[2, 2], &[0, 0], &[0, 0]);
        // Odd sizes, short rows that are processed together, and rows longer than one step.
        for [channels, height, width] in [[2, 5, 7], [3, 4, 64], [1, 2, 301]] {
            let (rows, columns) = (height / 2, width / 2);
            // Many ties.
            let x: Vec<f64> = (0..channels * height * width).map(|i| (i * i % 3) as f64).collect();
            let shape = [1, channels, height, width];
            let y = values(&op, &x, &shape);
            let g = op.geometry(&shape, &[1, channels, rows, columns]);
            assert!(g.halves());
            let mut fast = vec![0.0; y.len()];
            halves::largest(&g, &x, &mut fast);
            assert_eq!(fast, y);
            let dy: Vec<f64> = (1..=y.len()).map(|i| i as f64).collect();
            let (mut slow, mut hits, mut open) = (vec![0.0; x.len()], vec![0.0; columns], vec![0.0; columns]);
            window::hits(&g, &x, &y, &mut hits, &mut open, |at, from, to, step, hits| {
                let terms = slow[from..to].iter_mut().step_by(step).zip(hits.iter().zip(&dy[at..]));
                terms.for_each(|(dx, (hit, dy))| *dx += hit * dy);
            });
            let mut fast = vec![9.0; x.len()];
            halves::largest_back(&g, &x, &y, &dy, &mut fast, false);
            assert_eq!(fast, slow);
            halves::largest_back(&g, &x, &y, &dy, &mut fast, true);
            assert!(fast.iter().zip(&slow).all(|(fast, slow)| *fast == 2.0 * slow));
        }
    }

    #[test]
    fn batches_may_be_channels_but_not_space() {
        let op = pool(Pooling::Max, &[2], &[2], &[0], &[0]);
        assert!(op.infer(&[&Meta::batched([3, 1, 4], Batch::axis(1))]).is_ok());
        assert_eq!(op.infer(&[&Meta::batched([3, 1, 4], Batch::axis(2))]), Err(InferError::Mixes));
        let wide = pool(Pooling::Max, &[2], &[2], &[2], &[0]);
        assert!(matches!(wide.infer(&[&Meta::shared([1, 1, 4])]), Err(InferError::Shape(_))));
    }
}
