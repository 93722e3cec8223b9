//! Sections of a kernel at landmarks: `b_m(x) = κ(x, z_m)`.

use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use crate::folder::other_kernel;
use crate::samples;
use mercer_data::folder::{Part, PartWriter};
use mercer_kernel::{Block, Kernel, Real, same_kernel};
use mercer_run::Context;
use ndarray::ArrayD;
use rayon::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};

/// Landmarks per block: large enough for efficient products, small enough to share among threads.
const BLOCK: usize = 256;

/// Samples per block, between which the work can be cancelled: whole shards of any network.
const PIECE: usize = 128;

/// The functions `κ(·, z_m)`; for a matrix-valued kernel, one per landmark and output.
///
/// Prepared landmarks are kept if they take at most a quarter of the free memory. Otherwise they are prepared again for
/// every evaluation.
#[derive(Debug)]
pub struct Sections<T: Real> {
    kernel: Arc<dyn Kernel<T>>,
    landmarks: Vec<ArrayD<T>>,
    shapes: Vec<Vec<usize>>,
    n_landmarks: usize,
    prepared: OnceLock<Vec<Block>>,
}

impl<T: Real> Sections<T> {
    /// From a kernel and its landmarks, one array `[landmarks, …]` per input.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if there are no landmarks, or the inputs differ in their number.
    pub fn new(kernel: Arc<dyn Kernel<T>>, landmarks: Vec<ArrayD<T>>) -> Result<Self> {
        let counts: Vec<usize> = landmarks.iter().map(|input| input.shape().first().copied().unwrap_or(0)).collect();
        let n_landmarks = counts.first().copied().unwrap_or(0);
        if n_landmarks == 0 || counts.iter().any(|&count| count != n_landmarks) {
            return Err(SpectralError::Setting(format!(
                "every input needs the same number of landmarks, at least 1, not {counts:?}"
            )));
        }
        let landmarks: Vec<ArrayD<T>> =
            landmarks.into_iter().map(|input| input.as_standard_layout().into_owned()).collect();
        let shapes = landmarks.iter().map(|input| input.shape()[1..].to_vec()).collect();
        Ok(Self { kernel, landmarks, shapes, n_landmarks, prepared: OnceLock::new() })
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel<T>> {
        &self.kernel
    }

    /// The landmarks, one array per input.
    pub fn landmarks(&self) -> &[ArrayD<T>] {
        &self.landmarks
    }

    /// Prepares the landmarks of one block.
    fn prepare(&self, start: usize) -> Result<Block> {
        let end = (start + BLOCK).min(self.n_landmarks);
        let part = |input: &'_ ArrayD<T>| {
            let size = input.len() / self.n_landmarks;
            start * size..end * size
        };
        let inputs: Vec<&[T]> =
            self.landmarks.iter().map(|input| &input.as_slice().unwrap_or(&[])[part(input)]).collect();
        Ok(self.kernel.prepare(&inputs, end - start)?)
    }

    fn starts(&self) -> impl Iterator<Item = usize> {
        (0..self.n_landmarks).step_by(BLOCK)
    }

    /// All blocks, if they may stay in memory.
    fn kept(&self, context: &Context) -> Result<Option<&[Block]>> {
        if let Some(blocks) = self.prepared.get() {
            return Ok(Some(blocks));
        }
        if self.kernel.cost().sample_bytes.saturating_mul(self.n_landmarks) > context.memory() / 4 {
            return Ok(None);
        }
        let prepared = self.starts().map(|start| {
            context.check()?;
            self.prepare(start)
        });
        let blocks = prepared.collect::<Result<Vec<_>>>()?;
        Ok(Some(self.prepared.get_or_init(|| blocks)))
    }

    /// `[rows of samples, rows of landmarks]`, the sum of the kernel's parts.
    fn tile(&self, samples: &Block, landmarks: &Block) -> Vec<T> {
        let rows = self.kernel.per_sample();
        let size = samples.samples() * rows * landmarks.samples() * rows;
        samples::whole(&*self.kernel, samples, landmarks, size)
    }
}

impl<T: Real> Basis<T> for Sections<T> {
    fn input_shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    fn n_functions(&self) -> usize {
        self.n_landmarks * self.kernel.per_sample()
    }

    fn per_sample(&self) -> usize {
        self.kernel.per_sample()
    }

    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T], context: &Context) -> Result<()> {
        let (width, rows) = (self.n_functions(), self.per_sample());
        let place = |out: &mut [T], start: usize, tile: &[T]| {
            let part = tile.len() / (out.len() / width.max(1)).max(1);
            for (row, values) in out.chunks_exact_mut(width).zip(tile.chunks_exact(part.max(1))) {
                row[start * rows..][..part].copy_from_slice(values);
            }
        };
        if let Some(blocks) = self.kept(context)? {
            // Samples are independent, so working in blocks allows cancellation.
            for piece in samples::pieces(samples, PIECE) {
                context.check()?;
                let part = |data: &&[T]| data.len() / samples * piece.start..data.len() / samples * piece.end;
                let own: Vec<&[T]> = inputs.iter().map(|data| &data[part(data)]).collect();
                let block = self.kernel.prepare(&own, piece.len()).map_err(|error| error.shifted(piece.start))?;
                let tiles: Vec<Vec<T>> = blocks.par_iter().map(|landmarks| self.tile(&block, landmarks)).collect();
                let out = &mut out[piece.start * rows * width..piece.end * rows * width];
                self.starts().zip(&tiles).for_each(|(start, tile)| place(out, start, tile));
            }
        } else {
            let block = self.kernel.prepare(inputs, samples)?;
            for start in self.starts() {
                context.check()?;
                place(out, start, &self.tile(&block, &self.prepare(start)?));
            }
        }
        match out.iter().position(|x| !x.is_finite()) {
            None => Ok(()),
            Some(at) => {
                let (row, column) = (at / width / rows, at % width / rows);
                Err(mercer_kernel::KernelError::Overflow { row, column }.into())
            }
        }
    }

    fn write(&self, part: &PartWriter<'_>) -> Result<Value> {
        for (input, landmarks) in self.landmarks.iter().enumerate() {
            part.array(&landmarks_name(input), landmarks)?;
        }
        Ok(json!({ "type": TYPE, "kernel": self.kernel.identity() }))
    }
}

/// The type in descriptions.
pub(crate) const TYPE: &str = "sections";

fn landmarks_name(input: usize) -> String {
    format!("landmarks{input}")
}

/// The landmarks of a saved basis, with the kernel of its description.
pub(crate) fn read<T: Real>(
    part: &Part<'_>,
    description: &Value,
    inputs: &[Vec<usize>],
    kernel: Option<Arc<dyn Kernel<T>>>,
) -> Result<Sections<T>> {
    let other = |reason: String| other_kernel(part, reason);
    let kernel = kernel.ok_or_else(|| other("the kernel of these functions must be given".to_owned()))?;
    let (saved, given) = (&description["kernel"], kernel.identity());
    if !same_kernel(saved, &given) {
        return Err(other(format!("the functions belong to the kernel {saved}, not to {given}")));
    }
    let read = |(input, shape): (usize, &Vec<usize>)| {
        let sizes: Vec<Option<usize>> = std::iter::once(None).chain(shape.iter().copied().map(Some)).collect();
        Ok(part.read::<T>(&landmarks_name(input), &sizes)?)
    };
    Sections::new(kernel, inputs.iter().enumerate().map(read).collect::<Result<_>>()?)
}
