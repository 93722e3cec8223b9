//! `Where`: `y = a` where the condition is not zero, else `b`, broadcasting all three.

use super::axes::check_rank;
use super::binary::add_reduced;
use super::linear::clear;
use super::loops::Loops;
use super::{Call, InferError, Op, OpKernel, Scratch, Tangents};
use crate::element::Element;
use crate::graph::{Meta, meet_all};
use crate::shape::{broadcast, numel};
use mercer_linalg::simd::dispatch;

/// Chooses between two operands, elementwise: condition, then, else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Where;

impl Op for Where {
    fn name(&self) -> &'static str {
        "Where"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [condition, a, b] = inputs else { return Err(InferError::Shape("needs three operands".into())) };
        let shape = broadcast(&a.shape, &b.shape)
            .and_then(|shape| broadcast(&condition.shape, &shape))
            .ok_or_else(|| InferError::Shape("shapes do not broadcast".into()))?;
        check_rank(shape.len())?;
        let batch = meet_all(inputs.iter().map(|meta| (&meta.shape[..], meta.batch.as_ref())), &shape)?;
        Ok(Meta { shape, batch })
    }

    fn differentiable(&self, which: usize) -> bool {
        which > 0
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// `y = condition ? a : b` for one sample; a missing operand is zero.
fn choose<T: Element>(loops: &Loops<3>, condition: &[T], [a, b]: [Option<&[T]>; 2], y: &mut [T]) {
    let zero = T::zero();
    // A missing operand reads this element; its strides are ignored.
    let nothing: &[T] = &[T::zero()];
    dispatch(
        #[inline(always)]
        || {
            loops.runs(
                #[inline(always)]
                |start, length, [at_c, at_a, at_b], [step_c, step_a, step_b]| {
                    let y = &mut y[start..start + length];
                    let (a, at_a, step_a) = a.map_or((nothing, 0, 0), |a| (a, at_a, step_a));
                    let (b, at_b, step_b) = b.map_or((nothing, 0, 0), |b| (b, at_b, step_b));
                    match (step_c, step_a, step_b) {
                        (1, 1, 0) => {
                            let (c, a, b) = (&condition[at_c..at_c + length], &a[at_a..at_a + length], b[at_b]);
                            y.iter_mut().zip(c).zip(a).for_each(|((y, &c), &a)| *y = if c != zero { a } else { b });
                        }
                        (1, 0, 1) => {
                            let (c, a, b) = (&condition[at_c..at_c + length], a[at_a], &b[at_b..at_b + length]);
                            y.iter_mut().zip(c).zip(b).for_each(|((y, &c), &b)| *y = if c != zero { a } else { b });
                        }
                        (1, 1, 1) => {
                            let (c, a) = (&condition[at_c..at_c + length], &a[at_a..at_a + length]);
                            let terms = y.iter_mut().zip(c).zip(a).zip(&b[at_b..at_b + length]);
                            terms.for_each(|(((y, &c), &a), &b)| *y = if c != zero { a } else { b });
                        }
                        _ => {
                            for (i, y) in y.iter_mut().enumerate() {
                                let yes = condition[at_c + i * step_c] != zero;
                                *y = if yes { a[at_a + i * step_a] } else { b[at_b + i * step_b] };
                            }
                        }
                    }
                },
            );
        },
    );
}

fn loops<T>(call: &Call<'_, T>) -> Loops<3> {
    Loops::broadcast(call.result().shape, [call.arg(0).shape, call.arg(1).shape, call.arg(2).shape])
}

impl<T: Element> OpKernel<T> for Where {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], _: &mut Scratch<T>) {
        let (loops, size) = (loops(call), numel(call.result().shape));
        let (condition, a, b) = (call.arg(0), call.arg(1), call.arg(2));
        for sample in 0..call.n_results() {
            let y = &mut y[sample * size..(sample + 1) * size];
            choose(&loops, condition.sample(sample), [Some(a.sample(sample)), Some(b.sample(sample))], y);
        }
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
        let (condition, own, shape) = (call.arg(0), call.arg(which), call.result().shape);
        // The part of dy that belongs to this operand, in the result's shape, then summed over the broadcast axes.
        let choice = Loops::broadcast(shape, [condition.shape, shape, shape]);
        let reduce = Loops::broadcast(shape, [own.shape]);
        let (size, own_size) = (numel(shape), own.numel());
        let [part] = scratch.take([size]);
        clear(dx, add);
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own_size..(at + 1) * own_size]);
            let ways = if which == 1 { [Some(dy), None] } else { [None, Some(dy)] };
            choose(&choice, condition.sample(at / seeds), ways, part);
            add_reduced(&reduce, part, None, dx);
        }
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], _: &mut Scratch<T>) {
        let (loops, size) = (loops(call), numel(call.result().shape));
        let (condition, a, b) = (call.arg(0), tangents.operand(call, 1), tangents.operand(call, 2));
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            let ways = [a.as_ref().map(|a| a.sample(sample)), b.as_ref().map(|b| b.sample(sample))];
            choose(&loops, condition.sample(sample), ways, dy);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{Operand, batched, check, shared};

    fn truth(operand: Operand) -> Operand {
        operand.within(|x| if x > 0.0 { 1.0 } else { 0.0 })
    }

    #[test]
    fn conforms() {
        check(Where, &[truth(batched(&[2, 3])), batched(&[2, 3]), batched(&[2, 3])]);
        check(Where, &[truth(shared(&[4, 5])), batched(&[2, 4, 5]), shared(&[])]);
        check(Where, &[truth(shared(&[4, 1])), shared(&[5]), batched(&[2, 4, 5])]);
        check(Where, &[truth(batched(&[3])), shared(&[2, 1]), shared(&[1, 3])]);
        check(Where, &[truth(shared(&[3])), shared(&[2, 1]), shared(&[3])]);
        check(Where, &[truth(batched(&[2, 1])), batched(&[3]), batched(&[2, 3])]);
    }
}
