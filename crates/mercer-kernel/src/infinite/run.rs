//! Runs a program over many pairs of samples at once.
//!
//! A plane holds `[positions, lanes]`: a lane is a pair of samples, so every loop runs over many pairs, however small an
//! image is. Data of a single sample (variances, the coefficients of series) are gathered per lane beforehand.

use super::dual::{Form, Moments, covariances};
use super::net::{LimitLayer, LimitNet, NodeId};
use super::patch::{Patch, Space, Tap};
use super::program::{Class, Program, Step};
use crate::kernel::Real;
use mercer_linalg::simd::dispatch;

/// The data of one sample per lane, for each node that needs them.
#[derive(Clone, Debug, Default)]
pub(super) struct Side<T> {
    pub(super) nodes: Vec<Option<Known<T>>>,
    /// The inputs of each input node, `[channels, positions, lanes]`; empty if products are given.
    pub(super) inputs: Vec<Vec<T>>,
}

/// The data of a node's result: `[positions, lanes]`, and the rows `[…, positions, lanes]` of a series.
#[derive(Clone, Debug, Default)]
pub(super) struct Known<T> {
    pub(super) variance: Vec<T>,
    pub(super) deviation: Vec<T>,
    pub(super) series: Vec<T>,
}

impl<T: Real> Known<T> {
    pub(super) fn moments(&self) -> Moments<'_, T> {
        Moments { variance: &self.variance, deviation: &self.deviation, series: &self.series }
    }
}

/// Memory for running one program.
#[derive(Debug, Default)]
pub(super) struct Machine<T> {
    values: Vec<Vec<T>>,
    tangents: Vec<Vec<T>>,
    half: Vec<T>,
    turned: Known<T>,
}

/// The pairs of a run: left and right samples, and for dense inputs half their squared distances.
pub(super) struct Pairs<'a, T> {
    pub(super) lanes: usize,
    pub(super) left: &'a Side<T>,
    pub(super) right: &'a Side<T>,
    /// Per input node `½‖x − x'‖² / channels`, if computed beforehand; otherwise empty.
    pub(super) distances: &'a [Vec<T>],
    pub(super) tangent: bool,
}

/// Numbers of a plane that are processed at once: a few planes fit into the first two levels of cache.
const PLANE: usize = 1 << 12;

/// The number of lanes for planes of this many positions.
pub(super) fn lanes(largest: usize) -> usize {
    (PLANE / largest.max(1)).clamp(16, 512)
}

impl<T: Real> Machine<T> {
    /// Runs the program and returns the covariance and the tangent kernel of the result, `[positions, lanes]`.
    pub(super) fn run(&mut self, net: &LimitNet, program: &Program, pairs: &Pairs<'_, T>) -> (&[T], &[T]) {
        for (list, wanted) in [(&mut self.values, true), (&mut self.tangents, pairs.tangent)] {
            list.resize(list.len().max(program.slots.len()), Vec::new());
            if wanted {
                list.iter_mut()
                    .zip(&program.slots)
                    .for_each(|(slot, positions)| slot.resize(positions * pairs.lanes, T::zero()));
            }
        }
        self.half.resize(self.half.len().max(program.largest * pairs.lanes), T::zero());
        for step in &program.steps {
            self.step(net, step, pairs);
        }
        (&self.values[program.result], &self.tangents[program.result])
    }

    /// Moves the contents of a slot to another one, and lends them there.
    fn moved(&mut self, from: usize, to: usize, tangent: bool) -> (&mut [T], Option<&mut [T]>) {
        copy(&mut self.values, from, to);
        if tangent {
            copy(&mut self.tangents, from, to);
        }
        (&mut self.values[to], tangent.then(|| &mut self.tangents[to][..]))
    }

    fn step(&mut self, net: &LimitNet, step: &Step, pairs: &Pairs<'_, T>) {
        let (lanes, tangent) = (pairs.lanes, pairs.tangent);
        match step {
            Step::Input { node, class, form, to } => {
                input(net, *node, *class, *form, pairs, &mut self.values[*to]);
                if tangent {
                    self.tangents[*to].fill(T::zero());
                }
            }
            Step::Clear { to } => {
                self.values[*to].fill(T::zero());
                if tangent {
                    self.tangents[*to].fill(T::zero());
                }
            }
            Step::Patch { from, to, rows, columns, from_space, to_space } => {
                let (half, spaces) = (&mut self.half, [*from_space, *to_space]);
                for list in [&mut self.values, &mut self.tangents].into_iter().take(1 + usize::from(tangent)) {
                    let (source, target) = two(list, *from, *to);
                    patch(source, target, half, rows, columns, spaces, lanes);
                }
            }
            Step::Total { from, to } => {
                for list in [&mut self.values, &mut self.tangents].into_iter().take(1 + usize::from(tangent)) {
                    let (source, target) = two(list, *from, *to);
                    dispatch(
                        #[inline(always)]
                        || source.chunks_exact(lanes).for_each(|row| add(target, row)),
                    );
                }
            }
            Step::Linear { node, from, to, form } => self.linear(net, *node, [*from, *to], *form, pairs),
            Step::Activation { node, class, from, to, form } => {
                let LimitLayer::Activation(activation) = &net.nodes()[*node].layer else { return };
                self.turn(net, *node, *class, pairs);
                let mut turned = std::mem::take(&mut self.turned);
                let input = net.nodes()[*node].inputs[0];
                if let (Some(left), Some(right)) = (&pairs.left.nodes[input], &pairs.right.nodes[input]) {
                    let right = if *class == [0, 0] { right.moments() } else { turned.moments() };
                    let (value, theta) = self.moved(*from, *to, tangent);
                    activation.apply(*form, value, theta, left.moments(), right);
                }
                std::mem::swap(&mut self.turned, &mut turned);
            }
            Step::Norm { node, class, from, to, form } => {
                let LimitLayer::LayerNorm { epsilon } = net.nodes()[*node].layer else { return };
                self.turn(net, *node, *class, pairs);
                let mut turned = std::mem::take(&mut self.turned);
                let input = net.nodes()[*node].inputs[0];
                if let (Some(left), Some(right)) = (&pairs.left.nodes[input], &pairs.right.nodes[input]) {
                    let right = if *class == [0, 0] { right.moments() } else { turned.moments() };
                    let (value, theta) = self.moved(*from, *to, tangent);
                    normalise(T::narrow(epsilon), *form, value, theta, [left.moments(), right]);
                }
                std::mem::swap(&mut self.turned, &mut turned);
            }
            Step::Add { from, to, factor } => {
                for list in [&mut self.values, &mut self.tangents].into_iter().take(1 + usize::from(tangent)) {
                    let (source, target) = two(list, *from, *to);
                    let factor = T::narrow(*factor);
                    dispatch(
                        #[inline(always)]
                        || target.iter_mut().zip(source).for_each(|(to, &from)| *to += factor * from),
                    );
                }
            }
            Step::Scale { to, factors } => {
                for list in [&mut self.values, &mut self.tangents].into_iter().take(1 + usize::from(tangent)) {
                    let target = &mut list[*to];
                    let run = if factors.len() == 1 { target.len() } else { lanes };
                    let runs = target.chunks_exact_mut(run.max(1)).zip(factors);
                    runs.for_each(|(run, &factor)| run.iter_mut().for_each(|x| *x *= T::narrow(factor)));
                }
            }
            Step::Covariance { node, from, to } => {
                let (left, right) = (&pairs.left.nodes[*node], &pairs.right.nodes[*node]);
                let (value, _) = self.moved(*from, *to, tangent);
                if let (Some(left), Some(right)) = (left, right) {
                    covariances(Form::Distance, value, [left.moments(), right.moments()]);
                }
            }
        }
    }

    /// `K' = weight · mean(K) + bias`, `Θ' = weight · mean(Θ) + weight_rate · mean(K) + bias_rate`, from sums.
    fn linear(&mut self, net: &LimitNet, node: NodeId, [from, to]: [usize; 2], form: Form, pairs: &Pairs<'_, T>) {
        let (scales, points) = match &net.nodes()[node].layer {
            LimitLayer::Dense(scales) => (scales, 1),
            LimitLayer::Conv(scales, patch) => (scales, patch.points()),
            _ => return,
        };
        let (left, right) = (&pairs.left.nodes[node], &pairs.right.nodes[node]);
        let (value, theta) = self.moved(from, to, pairs.tangent);
        let share = T::narrow(scales.weight / points as f64);
        if form == Form::Covariance {
            let (rate, bias_rate) = (T::narrow(scales.weight_rate / points as f64), T::narrow(scales.bias_rate));
            let bias = T::narrow(scales.bias);
            if let Some(theta) = theta {
                dispatch(
                    #[inline(always)]
                    || {
                        let items = theta.iter_mut().zip(&*value);
                        items.for_each(|(theta, &value)| *theta = share * *theta + (rate * value + bias_rate));
                    },
                );
            }
            return dispatch(
                #[inline(always)]
                || value.iter_mut().for_each(|value| *value = share * *value + bias),
            );
        }
        let Some(theta) = theta else {
            return dispatch(
                #[inline(always)]
                || value.iter_mut().for_each(|value| *value *= share),
            );
        };
        // A bias does not change distances; mean(K) = (K' − bias)/weight with K' = ½(a' + b') − Δ'.
        let ratio = scales.weight_rate / scales.weight;
        let (rate, rest) = (T::narrow(ratio), T::narrow(scales.bias_rate - ratio * scales.bias));
        let (Some(left), Some(right)) = (left, right) else { return };
        let half = T::narrow(0.5);
        dispatch(
            #[inline(always)]
            || {
                let sides = left.variance.iter().zip(&right.variance);
                let items = value.iter_mut().zip(theta.iter_mut()).zip(sides);
                items.for_each(|((value, theta), (&a, &b))| {
                    *value *= share;
                    *theta = share * *theta + (rate * (half * (a + b) - *value) + rest);
                });
            },
        );
    }

    /// Moves the data of the right samples at `q = p + class` to position `p`.
    fn turn(&mut self, net: &LimitNet, node: NodeId, class: Class, pairs: &Pairs<'_, T>) {
        if class == [0, 0] {
            return;
        }
        let input = net.nodes()[node].inputs[0];
        let (space, lanes) = (net.nodes()[input].space, pairs.lanes);
        let Some(right) = &pairs.right.nodes[input] else { return };
        let turned = &mut self.turned;
        for (from, to) in [(&right.variance, &mut turned.variance), (&right.deviation, &mut turned.deviation)] {
            to.resize(from.len(), T::zero());
            turn_plane(from, to, space, class, lanes);
        }
        turned.series.resize(right.series.len(), T::zero());
        let plane = space[0] * space[1] * lanes;
        let rows = right.series.chunks_exact(plane).zip(turned.series.chunks_exact_mut(plane));
        rows.for_each(|(from, to)| turn_plane(from, to, space, class, lanes));
    }
}

fn copy<T: Copy>(list: &mut [Vec<T>], from: usize, to: usize) {
    if from != to {
        let (source, target) = two(list, from, to);
        target.copy_from_slice(source);
    }
}

fn two<T>(list: &mut [Vec<T>], from: usize, to: usize) -> (&[T], &mut [T]) {
    let (before, behind) = list.split_at_mut(from.max(to));
    if from < to { (&before[from], &mut behind[0]) } else { (&behind[0], &mut before[to]) }
}

#[inline(always)]
fn add<T: Real>(to: &mut [T], from: &[T]) {
    to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
}

/// `to[p] = from[(p + class) mod space]`.
pub(super) fn turn_plane<T: Copy>(from: &[T], to: &mut [T], [rows, columns]: Space, class: Class, lanes: usize) {
    let (row_length, turn) = (columns * lanes, class[1] * lanes);
    for row in 0..rows {
        let source = &from[(row + class[0]) % rows * row_length..][..row_length];
        let target = &mut to[row * row_length..][..row_length];
        target[..row_length - turn].copy_from_slice(&source[turn..]);
        target[row_length - turn..].copy_from_slice(&source[..turn]);
    }
}

/// Adds the sums over the taps of rows and columns: columns first, into an intermediate plane.
fn patch<T: Real>(
    source: &[T],
    target: &mut [T],
    half: &mut [T],
    rows: &[Tap],
    columns: &[Tap],
    [from, to]: [Space; 2],
    lanes: usize,
) {
    let (long, short) = (from[1] * lanes, to[1] * lanes);
    dispatch(
        #[inline(always)]
        || {
            for row in 0..from[0] {
                let uses = |tap: &Tap| {
                    let past = row.wrapping_sub(tap.from);
                    row >= tap.from && past % tap.stride == 0 && past / tap.stride < tap.length
                };
                if !rows.iter().any(uses) {
                    continue;
                }
                let (source, made) = (&source[row * long..][..long], &mut half[row * short..][..short]);
                made.fill(T::zero());
                for tap in columns {
                    if tap.stride == 1 {
                        let length = tap.length * lanes;
                        add(&mut made[tap.to * lanes..][..length], &source[tap.from * lanes..][..length]);
                    } else {
                        for i in 0..tap.length {
                            let from = (tap.from + i * tap.stride) * lanes;
                            add(&mut made[(tap.to + i) * lanes..][..lanes], &source[from..][..lanes]);
                        }
                    }
                }
            }
            for tap in rows {
                for i in 0..tap.length {
                    let made = &half[(tap.from + i * tap.stride) * short..][..short];
                    add(&mut target[(tap.to + i) * short..][..short], made);
                }
            }
        },
    );
}

/// `1/√(variance + ε)`; the normalised zero is zero, if there is no epsilon.
#[inline(always)]
fn inverse<T: Real>(variance: T, epsilon: T) -> T {
    if variance + epsilon > T::zero() { T::one() / (variance + epsilon).sqrt() } else { T::zero() }
}

/// `K' = K / √((a + ε)(b + ε))`, the same for `Θ`: the contributions of the mean and the variance vanish with the
/// width.
fn normalise<T: Real>(
    epsilon: T,
    form: Form,
    value: &mut [T],
    theta: Option<&mut [T]>,
    [left, right]: [Moments<'_, T>; 2],
) {
    let half = T::narrow(0.5);
    dispatch(
        #[inline(always)]
        || {
            for (i, value) in value.iter_mut().enumerate() {
                let (u, v) = (inverse(left.variance[i], epsilon), inverse(right.variance[i], epsilon));
                if form == Form::Covariance {
                    *value *= u * v;
                } else {
                    let (s, t) = (left.deviation[i], right.deviation[i]);
                    let (gap, new_gap) = (s - t, s * u - t * v);
                    *value = half * new_gap * new_gap + u * v * (*value - half * gap * gap);
                }
            }
            if let Some(theta) = theta {
                let sides = left.variance.iter().zip(right.variance);
                let items = theta.iter_mut().zip(sides);
                items.for_each(|(theta, (&a, &b))| *theta *= inverse(a, epsilon) * inverse(b, epsilon));
            }
        },
    );
}

/// The products of the inputs at each position, or half their squared distances.
fn input<T: Real>(net: &LimitNet, node: NodeId, class: Class, form: Form, pairs: &Pairs<'_, T>, to: &mut [T]) {
    let LimitLayer::Input(input) = &net.nodes()[node].layer else { return };
    if let Some(given) = pairs.distances.get(node).filter(|given| !given.is_empty()) {
        return to.copy_from_slice(given);
    }
    let space = net.nodes()[node].space;
    let (plane, lanes) = (space[0] * space[1] * pairs.lanes, pairs.lanes);
    let (left, right) = (&pairs.left.inputs[node], &pairs.right.inputs[node]);
    to.fill(T::zero());
    let row_length = space[1] * lanes;
    let scale = if form == Form::Distance { 0.5 } else { 1.0 } / input.channels as f64;
    dispatch(
        #[inline(always)]
        || {
            for channel in 0..input.channels {
                let (x, y) = (&left[channel * plane..][..plane], &right[channel * plane..][..plane]);
                if form == Form::Distance {
                    to.iter_mut().zip(x.iter().zip(y)).for_each(|(to, (&x, &y))| *to += (x - y) * (x - y));
                    continue;
                }
                for row in 0..space[0] {
                    let (x, to) = (&x[row * row_length..][..row_length], &mut to[row * row_length..][..row_length]);
                    let y = &y[(row + class[0]) % space[0] * row_length..][..row_length];
                    let turn = class[1] * lanes;
                    let (head, tail) = to.split_at_mut(row_length - turn);
                    let (x_head, x_tail) = x.split_at(row_length - turn);
                    head.iter_mut().zip(x_head.iter().zip(&y[turn..])).for_each(|(to, (&x, &y))| *to += x * y);
                    tail.iter_mut().zip(x_tail.iter().zip(&y[..turn])).for_each(|(to, (&x, &y))| *to += x * y);
                }
            }
            let scale = T::narrow(scale);
            to.iter_mut().for_each(|to| *to *= scale);
        },
    );
}

/// The sums over patches of a plane of class zero.
pub(super) fn patch_sums<T: Real>(source: &[T], window: &Patch, from: Space, to: Space, lanes: usize) -> Vec<T> {
    let mut sums = vec![T::zero(); to[0] * to[1] * lanes];
    let mut half = vec![T::zero(); from[0] * to[1] * lanes];
    for rows in window.maps(0, from[0], to[0], 0, false) {
        for columns in window.maps(1, from[1], to[1], 0, false) {
            patch(source, &mut sums, &mut half, &rows.taps, &columns.taps, [from, to], lanes);
        }
    }
    sums
}
