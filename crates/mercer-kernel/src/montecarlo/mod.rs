//! Kernels as means over random networks of finite width.
//!
//! ```text
//! NNGP: κ(x, x') ≈ 1/(S C) Σ_s g(x, θ_s)·g(x', θ_s),   NTK: Θ(x, x') ≈ 1/(S C) Σ_s tr J(x, θ_s) J(x', θ_s)ᵀ,   θ_s ~ p(θ)
//! ```
//!
//! with all `C` outputs of each of `S` networks (Deng et al. 2022, NeuralEF, arXiv 2205.00165, equation 19 and appendix B; Novak et
//! al., arXiv 1810.05148). This works for any network, also without a known [limit](crate::infinite): max-pools,
//! attention, shared weights. The networks keep their finite width: as `S` grows the mean converges to the expectation
//! at that width, which differs from the limit by `O(1/width)`; the standard errors reflect only `S`.
//!
//! Standard errors are those of the mean over networks, `√(Var_s / S)`, from the means over outputs of each: outputs of one
//! network share its hidden layers and are not independent at finite width.

mod ensemble;
mod moments;
mod networks;
mod roles;

pub use ensemble::Ensemble;
pub use moments::Moments;
pub use networks::RandomNetworks;

use crate::empirical::{Ntk, NtkKind, Selection};
use crate::error::{KernelError, Result};
use crate::infinite::{LimitKind, Rule};
use crate::kernel::{Block, Cost, Kernel, Real};
use crate::products::{products, squares};
use mercer_net::Network;
use mercer_net::network::check_inputs;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// The name of the matrix of standard errors beside a mean.
pub const STANDARD_ERROR: &str = "standard error";

/// The prepared data of all networks for a sample are kept if they take no more bytes than this. Otherwise they are
/// computed again for every tile, and memory does not grow with the number of networks.
const KEPT_BYTES: usize = 2 << 20;

/// The approximate bytes of the blocks and tiles of concurrent networks.
const GROUP_BYTES: usize = 256 << 20;

/// Samples of a tile that share costs; see the planner.
const TILE: usize = 256;

/// The NNGP or the NTK as a mean over random networks.
///
/// ```
/// use mercer_kernel::MonteCarlo;
/// use mercer_kernel::infinite::{LimitKind, Rule};
/// use mercer_net::arch::Mlp;
///
/// let network = Mlp::new(2, &[64, 64], 4).build(0)?;
/// let kernel = MonteCarlo::<f64>::new(&network, &[vec![2]], &Rule::ntk(1.4, 0.1), LimitKind::Nngp, 50, 0)?;
/// let mut moments = kernel.start(3);
/// let samples = [1.0, 0.0, 0.6, 0.8, 0.0, 1.0];
/// kernel.extend(&mut moments, 0..50, &[&samples], 3)?;
/// assert_eq!(moments.mean()[1], moments.mean()[3]);
/// assert!(moments.standard_errors()[0] < 0.2 * moments.mean()[0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MonteCarlo<T> {
    networks: RandomNetworks<T>,
    /// The tangent kernel of the first network: it contracts the blocks of all of them.
    tangent: Option<Ntk<T>>,
    errors: bool,
    keeps: bool,
}

/// The samples of a block, if the prepared data are not kept.
struct Inputs<T>(Vec<Vec<T>>);

impl<T: Real> Inputs<T> {
    fn slices(block: &Block) -> Vec<&[T]> {
        block.content::<Self>().0.iter().map(Vec::as_slice).collect()
    }
}

/// The prepared data of all networks for a block, in order.
struct Kept(Vec<Block>);

impl<T: Real> MonteCarlo<T> {
    /// The mean over this many random networks with the architecture of this network, for samples of these shapes (one
    /// per input). Only parameters without a rule keep the network's values; see [`Ensemble`].
    pub fn new(
        network: &Network,
        samples: &[Vec<usize>],
        rule: &Rule,
        of: LimitKind,
        n_networks: usize,
        seed: u64,
    ) -> Result<Self> {
        let ensemble = Arc::new(Ensemble::new(network, samples, rule, seed)?);
        Self::over(RandomNetworks::new(ensemble, n_networks)?, of)
    }

    /// The mean over these networks.
    pub fn over(networks: RandomNetworks<T>, of: LimitKind) -> Result<Self> {
        let mut kernel = Self { networks, tangent: None, errors: false, keeps: false };
        if of == LimitKind::Ntk {
            kernel.tangent = Some(kernel.tangent_of(kernel.networks.networks().start)?);
        }
        kernel.keeps = kernel.networks.networks().len().saturating_mul(kernel.network_bytes()) <= KEPT_BYTES;
        Ok(kernel)
    }

    /// Adds a second matrix [beside](Kernel::beside) the kernel: the standard error of each entry. It needs at least
    /// two networks.
    pub fn with_errors(self) -> Result<Self> {
        if self.count() < 2 {
            return Err(KernelError::Setting("the standard error of a single network; take two or more".to_owned()));
        }
        Ok(Self { errors: true, ..self })
    }

    /// Computes prepared data again for every tile instead of keeping them; the result is the same.
    pub fn streaming(self) -> Self {
        Self { keeps: false, ..self }
    }

    /// The networks.
    pub fn networks(&self) -> &RandomNetworks<T> {
        &self.networks
    }

    fn count(&self) -> usize {
        self.networks.networks().len()
    }

    /// Empty moments of the matrix of this many samples with themselves.
    pub fn start(&self, samples: usize) -> Moments<T> {
        Moments::new(samples * samples)
    }

    /// Adds networks of the ensemble, by their numbers, to the matrix of some samples with themselves. The networks `0..S` and
    /// then `S..S'` give the bits of `0..S'`; memory does not grow with their number.
    pub fn extend(
        &self,
        moments: &mut Moments<T>,
        networks: Range<usize>,
        inputs: &[&[T]],
        samples: usize,
    ) -> Result<()> {
        self.stream(networks, (inputs, samples), None, |_, tile, factor| moments.add(tile, factor))
    }

    fn tangent_of(&self, network: usize) -> Result<Ntk<T>> {
        let ensemble = self.networks.ensemble();
        let selection = Selection::default();
        let ntk = Ntk::at(Arc::clone(ensemble.graph()), ensemble.weights(network), NtkKind::Trace, &selection)?;
        Ok(match &self.tangent {
            Some(first) => ntk.sharing(first),
            None => ntk,
        })
    }

    /// Bytes of a sample that one network has prepared.
    fn network_bytes(&self) -> usize {
        self.tangent.as_ref().map_or(self.networks.n_outputs() * size_of::<T>(), |ntk| ntk.cost().sample_bytes)
    }

    /// The prepared data of one network for some samples.
    fn prepare_one(&self, network: usize, inputs: &[&[T]], samples: usize) -> Result<Block> {
        match &self.tangent {
            None => Ok(Block::new(samples, self.networks.outputs(network, inputs, samples)?)),
            Some(_) => self.tangent_of(network)?.prepare(inputs, samples),
        }
    }

    /// The matrix of one network, times the number of outputs.
    fn contract_one(&self, a: &Block, b: &Block, tile: &mut [T]) {
        match &self.tangent {
            None => {
                let width = self.networks.n_outputs();
                let (x, y) = (a.content::<Vec<T>>(), b.content::<Vec<T>>());
                products((x, a.samples(), width), (y, b.samples(), width), width, false, tile);
            }
            Some(tangent) => tangent.contract(a, b, tile),
        }
    }

    fn diagonal_one(&self, a: &Block) -> Vec<T> {
        match &self.tangent {
            None => squares(a.content::<Vec<T>>(), a.samples()),
            Some(tangent) => tangent.diagonal(a),
        }
    }

    /// The factor on the matrix of one network.
    fn factor(&self) -> T {
        T::narrow(1.0 / self.networks.n_outputs() as f64)
    }

    /// The number of concurrent networks.
    fn group(&self) -> usize {
        let bytes = 2 * TILE * self.network_bytes() + TILE * TILE * size_of::<T>();
        self.networks.group().min((GROUP_BYTES / bytes).max(1))
    }

    fn groups(&self, networks: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let (group, end) = (self.group(), networks.end);
        networks.step_by(group).map(move |start| start..(start + group).min(end))
    }

    /// Passes the number (from one), the matrix and the factor of every network to `each`, in order.
    fn stream(
        &self,
        networks: Range<usize>,
        (inputs, samples): (&[&[T]], usize),
        other: Option<(&[&[T]], usize)>,
        mut each: impl FnMut(usize, &[T], T),
    ) -> Result<()> {
        let (width, mut count) = (other.map_or(samples, |(_, samples)| samples), 0);
        for group in self.groups(networks) {
            let tile = |network: usize| {
                let a = self.prepare_one(network, inputs, samples)?;
                let b = other.map(|(inputs, samples)| self.prepare_one(network, inputs, samples)).transpose()?;
                let mut tile = vec![T::zero(); samples * width];
                self.contract_one(&a, b.as_ref().unwrap_or(&a), &mut tile);
                Ok(tile)
            };
            let tiles: Vec<Result<Vec<T>>> = group.into_par_iter().map(tile).collect();
            for tile in tiles {
                count += 1;
                each(count, &tile?, self.factor());
            }
        }
        Ok(())
    }
}

impl<T: Real> Kernel<T> for MonteCarlo<T> {
    fn beside(&self) -> Vec<String> {
        if self.errors { vec![STANDARD_ERROR.to_owned()] } else { Vec::new() }
    }

    fn cost(&self) -> Cost {
        let (count, graph) = (self.count() as f64, self.networks.ensemble().graph());
        let one = match &self.tangent {
            Some(ntk) => ntk.cost(),
            None => Cost {
                sample_bytes: self.network_bytes(),
                prepare_flops: self.networks.flops(),
                pair_flops: 2.0 * self.networks.n_outputs() as f64,
                ..Cost::default()
            },
        };
        let (prepare_bytes, shared_bytes) =
            (self.networks.bytes() + one.prepare_bytes, self.networks.weights_bytes() + one.shared_bytes);
        // Averages take four operations per entry.
        let pair_flops = count * (one.pair_flops + 4.0);
        if self.keeps {
            return Cost {
                sample_bytes: self.count() * one.sample_bytes,
                prepare_bytes,
                shared_bytes,
                contract_tiles: one.contract_tiles + 1,
                prepare_flops: count * one.prepare_flops,
                pair_flops,
                ..one
            };
        }
        let group = self.group();
        let inputs: usize = graph.inputs().iter().map(|&id| graph.value(id).meta.numel()).sum();
        Cost {
            sample_bytes: inputs * size_of::<T>(),
            prepare_bytes,
            shared_bytes,
            shared_sample_bytes: 0,
            contract_bytes: group * (2 * one.sample_bytes + one.contract_bytes),
            contract_tiles: group * (one.contract_tiles + 1),
            contract_alone: true,
            prepare_flops: 0.0,
            pair_flops: pair_flops + count * one.prepare_flops * 2.0 / TILE as f64,
        }
    }

    fn identity(&self) -> serde_json::Value {
        let of = if self.tangent.is_some() { "ntk" } else { "nngp" };
        serde_json::json!({ "kernel": "monte carlo", "of": of, "over": self.networks.identity() })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        if !self.keeps {
            check_inputs(self.networks.ensemble().graph(), inputs, samples)?;
            return Ok(Block::new(samples, Inputs(inputs.iter().map(|data| data.to_vec()).collect())));
        }
        let mut blocks = Vec::with_capacity(self.count());
        for group in self.groups(self.networks.networks()) {
            let prepared: Vec<Result<Block>> =
                group.into_par_iter().map(|network| self.prepare_one(network, inputs, samples)).collect();
            for block in prepared {
                blocks.push(block?);
            }
        }
        Ok(Block::new(samples, Kept(blocks)))
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        tile.fill(T::zero());
        let size = a.samples() * b.samples();
        let (mean, squares) = tile.split_at_mut(size);
        let mut add = |count: usize, draw: &[T], factor: T| match self.errors {
            true => moments::add(count, draw, factor, mean, squares),
            false => moments::add_mean(count, draw, factor, mean),
        };
        if self.keeps {
            let mut one = vec![T::zero(); size];
            for (at, (x, y)) in a.content::<Kept>().0.iter().zip(&b.content::<Kept>().0).enumerate() {
                self.contract_one(x, y, &mut one);
                add(at + 1, &one, self.factor());
            }
        } else {
            let (x, y) = (Inputs::slices(a), Inputs::slices(b));
            let other = (!std::ptr::eq(a, b)).then_some((&y[..], b.samples()));
            if self.stream(self.networks.networks(), (&x, a.samples()), other, add).is_err() {
                // Errors cannot be returned here; the engine names the pair of samples.
                tile.fill(T::nan());
                return;
            }
        }
        if self.errors {
            moments::finish(self.count(), squares);
        }
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        let mut mean = vec![T::zero(); a.samples()];
        let mut add = |at: usize, block: &Block| {
            moments::add_mean(at + 1, &self.diagonal_one(block), self.factor(), &mut mean);
        };
        if self.keeps {
            a.content::<Kept>().0.iter().enumerate().for_each(|(at, block)| add(at, block));
            return mean;
        }
        let inputs = Inputs::<T>::slices(a);
        for (at, network) in self.networks.networks().enumerate() {
            match self.prepare_one(network, &inputs, a.samples()) {
                Ok(block) => add(at, &block),
                Err(_) => return vec![T::nan(); a.samples()],
            }
        }
        mean
    }
}
