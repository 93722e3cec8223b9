//! The recursion written down plainly: whole covariance matrices between all positions, one pair of samples at a time.

use mercer_kernel::infinite::Patch;

/// Covariance and tangent kernel between all positions of two samples, and the covariances of each with itself.
#[derive(Clone)]
pub(crate) struct Plain {
    side: usize,
    /// `[x x, x y, y y]`, each `[positions, positions]`.
    k: [Vec<f64>; 3],
    /// Of x and y.
    theta: Vec<f64>,
}

impl Plain {
    /// Images `[channels, side, side]`.
    pub(crate) fn new(x: &[f64], y: &[f64], channels: usize, side: usize) -> Self {
        let n = side * side;
        let gram = |a: &[f64], b: &[f64]| {
            let dot = |p: usize, q: usize| (0..channels).map(|c| a[c * n + p] * b[c * n + q]).sum::<f64>();
            (0..n * n).map(|i| dot(i / n, i % n) / channels as f64).collect()
        };
        Self { side, k: [gram(x, x), gram(x, y), gram(y, y)], theta: vec![0.0; n * n] }
    }

    fn map(&self, side: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Self {
        let [xx, xy, yy] = &self.k;
        Self { side, k: [f(xx), f(xy), f(yy)], theta: f(&self.theta) }
    }

    /// Sums over patches: with the same point for both positions, or with all pairs of points.
    fn patches(&self, patch: &Patch, pool: bool) -> Self {
        let (n, k) = (self.side, patch.size[0]);
        let m = (n + patch.before[0] + patch.after[0] - k) / patch.stride[0] + 1;
        let at = |p: usize, d: usize| {
            let along = |p: usize, d: usize| {
                let i = (p * patch.stride[0] + d) as isize - patch.before[0] as isize;
                if patch.circular {
                    Some(i.rem_euclid(n as isize) as usize)
                } else {
                    usize::try_from(i).ok().filter(|&i| i < n)
                }
            };
            Some(along(p / m, d / k)? * n + along(p % m, d % k)?)
        };
        self.map(m, |from| {
            let mut to = vec![0.0; (m * m) * (m * m)];
            for p in 0..m * m {
                for q in 0..m * m {
                    for d in 0..k * k {
                        for e in if pool { 0..k * k } else { d..d + 1 } {
                            if let (Some(i), Some(j)) = (at(p, d), at(q, e)) {
                                to[p * m * m + q] += from[i * n * n + j];
                            }
                        }
                    }
                }
            }
            let points = (k * k) as f64;
            let scale = if pool { points * points } else { points };
            to.iter().map(|x| x / scale).collect()
        })
    }

    pub(crate) fn conv(&self, patch: &Patch, weight_std: f64, bias_std: f64) -> Self {
        let mut result = self.patches(patch, false);
        let (weight, bias) = (weight_std * weight_std, bias_std * bias_std);
        result.k.iter_mut().flatten().for_each(|k| *k = weight * *k + bias);
        result.theta.iter_mut().zip(&result.k[1]).for_each(|(theta, k)| *theta = weight * *theta + k);
        result
    }

    pub(crate) fn pool(&self, patch: &Patch) -> Self {
        self.patches(patch, true)
    }

    /// `dual(a, c, b)` gives the two expectations.
    pub(crate) fn activation(&self, dual: fn(f64, f64, f64) -> (f64, f64)) -> Self {
        let n = self.side * self.side;
        let [xx, xy, yy] = &self.k;
        let apply = |left: &[f64], own: &[f64], right: &[f64], i: usize| {
            dual(left[(i / n) * n + i / n], own[i], right[(i % n) * n + i % n])
        };
        let all = |left: &[f64], own: &[f64], right: &[f64]| (0..n * n).map(|i| apply(left, own, right, i).0).collect();
        let theta = (0..n * n).map(|i| self.theta[i] * apply(xx, xy, yy, i).1).collect();
        Self { side: self.side, k: [all(xx, xx, xx), all(xx, xy, yy), all(yy, yy, yy)], theta }
    }

    /// The means over all pairs of positions.
    pub(crate) fn global(&self) -> (f64, f64) {
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        (mean(&self.k[1]), mean(&self.theta))
    }

    /// The means over equal positions.
    pub(crate) fn flat(&self) -> (f64, f64) {
        let n = self.side * self.side;
        let mean = |x: &[f64]| (0..n).map(|p| x[p * n + p]).sum::<f64>() / n as f64;
        (mean(&self.k[1]), mean(&self.theta))
    }
}

pub(crate) fn relu(a: f64, c: f64, b: f64) -> (f64, f64) {
    let st = (a * b).sqrt();
    let theta = (c / st).clamp(-1.0, 1.0).acos();
    let pi = std::f64::consts::PI;
    ((st * theta.sin() + (pi - theta) * c) / (2.0 * pi), (pi - theta) / (2.0 * pi))
}
