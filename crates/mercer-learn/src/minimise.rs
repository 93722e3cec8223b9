//! Minimisation of smooth functions: limited-memory BFGS with a line search for the strong Wolfe conditions.
//!
//! Nocedal and Wright, Numerical Optimization, 2006: algorithms 7.4 and 7.5 (two-loop recursion), 3.5 and 3.6 (line
//! search, with cubic interpolation). A value that is not finite counts as too long a step.

use std::collections::VecDeque;

/// The number of curvature pairs that are kept.
const MEMORY: usize = 10;
/// Sufficient decrease and curvature of the line search.
const DECREASE: f64 = 1e-4;
const CURVATURE: f64 = 0.9;
/// Relative differences up to this may be rounding.
const ROUNDING: f64 = 1e-14;
/// Evaluations per line search.
const TRIES: usize = 25;

/// Replaces a vector by its product with an approximation of the inverse Hessian.
pub type Precondition<'a> = &'a dyn Fn(&mut [f64]);

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Minimise {
    /// The tolerance: no component of the gradient exceeds this.
    pub tolerance: f64,
    /// The maximum number of steps.
    pub max_iterations: usize,
}

/// Where it stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Minimum {
    /// The point.
    pub place: Vec<f64>,
    /// The value there.
    pub value: f64,
    /// The largest component of the gradient there.
    pub gradient: f64,
    /// Steps that were taken.
    pub iterations: usize,
    /// Evaluations of the function.
    pub evaluations: usize,
    /// Whether the tolerance was reached. Otherwise no step improved the value any more, or the limit of steps was
    /// reached.
    pub converged: bool,
}

impl Minimise {
    /// Minimises a function that returns its value and writes its gradient.
    ///
    /// ```
    /// use mercer_learn::Minimise;
    /// let bowl = |x: &[f64], gradient: &mut [f64]| {
    ///     gradient.copy_from_slice(&[2.0 * (x[0] - 1.0), 8.0 * x[1]]);
    ///     (x[0] - 1.0).powi(2) + 4.0 * x[1] * x[1]
    /// };
    /// let found = Minimise { tolerance: 1e-10, max_iterations: 50 }.run(vec![5.0, 3.0], bowl);
    /// assert!(found.converged && (found.place[0] - 1.0).abs() < 1e-9);
    /// ```
    pub fn run(&self, start: Vec<f64>, function: impl FnMut(&[f64], &mut [f64]) -> f64) -> Minimum {
        self.run_preconditioned(start, None, function)
    }

    /// The same, with an approximation of the inverse Hessian.
    pub fn run_preconditioned(
        &self,
        start: Vec<f64>,
        precondition: Option<Precondition<'_>>,
        mut function: impl FnMut(&[f64], &mut [f64]) -> f64,
    ) -> Minimum {
        let mut point = Point { gradient: vec![0.0; start.len()], place: start, value: 0.0 };
        point.value = function(&point.place, &mut point.gradient);
        let mut evaluations = 1;
        let mut memory: VecDeque<Pair> = VecDeque::new();
        let mut iterations = 0;
        while iterations < self.max_iterations && point.value.is_finite() && point.largest() > self.tolerance {
            let mut direction = newton(&memory, &point.gradient, precondition);
            if dot(&direction, &point.gradient) >= 0.0 {
                // Rounding has spoilt the curvature pairs.
                memory.clear();
                direction = point.gradient.iter().map(|g| -g).collect();
            }
            let blind = memory.is_empty() && precondition.is_none();
            let first = if blind { 1.0 / norm(&point.gradient).max(1.0) } else { 1.0 };
            let mut evaluate = |place: Vec<f64>| {
                evaluations += 1;
                let mut gradient = vec![0.0; place.len()];
                let value = function(&place, &mut gradient);
                Point { place, value, gradient }
            };
            let Some(next) = line_search(&point, &direction, first, &mut evaluate) else {
                if memory.is_empty() {
                    break;
                }
                memory.clear();
                continue;
            };
            iterations += 1;
            let step: Vec<f64> = next.place.iter().zip(&point.place).map(|(a, b)| a - b).collect();
            let change: Vec<f64> = next.gradient.iter().zip(&point.gradient).map(|(a, b)| a - b).collect();
            let curvature = dot(&step, &change);
            if curvature > f64::EPSILON * dot(&change, &change) {
                if memory.len() == MEMORY {
                    memory.pop_front();
                }
                let mut image = change.clone();
                precondition.iter().for_each(|apply| apply(&mut image));
                let scale = curvature / dot(&change, &image);
                memory.push_back(Pair { step, change, curvature, scale });
            }
            point = next;
        }
        let gradient = point.largest();
        let converged = gradient <= self.tolerance;
        Minimum { place: point.place, value: point.value, gradient, iterations, evaluations, converged }
    }
}

struct Point {
    place: Vec<f64>,
    value: f64,
    gradient: Vec<f64>,
}

impl Point {
    fn largest(&self) -> f64 {
        self.gradient.iter().fold(0.0, |most: f64, g| most.max(g.abs()))
    }
}

/// A step, and how the gradient changed along it.
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
    curvature: f64,
    /// The scale that makes the approximate inverse Hessian fit along this step.
    scale: f64,
}

/// `−H·g` with the inverse Hessian of the memory.
fn newton(memory: &VecDeque<Pair>, gradient: &[f64], precondition: Option<Precondition<'_>>) -> Vec<f64> {
    let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut shares = Vec::with_capacity(memory.len());
    for pair in memory.iter().rev() {
        let share = dot(&pair.step, &direction) / pair.curvature;
        add(&mut direction, -share, &pair.change);
        shares.push(share);
    }
    precondition.iter().for_each(|apply| apply(&mut direction));
    if let Some(last) = memory.back() {
        direction.iter_mut().for_each(|d| *d *= last.scale);
    }
    for (pair, share) in memory.iter().zip(shares.into_iter().rev()) {
        let correction = share - dot(&pair.change, &direction) / pair.curvature;
        add(&mut direction, correction, &pair.step);
    }
    direction
}

/// A point along the direction that satisfies the Wolfe conditions, or else one that only decreases the value; `None`
/// if no point is lower.
fn line_search(
    start: &Point,
    direction: &[f64],
    first: f64,
    evaluate: &mut impl FnMut(Vec<f64>) -> Point,
) -> Option<Point> {
    let slope = dot(&start.gradient, direction);
    let at = |length: f64| start.place.iter().zip(direction).map(|(x, d)| x + length * d).collect::<Vec<f64>>();
    // Lower end: sufficient decrease, and the slope points onwards. Upper end: too far for some reason.
    let (mut low, mut low_value, mut low_slope) = (0.0, start.value, slope);
    let mut high: Option<(f64, f64, f64)> = None;
    let mut best: Option<Point> = None;
    let mut length = first;
    for _ in 0..TRIES {
        let trial = evaluate(at(length));
        let trial_slope = dot(&trial.gradient, direction);
        let finite = trial.value.is_finite() && trial_slope.is_finite();
        // Where values differ only by rounding, slopes are still informative (Hager and Zhang 2005, approximate Wolfe
        // conditions).
        let level = finite && (trial.value - start.value).abs() <= ROUNDING * start.value.abs();
        if level && trial_slope.abs() <= -CURVATURE * slope {
            return Some(trial);
        }
        let enough = finite && trial.value <= start.value + DECREASE * length * slope;
        if !enough || trial.value >= low_value && low > 0.0 {
            high = Some((length, if finite { trial.value } else { f64::INFINITY }, trial_slope));
        } else {
            if trial_slope.abs() <= -CURVATURE * slope {
                return Some(trial);
            }
            if trial_slope >= 0.0 {
                high = Some((length, trial.value, trial_slope));
            } else {
                (low, low_value, low_slope) = (length, trial.value, trial_slope);
            }
            if best.as_ref().is_none_or(|best| trial.value < best.value) {
                best = Some(trial);
            }
        }
        length = match high {
            None => length * 2.0,
            Some((far, value, far_slope)) => {
                let between = cubic((low, low_value, low_slope), (far, value, far_slope));
                let (left, right) = (low.min(far), low.max(far));
                let margin = 0.1 * (right - left);
                if between.is_finite() { between.clamp(left + margin, right - margin) } else { 0.5 * (low + far) }
            }
        };
        if !length.is_finite() || length == low {
            break;
        }
    }
    best.filter(|best| best.value < start.value)
}

/// The minimum of the cubic through two values and slopes (equation 3.59).
fn cubic((a, fa, ga): (f64, f64, f64), (b, fb, gb): (f64, f64, f64)) -> f64 {
    let d1 = ga + gb - 3.0 * (fa - fb) / (a - b);
    let d2 = (b - a).signum() * (d1 * d1 - ga * gb).sqrt();
    b - (b - a) * (gb + d2 - d1) / (gb - ga + 2.0 * d2)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    // Four sums in a fixed order: it vectorises, and gives the same bits everywhere.
    let mut sums = [0.0; 4];
    let (quads, others) = (a.chunks_exact(4), b.chunks_exact(4));
    let tail: f64 = quads.remainder().iter().zip(others.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in quads.zip(others) {
        for i in 0..4 {
            sums[i] += a[i] * b[i];
        }
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3]) + tail
}

fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rosenbrock's valley in twenty dimensions: its minimum is known, and gradient descent does not reach it.
    #[test]
    fn a_curved_valley() {
        let valley = |x: &[f64], g: &mut [f64]| {
            g.fill(0.0);
            let mut value = 0.0;
            for i in 0..x.len() - 1 {
                let (a, b) = (1.0 - x[i], x[i + 1] - x[i] * x[i]);
                value += a * a + 100.0 * b * b;
                g[i] += -2.0 * a - 400.0 * x[i] * b;
                g[i + 1] += 200.0 * b;
            }
            value
        };
        let found = Minimise { tolerance: 1e-9, max_iterations: 1000 }.run(vec![-1.2; 20], valley);
        assert!(found.converged && found.place.iter().all(|x| (x - 1.0).abs() < 1e-8), "{found:?}");
        assert!(found.iterations < 300);
    }

    /// A barrier: values beyond it are infinite, and a step into it is undone.
    #[test]
    fn a_step_too_far_is_taken_back() {
        let barrier = |x: &[f64], g: &mut [f64]| {
            g[0] = 1.0 - 1e-3 / x[0];
            if x[0] > 0.0 { x[0] - 1e-3 * x[0].ln() } else { f64::NAN }
        };
        let found = Minimise { tolerance: 1e-8, max_iterations: 100 }.run(vec![5.0], barrier);
        assert!(found.converged && (found.place[0] - 1e-3).abs() < 1e-9, "{found:?}");
    }

    /// With the inverse of the diagonal, an axis that is 10⁸ times as steep as another costs nothing.
    #[test]
    fn a_preconditioner_takes_the_scales_away() {
        let scales: Vec<f64> = (0..40).map(|i| 10f64.powf(i as f64 / 5.0)).collect();
        let bowl = |x: &[f64], g: &mut [f64]| {
            x.iter().zip(g.iter_mut()).zip(&scales).for_each(|((x, g), s)| *g = s * (x - 1.0) + (x - 1.0).powi(3));
            x.iter().zip(&scales).map(|(x, s)| 0.5 * s * (x - 1.0).powi(2) + 0.25 * (x - 1.0).powi(4)).sum()
        };
        let inverse = |v: &mut [f64]| v.iter_mut().zip(&scales).for_each(|(v, s)| *v /= s);
        let search = Minimise { tolerance: 1e-7, max_iterations: 2000 };
        let (plain, quick) =
            (search.run(vec![0.0; 40], bowl), search.run_preconditioned(vec![0.0; 40], Some(&inverse), bowl));
        assert!(quick.converged && quick.place.iter().all(|x| (x - 1.0).abs() < 1e-6));
        assert!(quick.iterations * 5 < plain.iterations, "{} {}", quick.iterations, plain.iterations);
    }

    #[test]
    fn nothing_to_do() {
        let flat = |_: &[f64], g: &mut [f64]| {
            g.fill(0.0);
            1.0
        };
        let found = Minimise { tolerance: 1e-8, max_iterations: 100 }.run(vec![5.0], flat);
        assert!(found.converged && found.iterations == 0 && found.evaluations == 1);
    }
}
