//! Functions of two numbers, applied elementwise with broadcasting.

use super::axes::{dot, total};
use super::loops::{Loops, MAX_RANK};
use super::math;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::{Meta, meet_all};
use crate::shape::broadcast;
use mercer_linalg::simd::dispatch;

/// `y = f(a, b)`, elementwise, broadcasting as NumPy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary(pub Combine);

/// A function of two numbers. Truth values are 1 and 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Combine {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    /// The first operand wins ties.
    Min,
    /// The first operand wins ties.
    Max,
    /// `a` where it is positive, else `a·b`.
    PRelu,
    /// Division towards zero, of integers.
    IntegerDiv,
    /// The remainder with the sign of the divisor.
    Mod,
    /// The remainder with the sign of the dividend.
    Rem,
    Equal,
    Less,
    LessOrEqual,
    And,
    Or,
    Xor,
}

impl Combine {
    fn is_step(self) -> bool {
        use Combine::*;
        matches!(self, IntegerDiv | Mod | Rem | Equal | Less | LessOrEqual | And | Or | Xor)
    }
}

/// Calls a loop with the function of a [`Combine`] as a closure, so that each function is compiled into its own loop.
macro_rules! with_function {
    ($combine:expr, $run:expr) => {{
        let (zero, one) = (T::zero(), T::one());
        let truth = move |yes: bool| if yes { one } else { zero };
        match $combine {
            Combine::Add => $run(|a: T, b: T| a + b),
            Combine::Sub => $run(|a: T, b: T| a - b),
            Combine::Mul => $run(|a: T, b: T| a * b),
            Combine::Div => $run(|a: T, b: T| a / b),
            Combine::Pow => $run(|a: T, b: T| math::power(a, b)),
            Combine::Min => $run(|a: T, b: T| if b < a { b } else { a }),
            Combine::Max => $run(|a: T, b: T| if b > a { b } else { a }),
            Combine::PRelu => $run(|a: T, b: T| if a > zero { a } else { a * b }),
            Combine::IntegerDiv => $run(|a: T, b: T| (a / b).trunc()),
            Combine::Mod => $run(move |a: T, b: T| {
                let rest = a % b;
                if rest != zero && (rest < zero) != (b < zero) { rest + b } else { rest }
            }),
            Combine::Rem => $run(|a: T, b: T| a % b),
            Combine::Equal => $run(move |a: T, b: T| truth(a == b)),
            Combine::Less => $run(move |a: T, b: T| truth(a < b)),
            Combine::LessOrEqual => $run(move |a: T, b: T| truth(a <= b)),
            Combine::And => $run(move |a: T, b: T| truth(a != zero && b != zero)),
            Combine::Or => $run(move |a: T, b: T| truth(a != zero || b != zero)),
            Combine::Xor => $run(move |a: T, b: T| truth((a != zero) != (b != zero))),
        }
    }};
}

/// The same for the partial derivative in operand `which`.
macro_rules! with_partial {
    ($combine:expr, $which:expr, $run:expr) => {{
        let (zero, one) = (T::zero(), T::one());
        match ($combine, $which) {
            (Combine::Add, _) | (Combine::Sub, 0) => $run(move |_: T, _: T| one),
            (Combine::Sub, _) => $run(move |_: T, _: T| -one),
            (Combine::Mul, 0) => $run(|_: T, b: T| b),
            (Combine::Mul, _) => $run(|a: T, _: T| a),
            (Combine::Div, 0) => $run(move |_: T, b: T| one / b),
            (Combine::Div, _) => $run(|a: T, b: T| -a / (b * b)),
            (Combine::Pow, 0) => $run(move |a: T, b: T| if b == zero { zero } else { b * math::power(a, b - one) }),
            (Combine::Pow, _) => $run(move |a: T, b: T| if a > zero { math::power(a, b) * a.ln() } else { zero }),
            (Combine::Min, 0) => $run(move |a: T, b: T| if b < a { zero } else { one }),
            (Combine::Min, _) => $run(move |a: T, b: T| if b < a { one } else { zero }),
            (Combine::Max, 0) => $run(move |a: T, b: T| if b > a { zero } else { one }),
            (Combine::Max, _) => $run(move |a: T, b: T| if b > a { one } else { zero }),
            (Combine::PRelu, 0) => $run(move |a: T, b: T| if a > zero { one } else { b }),
            (Combine::PRelu, _) => $run(move |a: T, _: T| if a > zero { zero } else { a }),
            _ => unreachable!("step functions are not differentiated"),
        }
    }};
}

impl Op for Binary {
    fn name(&self) -> &'static str {
        "Binary"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [a, b] = inputs else { return Err(InferError::Shape("needs two operands".into())) };
        let shape = broadcast(&a.shape, &b.shape).ok_or_else(|| InferError::Shape("shapes do not broadcast".into()))?;
        if shape.len() > MAX_RANK {
            return Err(InferError::Shape(format!("more than {MAX_RANK} axes")));
        }
        let batch = meet_all(inputs.iter().map(|meta| (&meta.shape[..], meta.batch.as_ref())), &shape)?;
        Ok(Meta { shape, batch })
    }

    fn differentiable(&self, _: usize) -> bool {
        !self.0.is_step()
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<T: Element> OpKernel<T> for Binary {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (a, b, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let loops = Loops::over_samples(shape, [(a.shape, a.batched), (b.shape, b.batched)], call.n_results());
        with_function!(self.0, |f| zip(&loops, a.data, b.data, y, f));
    }

    fn vjp(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        seeds: usize,
        which: usize,
        dx: &mut [T],
        add: bool,
        scratch: &mut Scratch<T>,
    ) {
        let (a, b, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let loops = Loops::broadcast(shape, [a.shape, b.shape]);
        let own = call.arg(which);
        let reduce = Loops::broadcast(shape, [own.shape]);
        let (size, own_size) = (crate::shape::numel(shape), own.numel());
        let plain = matches!((self.0, which), (Combine::Add, _) | (Combine::Sub, 0));
        if plain && own_size == size {
            return super::write(dx, dy, add);
        }
        let [partial] = scratch.take([size]);
        if !add {
            dx.fill(T::zero());
        }
        for sample in 0..call.samples {
            if !plain {
                with_partial!(self.0, which, |f| zip(&loops, a.sample(sample), b.sample(sample), partial, f));
            }
            for at in sample * seeds..(sample + 1) * seeds {
                let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own_size..(at + 1) * own_size]);
                add_reduced(&reduce, dy, (!plain).then_some(&*partial), dx);
            }
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], scratch: &mut Scratch<T>) -> bool {
        let (a, b, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let own = call.arg(which);
        if matches!((self.0, which), (Combine::Add, _) | (Combine::Sub, 0)) {
            let reduce = Loops::over_samples(shape, [(own.shape, false)], call.samples);
            add_reduced(&reduce, dy, None, dx);
            return true;
        }
        let loops = Loops::broadcast(shape, [a.shape, b.shape]);
        let reduce = Loops::broadcast(shape, [own.shape]);
        let size = crate::shape::numel(shape);
        let [partial] = scratch.take([size]);
        for (sample, dy) in dy.chunks_exact(size.max(1)).enumerate() {
            with_partial!(self.0, which, |f| zip(&loops, a.sample(sample), b.sample(sample), partial, f));
            add_reduced(&reduce, dy, Some(partial), dx);
        }
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let (a, b, shape) = (call.arg(0), call.arg(1), call.result().shape);
        let loops = Loops::broadcast(shape, [a.shape, b.shape]);
        let size = crate::shape::numel(shape);
        let [partial] = scratch.take([size]);
        dy.fill(T::zero());
        for which in 0..2 {
            let Some(tangent) = tangents.operand(call, which) else { continue };
            let own = Loops::broadcast(shape, [tangent.shape]);
            for sample in 0..call.n_results() {
                with_partial!(self.0, which, |f| zip(&loops, a.sample(sample), b.sample(sample), partial, f));
                let (t, dy) = (tangent.sample(sample), &mut dy[sample * size..(sample + 1) * size]);
                own.runs(|start, length, [offset], [stride]| {
                    for i in 0..length {
                        dy[start + i] += partial[start + i] * t[offset + i * stride];
                    }
                });
            }
        }
    }
}

/// `y = f(a, b)` over broadcast operands.
fn zip<T: Element>(loops: &Loops<2>, a: &[T], b: &[T], y: &mut [T], f: impl Fn(T, T) -> T) {
    dispatch(
        #[inline(always)]
        || {
            loops.runs(
                #[inline(always)]
                |start, length, [at_a, at_b], strides| {
                    let y = &mut y[start..start + length];
                    match strides {
                        [1, 1] => {
                            let pairs = a[at_a..at_a + length].iter().zip(&b[at_b..at_b + length]);
                            y.iter_mut().zip(pairs).for_each(|(y, (&a, &b))| *y = f(a, b));
                        }
                        [1, 0] => {
                            let b = b[at_b];
                            y.iter_mut().zip(&a[at_a..at_a + length]).for_each(|(y, &a)| *y = f(a, b));
                        }
                        [0, 1] => {
                            let a = a[at_a];
                            y.iter_mut().zip(&b[at_b..at_b + length]).for_each(|(y, &b)| *y = f(a, b));
                        }
                        [step_a, step_b] => {
                            for (i, y) in y.iter_mut().enumerate() {
                                *y = f(a[at_a + i * step_a], b[at_b + i * step_b]);
                            }
                        }
                    }
                },
            );
        },
    );
}

/// Adds `dy` (times `weight`) to the cotangent of an operand, summing over the axes along which it was broadcast.
pub(super) fn add_reduced<T: Element>(loops: &Loops<1>, dy: &[T], weight: Option<&[T]>, dx: &mut [T]) {
    dispatch(
        #[inline(always)]
        || {
            loops.runs(
                #[inline(always)]
                |start, length, [offset], [stride]| {
                    let dy = &dy[start..start + length];
                    let weight = weight.map(|w| &w[start..start + length]);
                    match (stride, weight) {
                        (0, None) => dx[offset] += total(dy),
                        (0, Some(w)) => dx[offset] += dot(dy, w),
                        (1, None) => dx[offset..offset + length].iter_mut().zip(dy).for_each(|(dx, &dy)| *dx += dy),
                        (1, Some(w)) => {
                            let terms = dy.iter().zip(w);
                            dx[offset..offset + length].iter_mut().zip(terms).for_each(|(dx, (&dy, &w))| *dx += dy * w);
                        }
                        _ => {
                            for (i, &dy) in dy.iter().enumerate() {
                                dx[offset + i * stride] += weight.map_or(dy, |w| dy * w[i]);
                            }
                        }
                    }
                },
            );
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    #[test]
    fn conforms() {
        use Combine::*;
        let all =
            [Add, Sub, Mul, Div, Pow, Min, Max, PRelu, IntegerDiv, Mod, Rem, Equal, Less, LessOrEqual, And, Or, Xor];
        for combine in all {
            let positive = |operand: crate::op::conformance::Operand| match combine {
                Div | Pow | IntegerDiv | Mod | Rem => operand.within(|x| 1.5 + x),
                _ => operand,
            };
            let check = |a, b| check(Binary(combine), &[positive(a), positive(b)]);
            check(batched(&[2, 3]), batched(&[2, 3]));
            check(batched(&[2, 3]), shared(&[3]));
            check(batched(&[4, 2, 3]), shared(&[4, 1, 1]));
            check(shared(&[2, 1]), batched(&[2, 3]));
            check(batched(&[1, 3]), batched(&[2, 1]));
            check(batched(&[2, 3]), shared(&[]));
        }
    }
}
