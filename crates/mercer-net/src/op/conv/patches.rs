//! Patches of images as columns of a matrix, and back.

use super::geometry::Geometry;
use crate::element::Element;
use std::ops::Range;

/// Visits the runs of patches of a strip: `body(to, from, inside)` for the row of patches that starts at `to`. Its
/// positions `inside` along the last axis come from the image row at `from`; `None` if the row is all padding.
#[inline(always)]
fn each_row(g: &Geometry, strip: &Range<usize>, mut body: impl FnMut(usize, Option<usize>, Range<usize>, usize)) {
    let [depth, height, width] = g.input;
    let row = g.output[2];
    let mut to = 0;
    for channel in 0..g.channels / g.groups {
        for kd in 0..g.kernel[0] {
            for kh in 0..g.kernel[1] {
                for kw in 0..g.kernel[2] {
                    let inside = g.inside(kw);
                    for at in strip.clone() {
                        // A division costs more than a short row.
                        let (od, oh) = if g.output[0] == 1 { (0, at) } else { (at / g.output[1], at % g.output[1]) };
                        let from = match (g.source(0, od, kd), g.source(1, oh, kh)) {
                            (Some(d), Some(h)) if !inside.is_empty() => {
                                let first = inside.start * g.strides[2] + kw * g.dilations[2] - g.before[2];
                                Some(((channel * depth + d) * height + h) * width + first)
                            }
                            _ => None,
                        };
                        body(to, from, inside.clone(), row);
                        to += row;
                    }
                }
            }
        }
    }
}

/// If the stride is one and rows keep their length, a plane of patches is a shifted plane of the image. Visits the
/// points of the window as `body(point, run)`; the run is the same for all channels.
#[inline(always)]
fn each_shift(g: &Geometry, strip: &Range<usize>, mut body: impl FnMut(usize, &Run)) {
    let [_, height, width] = g.input;
    for kh in 0..g.kernel[1] {
        // Rows of the strip that meet a row of the image.
        let down = (kh * g.dilations[1]) as isize - g.before[1] as isize;
        let first = (-down).max(strip.start as isize).min(strip.end as isize) as usize;
        let last = (height as isize - down).min(strip.end as isize).max(first as isize) as usize;
        for kw in 0..g.kernel[2] {
            let right = (kw * g.dilations[2]) as isize - g.before[2] as isize;
            let start = (first as isize + down) * width as isize + right;
            let end = start + ((last - first) * width) as isize;
            // What the shift pushes out of the plane is padding anyway.
            let (from, until) = (start.max(0), end.min((height * width) as isize));
            let edge = if right < 0 { 0..(-right) as usize } else { width - right as usize..width };
            let mut run = Run { to: 0, from: 0, count: 0, edge };
            if last > first && until > from {
                run.to = (first - strip.start) * width + (from - start) as usize;
                (run.from, run.count) = (from as usize, (until - from) as usize);
            }
            body(kh * g.kernel[2] + kw, &run);
        }
    }
}

/// Sets a few columns of a plane to zero. (Filling row by row would be one call per row.)
#[inline(always)]
fn clear_columns<T: Element>(plane: &mut [T], width: usize, columns: Range<usize>) {
    for column in columns {
        plane[column..].iter_mut().step_by(width).for_each(|x| *x = T::zero());
    }
}

/// A run of a shifted plane: `count` elements from `from` of the image's plane to `to` of the plane of patches.
/// Everything outside the run is padding, and so are the columns `edge` of every row, whatever the shift wrote there.
struct Run {
    to: usize,
    from: usize,
    count: usize,
    edge: Range<usize>,
}

/// Patches whose rows are pieces of the image's rows, of `N` to `2 N` elements or, with `N` = 0, of any length. A short
/// row is copied as two possibly overlapping vectors, which costs less than a function call.
fn copy_pieces<T: Element, const N: usize>(g: &Geometry, image: &[T], strip: &Range<usize>, patches: &mut [T]) {
    let ([_, height, width], row) = (g.input, g.output[2]);
    let mut to = patches.chunks_exact_mut(row.max(1));
    for channel in 0..g.channels / g.groups {
        for kh in 0..g.kernel[1] {
            for kw in 0..g.kernel[2] {
                let first = (channel * height + kh * g.dilations[1]) * width + kw * g.dilations[2];
                for (at, to) in strip.clone().zip(&mut to) {
                    let from = &image[first + at * g.strides[1] * width..][..row];
                    if N == 0 {
                        to.copy_from_slice(from);
                        continue;
                    }
                    if let (Some(to), Some(from)) = (to.first_chunk_mut::<N>(), from.first_chunk()) {
                        *to = *from;
                    }
                    if let (Some(to), Some(from)) = (to.last_chunk_mut::<N>(), from.last_chunk()) {
                        *to = *from;
                    }
                }
            }
        }
    }
}

/// The patches of a strip as a `patch × positions` matrix; the image itself where that is the same.
pub(super) fn to_patches<'a, T: Element>(
    g: &Geometry,
    image: &'a [T],
    strip: &Range<usize>,
    patches: &'a mut [T],
) -> &'a [T] {
    if g.is_pointwise() {
        return image;
    }
    if g.is_shift() {
        let (width, plane) = (g.input[2], g.input[1] * g.input[2]);
        let (size, points) = (strip.len() * width, g.kernel[1] * g.kernel[2]);
        each_shift(g, strip, |point, run| {
            let end = run.to + run.count;
            let to = patches[point * size..].chunks_mut(points * size);
            for (to, from) in to.zip(image.chunks_exact(plane)) {
                to[run.to..end].copy_from_slice(&from[run.from..run.from + run.count]);
                if run.count < size {
                    to[..run.to].fill(T::zero());
                    to[end..size].fill(T::zero());
                }
                clear_columns(&mut to[..size], width, run.edge.clone());
            }
        });
        return patches;
    }
    if g.is_piecewise() {
        match g.output[2] {
            4..=7 => copy_pieces::<T, 4>(g, image, strip, patches),
            8..=15 => copy_pieces::<T, 8>(g, image, strip, patches),
            16..=32 => copy_pieces::<T, 16>(g, image, strip, patches),
            _ => copy_pieces::<T, 0>(g, image, strip, patches),
        }
        return patches;
    }
    let stride = g.strides[2];
    each_row(g, strip, |to, from, inside, row| {
        let to = &mut patches[to..to + row];
        let Some(from) = from else { return to.fill(T::zero()) };
        to[..inside.start].fill(T::zero());
        to[inside.end..].fill(T::zero());
        let to = &mut to[inside];
        if stride == 1 {
            to.copy_from_slice(&image[from..from + to.len()]);
        } else {
            to.iter_mut().zip(image[from..].iter().step_by(stride)).for_each(|(to, &x)| *to = x);
        }
    });
    patches
}

/// Adds a `patch × positions` matrix back to the image; the padding part is dropped.
pub(super) fn from_patches<T: Element>(g: &Geometry, patches: &mut [T], strip: &Range<usize>, image: &mut [T]) {
    if g.is_shift() {
        let (width, plane) = (g.input[2], g.input[1] * g.input[2]);
        let (size, points) = (strip.len() * width, g.kernel[1] * g.kernel[2]);
        mercer_linalg::simd::dispatch(
            #[inline(always)]
            || {
                each_shift(
                    g,
                    strip,
                    #[inline(always)]
                    |point, run| {
                        let from = patches[point * size..].chunks_mut(points * size);
                        for (from, to) in from.zip(image.chunks_exact_mut(plane)) {
                            clear_columns(&mut from[..size], width, run.edge.clone());
                            let to = &mut to[run.from..run.from + run.count];
                            to.iter_mut().zip(&from[run.to..run.to + run.count]).for_each(|(to, &x)| *to += x);
                        }
                    },
                );
            },
        );
        return;
    }
    let stride = g.strides[2];
    mercer_linalg::simd::dispatch(
        #[inline(always)]
        || {
            each_row(g, strip, |from, to, inside, row| {
                let Some(to) = to else { return };
                let from = &patches[from..from + row][inside];
                if stride == 1 {
                    image[to..to + from.len()].iter_mut().zip(from).for_each(|(to, &x)| *to += x);
                } else {
                    image[to..].iter_mut().step_by(stride).zip(from).for_each(|(to, &x)| *to += x);
                }
            });
        },
    );
}

/// The side of the blocks for transposing matrices.
const BLOCK: usize = 16;

fn turned(rows: usize, cols: usize, mut body: impl FnMut(usize, usize)) {
    for row in (0..rows).step_by(BLOCK) {
        for col in (0..cols).step_by(BLOCK) {
            for c in col..(col + BLOCK).min(cols) {
                for r in row..(row + BLOCK).min(rows) {
                    body(r * cols + c, c * rows + r);
                }
            }
        }
    }
}

/// `to = fromᵀ`; `from` is `rows × cols`.
pub(super) fn transpose<T: Copy>(from: &[T], rows: usize, cols: usize, to: &mut [T]) {
    turned(rows, cols, |at_from, at_to| to[at_to] = from[at_from]);
}

/// `to += fromᵀ`; `from` is `rows × cols`.
pub(super) fn add_transposed<T: Element>(from: &[T], rows: usize, cols: usize, to: &mut [T]) {
    turned(rows, cols, |at_from, at_to| to[at_to] += from[at_from]);
}
