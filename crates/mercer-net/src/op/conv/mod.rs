//! Convolution by patches: `Y = W · im2col(X)`, one image and one strip of its positions at a time, so that the patches
//! are still in cache when they are multiplied.

mod geometry;
mod patches;
mod winograd;

pub use geometry::Window;

use super::{Call, InferError, Op, OpKernel, OuterShape, Scratch, Tangents};
use crate::element::Element;
use crate::graph::Meta;
use geometry::Geometry;
use mercer_linalg::{gemm, gemm_rows};
use patches::{add_transposed, from_patches, to_patches, transpose};
use winograd::Plan;

/// `y = w ∗ x (+ bias)`: `x` is `[n, channels, …space]`, `w` is `[out, channels / groups, …kernel]`, with one to three
/// spatial axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Stride, dilation and padding.
    pub window: Window,
    /// The number of independent groups of channels.
    pub groups: usize,
}

impl Conv {
    fn geometry(&self, x: &[usize], w: &[usize], y: &[usize]) -> Geometry {
        Geometry::new(&self.window, self.groups, x, w, y)
    }

    fn geometry_for<T>(&self, call: &Call<'_, T>) -> Geometry {
        self.geometry(call.arg(0).shape, call.arg(1).shape, call.result().shape)
    }
}

impl Op for Conv {
    fn name(&self) -> &'static str {
        "Conv"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, InferError> {
        let [x, w, ..] = inputs else { return Err(InferError::Shape("needs an image and a weight".into())) };
        let rank = x.rank();
        let space = rank.wrapping_sub(2);
        if !(1..=3).contains(&space) || w.rank() != rank {
            return Err(InferError::Shape("a convolution has one to three spatial axes".into()));
        }
        if w.is_batched() {
            return Err(InferError::Shape("a convolution's weight must not depend on the data".into()));
        }
        let (channels, out) = (x.shape[1], w.shape[0]);
        if self.groups == 0 || w.shape[1] * self.groups != channels || !out.is_multiple_of(self.groups) {
            return Err(InferError::Shape(format!("{channels} channels cannot be split into {} groups", self.groups)));
        }
        if inputs.get(2).is_some_and(|bias| bias.numel() != out || bias.is_batched()) {
            return Err(InferError::Shape("the bias does not match the output channels".into()));
        }
        let mut shape = vec![x.shape[0], out];
        shape.extend(self.window.output(&x.shape[2..], &w.shape[2..], false)?);
        let axes: Vec<usize> = (1..rank).collect();
        let batch = x.batch.as_ref().map(|batch| batch.not_along(&axes)).transpose()?;
        Ok(Meta { shape, batch })
    }

    fn flops(&self, inputs: &[&Meta], output: &Meta) -> u64 {
        let patch: usize = inputs[1].shape[1..].iter().product();
        (output.numel() as u64).saturating_mul(2 * patch as u64)
    }

    fn outer_shape(&self, which: usize, inputs: &[&Meta], output: &Meta) -> Option<OuterShape> {
        if which != 1 || self.groups != 1 || !inputs[0].is_batched() {
            return None;
        }
        let g = self.geometry(&inputs[0].shape, &inputs[1].shape, &output.shape);
        let positions = g.images * g.positions();
        Some(OuterShape { positions, left: g.patch(), right: g.out, right_major: true, one_hot: false })
    }

    fn scratch(&self, inputs: &[&Meta], output: &Meta) -> usize {
        let g = self.geometry(&inputs[0].shape, &inputs[1].shape, &output.shape);
        let patches = g.strip_elements() + g.patch() * g.out;
        Plan::new(&g).map_or(0, |plan| plan.scratch()).max(patches)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// `y = w ∗ x`, or added to it, for one sample.
fn forward<T: Element>(g: &Geometry, x: &[T], w: &[T], add: bool, y: &mut [T], scratch: &mut Scratch<T>) {
    let (patch, positions) = (g.patch(), g.positions());
    let (out, image_in, image_out) = (g.out / g.groups, g.input_size(), g.out * positions);
    let [patches] = scratch.take([g.strip_elements()]);
    for image in 0..g.images {
        for group in 0..g.groups {
            let x = &x[image * image_in + group * image_in / g.groups..][..image_in / g.groups];
            let w = &w[group * out * patch..][..out * patch];
            let y = &mut y[image * image_out + group * out * positions..][..out * positions];
            for strip in g.strips() {
                let (start, count) = g.span(&strip);
                let columns = to_patches(g, x, &strip, patches);
                let sizes = [out, count, patch];
                gemm_rows(sizes, (w, patch, 1), (columns, count, 1), add, &mut y[start..], positions);
            }
        }
    }
}

impl<T: Element> OpKernel<T> for Conv {
    fn apply(&self, call: &Call<'_, T>, y: &mut [T], scratch: &mut Scratch<T>) {
        let g = self.geometry_for(call);
        let (x, w) = (call.arg(0), call.arg(1));
        let size = g.images * g.out * g.positions();
        let bias = (call.n_args() > 2).then(|| call.arg(2));
        if let Some(plan) = Plan::new(&g) {
            return plan.convolve(x.data, w.data, false, bias.map(|bias| bias.data), y, false, scratch);
        }
        for sample in 0..call.n_results() {
            let y = &mut y[sample * size..(sample + 1) * size];
            if let Some(bias) = bias {
                fill_rows(y, bias.data, g.positions());
            }
            forward(&g, x.sample(sample), w.data, bias.is_some(), y, scratch);
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
        let g = self.geometry_for(call);
        let (x, w) = (call.arg(0), call.arg(1));
        let (size, own) = (g.images * g.out * g.positions(), call.arg(which).numel());
        if which == 0
            && let Some(plan) = Plan::new(&g).and_then(|plan| plan.turned()).filter(Plan::gains)
        {
            return plan.convolve(dy, w.data, true, None, dx, add, scratch);
        }
        if !add {
            dx.fill(T::zero());
        }
        if which == 1 {
            for sample in 0..call.samples {
                let dy = &dy[sample * seeds * size..(sample + 1) * seeds * size];
                let dx = &mut dx[sample * seeds * own..(sample + 1) * seeds * own];
                backward_weights(&g, dy, x.sample(sample), dx, scratch);
            }
            return;
        }
        for at in 0..call.samples * seeds {
            let (dy, dx) = (&dy[at * size..(at + 1) * size], &mut dx[at * own..(at + 1) * own]);
            match which {
                0 => backward_input(&g, dy, w.data, dx, scratch),
                _ => add_row_sums(dy, dx, g.positions()),
            }
        }
    }

    fn accumulate(&self, call: &Call<'_, T>, dy: &[T], which: usize, dx: &mut [T], scratch: &mut Scratch<T>) -> bool {
        let g = self.geometry_for(call);
        let x = call.arg(0);
        if !x.batched {
            return false;
        }
        match which {
            // Samples are treated as further images.
            1 => backward_weight(&g, dy, x.data, dx, scratch),
            2 => add_row_sums(dy, dx, g.positions()),
            _ => return false,
        }
        true
    }

    fn jvp(&self, call: &Call<'_, T>, tangents: &Tangents<'_, T>, dy: &mut [T], scratch: &mut Scratch<T>) {
        let g = self.geometry_for(call);
        let (x, w) = (call.arg(0), call.arg(1));
        let size = g.images * g.out * g.positions();
        let (tx, tw) = (tangents.operand(call, 0), tangents.operand(call, 1));
        let tb = if call.n_args() > 2 { tangents.operand(call, 2) } else { None };
        for sample in 0..call.n_results() {
            let dy = &mut dy[sample * size..(sample + 1) * size];
            match tb {
                Some(tb) => fill_rows(dy, tb.data, g.positions()),
                None => dy.fill(T::zero()),
            }
            if let Some(tx) = tx {
                forward(&g, tx.sample(sample), w.data, true, dy, scratch);
            }
            if let Some(tw) = tw {
                forward(&g, x.sample(sample), tw.data, true, dy, scratch);
            }
        }
    }

    fn outer(
        &self,
        call: &Call<'_, T>,
        dy: &[T],
        _: usize,
        _: usize,
        left: &mut [T],
        right: &mut [T],
        scratch: &mut Scratch<T>,
    ) {
        let g = self.geometry_for(call);
        let (patch, positions) = (g.patch(), g.positions());
        let [patches] = scratch.take([g.strip_elements()]);
        let images = call.arg(0).data.chunks_exact(g.input_size());
        for (x, left) in images.zip(left.chunks_exact_mut(positions * patch)) {
            for strip in g.strips() {
                let (start, count) = g.span(&strip);
                let columns = to_patches(&g, x, &strip, patches);
                transpose(columns, patch, count, &mut left[start * patch..]);
            }
        }
        let size = g.out * positions;
        for (dy, right) in dy.chunks_exact(size).zip(right.chunks_exact_mut(size)) {
            transpose(dy, g.out, positions, right);
        }
    }
}

/// `dx += Wᵀ · dy`, scattered back to where the patches came from.
fn backward_input<T: Element>(g: &Geometry, dy: &[T], w: &[T], dx: &mut [T], scratch: &mut Scratch<T>) {
    let (patch, positions) = (g.patch(), g.positions());
    let (out, image_in, image_out) = (g.out / g.groups, g.input_size(), g.out * positions);
    let [patches] = scratch.take([g.strip_elements()]);
    for image in 0..g.images {
        for group in 0..g.groups {
            let dx = &mut dx[image * image_in + group * image_in / g.groups..][..image_in / g.groups];
            let w = &w[group * out * patch..][..out * patch];
            let dy = &dy[image * image_out + group * out * positions..][..out * positions];
            for strip in g.strips() {
                let (start, count) = g.span(&strip);
                if g.is_pointwise() {
                    let into = &mut dx[start..];
                    gemm_rows([patch, count, out], (w, 1, patch), (&dy[start..], positions, 1), true, into, positions);
                    continue;
                }
                gemm([patch, count, out], (w, 1, patch), (&dy[start..], positions, 1), false, patches);
                from_patches(g, &mut patches[..patch * count], &strip, dx);
            }
        }
    }
}

/// `dw += dy · im2col(x)ᵀ`, summed over all images.
fn backward_weight<T: Element>(g: &Geometry, dy: &[T], x: &[T], dw: &mut [T], scratch: &mut Scratch<T>) {
    match Plan::new(g) {
        Some(plan) => plan.weight(dy, x, dw, scratch),
        None => weight_by_patches(g, dy, x, dw, scratch),
    }
}

/// By patches. The product is formed transposed, which is up to twice as fast when there are few output channels (16 ×
/// 144 over 1024 positions: 104 against 49 GF/s), and transposed at the end.
fn weight_by_patches<T: Element>(g: &Geometry, dy: &[T], x: &[T], dw: &mut [T], scratch: &mut Scratch<T>) {
    let (patch, positions) = (g.patch(), g.positions());
    let (out, image_in, image_out) = (g.out / g.groups, g.input_size(), g.out * positions);
    if x.is_empty() {
        return;
    }
    let [patches, product] = scratch.take([g.strip_elements(), patch * out]);
    for group in 0..g.groups {
        let mut fresh = true;
        for image in 0..x.len() / image_in.max(1) {
            let x = &x[image * image_in + group * image_in / g.groups..][..image_in / g.groups];
            let dy = &dy[image * image_out + group * out * positions..][..out * positions];
            for strip in g.strips() {
                let (start, count) = g.span(&strip);
                let columns = to_patches(g, x, &strip, patches);
                let sizes = [patch, out, count];
                gemm(sizes, (columns, count, 1), (&dy[start..], 1, positions), !fresh, product);
                fresh = false;
            }
        }
        add_transposed(product, patch, out, &mut dw[group * out * patch..][..out * patch]);
    }
}

/// Products with fewer rows than this are slow.
const FEW: usize = 32;

/// The cotangents of the weight for all seeds of one sample, `dw[seed] += dy[seed] · im2col(x)ᵀ`. Patches are made
/// once, and seeds are treated as further output channels, so this is a single product.
fn backward_weights<T: Element>(g: &Geometry, dy: &[T], x: &[T], dw: &mut [T], scratch: &mut Scratch<T>) {
    let (patch, positions) = (g.patch(), g.positions());
    let (image_in, size) = (g.input_size(), g.out * positions);
    if x.is_empty() || dy.is_empty() {
        return;
    }
    let seeds = dy.len() / (g.images * size);
    if g.groups > 1 || g.images > 1 || seeds * g.out < FEW {
        let each = dy.chunks_exact(g.images * size).zip(dw.chunks_exact_mut(g.out * patch));
        return each.for_each(|(dy, dw)| weight_by_patches(g, dy, x, dw, scratch));
    }
    let [patches] = scratch.take([g.strip_elements()]);
    for strip in g.strips() {
        let (start, count) = g.span(&strip);
        let columns = to_patches(g, &x[..image_in], &strip, patches);
        let sizes = [seeds * g.out, patch, count];
        gemm(sizes, (&dy[start..], positions, 1), (columns, 1, count), true, dw);
    }
}

/// Rows of `y`, cycling through `values`, filled with them.
fn fill_rows<T: Copy>(y: &mut [T], values: &[T], row: usize) {
    for (row, &value) in y.chunks_exact_mut(row.max(1)).zip(values.iter().cycle()) {
        row.fill(value);
    }
}

/// Adds the sum of each row of `dy` to `dx`, cycling through it.
fn add_row_sums<T: Element>(dy: &[T], dx: &mut [T], row: usize) {
    let channels = dx.len();
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || {
            for (index, row) in dy.chunks_exact(row.max(1)).enumerate() {
                dx[index % channels] += super::axes::total(row);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::conformance::{batched, check, shared};

    fn window(strides: &[usize], dilations: &[usize], before: &[usize], after: &[usize]) -> Window {
        Window {
            strides: strides.to_vec(),
            dilations: dilations.to_vec(),
            before: before.to_vec(),
            after: after.to_vec(),
        }
    }

    #[test]
    fn conforms() {
        let plain = Conv { window: Window::plain(2), groups: 1 };
        check(plain.clone(), &[batched(&[1, 2, 5, 4]), shared(&[3, 2, 3, 2])]);
        check(plain.clone(), &[batched(&[2, 2, 5, 4]), shared(&[3, 2, 3, 2]), shared(&[3])]);
        check(plain, &[batched(&[1, 2, 5, 4]), shared(&[3, 2, 1, 1]), shared(&[3])]);
        let uneven = Conv { window: window(&[2, 1], &[1, 2], &[1, 0], &[0, 2]), groups: 1 };
        check(uneven, &[batched(&[1, 2, 6, 5]), shared(&[3, 2, 3, 2]), shared(&[3])]);
        let grouped = Conv { window: window(&[1, 1], &[1, 1], &[1, 1], &[1, 1]), groups: 2 };
        check(grouped, &[batched(&[1, 4, 3, 3]), shared(&[6, 2, 3, 3]), shared(&[6])]);
        let dilated = Conv { window: window(&[1, 1], &[3, 2], &[3, 2], &[1, 2]), groups: 1 };
        check(dilated, &[batched(&[1, 2, 5, 4]), shared(&[2, 2, 2, 3])]);
        let lopsided = Conv { window: window(&[1, 1], &[1, 1], &[2, 0], &[0, 4]), groups: 1 };
        check(lopsided, &[batched(&[2, 1, 3, 4]), shared(&[2, 1, 3, 5])]);
        let depthwise = Conv { window: window(&[2], &[1], &[2], &[2]), groups: 3 };
        check(depthwise, &[batched(&[1, 3, 7]), shared(&[3, 1, 5])]);
        let volume = Conv { window: Window::plain(3), groups: 1 };
        check(volume, &[batched(&[1, 2, 3, 4, 3]), shared(&[2, 2, 2, 2, 2])]);
        // Padding wider than the image: some windows see only padding.
        let wide = Conv { window: window(&[3, 3], &[1, 1], &[4, 4], &[4, 4]), groups: 1 };
        check(wide, &[batched(&[1, 1, 2, 2]), shared(&[1, 1, 2, 2])]);
    }

    /// Convolutions for the six-point method: `(channels, out, taps, height, width, top, left, bottom, right)`.
    const AT_POINTS: [[usize; 9]; 6] = [
        [8, 8, 3, 8, 8, 1, 1, 1, 1],
        [6, 7, 3, 11, 17, 0, 2, 1, 0],
        [5, 12, 5, 12, 16, 0, 0, 0, 0],
        [8, 8, 5, 9, 24, 2, 2, 2, 2],
        [40, 8, 3, 32, 40, 1, 1, 1, 1],
        [8, 8, 3, 6, 24, 2, 0, 2, 0],
    ];

    #[test]
    fn six_points_give_what_patches_give() {
        for [channels, out, taps, height, width, top, left, bottom, right] in AT_POINTS {
            let conv = Conv { window: window(&[1, 1], &[1, 1], &[top, left], &[bottom, right]), groups: 1 };
            let (x_shape, w_shape) = ([1, channels, height, width], [out, channels, taps, taps]);
            let y_shape = [1, out, height + top + bottom + 1 - taps, width + left + right + 1 - taps];
            let g = conv.geometry(&x_shape, &w_shape, &y_shape);
            let plan = Plan::fitting(&g).expect("the method applies");
            let numbers =
                |count: usize, step: f64| -> Vec<f64> { (0..count).map(|i| (i as f64 * step).sin()).collect() };
            let images = 3;
            let (x, w) = (numbers(images * g.input_size(), 0.7), numbers(out * g.patch(), 1.3));
            let size = out * g.positions();
            let dy = numbers(images * size, 0.9);
            let mut scratch = Scratch::default();
            // Each twice over: written and added.
            let (mut expected, mut y) = (vec![0.0; images * size], vec![9.0; images * size]);
            let bias = numbers(out, 0.4);
            for (x, y) in x.chunks_exact(g.input_size()).zip(expected.chunks_exact_mut(size)) {
                fill_rows(y, &bias, g.positions());
                forward(&g, x, &w, true, y, &mut scratch);
            }
            plan.convolve(&x, &w, false, Some(&bias), &mut y, false, &mut scratch);
            near(&y, &expected, 1.0);
            plan.convolve(&x, &w, false, Some(&bias), &mut y, true, &mut scratch);
            near(&y, &expected, 2.0);
            let (mut expected, mut dx) = (vec![0.0; x.len()], vec![9.0; x.len()]);
            for (dy, dx) in dy.chunks_exact(size).zip(expected.chunks_exact_mut(g.input_size())) {
                backward_input(&g, dy, &w, dx, &mut scratch);
            }
            if let Some(turned) = plan.turned() {
                turned.convolve(&dy, &w, true, None, &mut dx, false, &mut scratch);
                near(&dx, &expected, 1.0);
            }
            let (mut expected, mut dw) = (vec![0.0; w.len()], vec![0.0; w.len()]);
            weight_by_patches(&g, &dy, &x, &mut expected, &mut scratch);
            plan.weight(&dy, &x, &mut dw, &mut scratch);
            near(&dw, &expected, 1.0);
        }
    }

    /// The method costs about one digit of sixteen, and cancellation in sums of waves another.
    fn near(found: &[f64], expected: &[f64], times: f64) {
        let norm = |x: &mut dyn Iterator<Item = f64>| x.map(|x| x * x).sum::<f64>().sqrt();
        let error = norm(&mut found.iter().zip(expected).map(|(found, expected)| found - times * expected));
        let size = norm(&mut expected.iter().copied());
        assert!(error < 1e-13 * size, "{error} of {size}");
    }

    #[test]
    fn six_points_conform() {
        for [channels, out, taps, height, width, top, left, bottom, right] in AT_POINTS {
            if channels < 10 {
                let conv = Conv { window: window(&[1, 1], &[1, 1], &[top, left], &[bottom, right]), groups: 1 };
                let x = batched(&[1, channels, height, width]);
                check(conv, &[x, shared(&[out, channels, taps, taps]), shared(&[out])]);
            }
        }
    }

    #[test]
    fn strips_of_a_single_row_see_the_padding() {
        // 520 · 9 · 32 elements in a row of patches: one row per strip.
        let conv = Conv { window: window(&[1, 1], &[1, 1], &[1, 1], &[1, 1]), groups: 1 };
        let g = conv.geometry(&[1, 520, 3, 32], &[1, 520, 3, 3], &[1, 1, 3, 32]);
        assert_eq!(g.strips().count(), 3);
        check(conv, &[batched(&[1, 520, 3, 32]), shared(&[1, 520, 3, 3])]);
    }

    #[test]
    fn strips_make_no_difference() {
        // More positions than fit into one strip: 64 · 9 · 40 · 40 elements.
        let conv = Conv { window: window(&[1, 1], &[1, 1], &[1, 1], &[1, 1]), groups: 1 };
        let g = conv.geometry(&[1, 64, 40, 40], &[2, 64, 3, 3], &[1, 2, 40, 40]);
        assert!(g.strips().count() > 1);
        check(conv, &[batched(&[1, 64, 40, 40]), shared(&[2, 64, 3, 3])]);
    }
}
