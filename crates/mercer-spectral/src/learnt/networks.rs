//! Networks as a basis: the outputs of one network, which may be several joined by
//! [`side_by_side`](super::side_by_side).

use super::join;
use crate::basis::Basis;
use crate::error::{Result, SpectralError};
use crate::functions::Eigenfunctions;
use mercer_data::folder::{Part, PartWriter};
use mercer_kernel::Real;
use mercer_linalg::Scalar;
use mercer_net::Network;
use mercer_net::network::Batching;
use mercer_run::Context;
use serde_json::{Value, json};
use std::sync::Arc;

/// The outputs of a network as functions: output `j · outputs + c` is function `j` at output `c` of a matrix-valued
/// kernel.
///
/// The network is kept as the ONNX file in which it is saved, and is run from that file, so that functions give the
/// same bits before and after saving.
#[derive(Clone, Debug)]
pub struct Networks {
    bytes: Arc<Vec<u8>>,
    network: Arc<Network>,
    shapes: Vec<Vec<usize>>,
    n_functions: usize,
    outputs: usize,
    /// The only output that is used, if there is one kernel per output.
    only: Option<usize>,
}

impl Networks {
    /// The outputs of the network of an ONNX file as `outputs / per_sample` functions with `per_sample` numbers each.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the number of outputs is not a multiple of `per_sample`.
    pub fn new(bytes: Vec<u8>, per_sample: usize) -> Result<Self> {
        let network = Arc::new(Network::from_onnx_bytes(&bytes, Batching::Samples)?);
        let graph = network.declared_graph()?;
        let total = graph.outputs().first().map_or(0, |(_, id)| graph.value(*id).meta.numel());
        if total == 0 || per_sample == 0 || !total.is_multiple_of(per_sample) {
            let text = format!(
                "the {total} outputs of the network cannot be divided into functions with {per_sample} outputs each"
            );
            return Err(SpectralError::Setting(text));
        }
        let shapes = network.inputs().iter().map(|input| input.declared_sample()).collect::<Result<_, _>>()?;
        Ok(Self {
            bytes: Arc::new(bytes),
            n_functions: total / per_sample,
            shapes,
            network,
            outputs: per_sample,
            only: None,
        })
    }

    /// The functions at one output only.
    pub(crate) fn at_output(&self, output: usize) -> Self {
        Self { only: Some(output), ..self.clone() }
    }

    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }
}

impl<T: Real> Basis<T> for Networks {
    fn input_shapes(&self) -> &[Vec<usize>] {
        &self.shapes
    }

    fn n_functions(&self) -> usize {
        self.n_functions
    }

    fn per_sample(&self) -> usize {
        if self.only.is_some() { 1 } else { self.outputs }
    }

    fn eval(&self, inputs: &[&[T]], samples: usize, out: &mut [T], _: &Context) -> Result<()> {
        let shaped: Vec<(&[T], &[usize])> =
            inputs.iter().zip(&self.shapes).map(|(data, shape)| (*data, shape.as_slice())).collect();
        let values = self.network.predict(&shaped, samples, None, None)?.values;
        match self.only {
            None => by_row(&values, self.n_functions, self.outputs, out),
            Some(output) => {
                let one = values.iter().skip(output).step_by(self.outputs);
                out.iter_mut().zip(one).for_each(|(to, &x)| *to = x);
            }
        }
        Ok(())
    }

    fn write(&self, part: &PartWriter<'_>) -> Result<Value> {
        part.object(OBJECT, |writer| writer.write_all(&self.bytes))?;
        Ok(json!({ "type": TYPE, "outputs": self.outputs, "only": self.only }))
    }

    fn network(&self) -> Option<(&Network, usize)> {
        self.only.is_none().then_some((&*self.network, self.outputs))
    }
}

/// `[samples, functions, outputs]` as `[samples · outputs, functions]`.
pub(crate) fn by_row<T: Copy>(from: &[T], functions: usize, outputs: usize, to: &mut [T]) {
    if outputs == 1 {
        return to.copy_from_slice(from);
    }
    let size = functions * outputs;
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
        for (index, to) in to.iter_mut().enumerate() {
            *to = from[index % functions * outputs + index / functions];
        }
    }
}

/// The type in descriptions.
pub(crate) const TYPE: &str = "networks";

const OBJECT: &str = "functions";

/// A saved basis.
pub(crate) fn read(part: &Part<'_>, description: &Value) -> Result<Networks> {
    let wrong = |reason: &str| part.malformed(reason);
    let outputs = description["outputs"].as_u64().and_then(|n| usize::try_from(n).ok());
    let outputs = outputs.ok_or_else(|| wrong("the number of outputs is missing"))?;
    let only = match &description["only"] {
        Value::Null => None,
        value => Some(value.as_u64().and_then(|n| usize::try_from(n).ok()).ok_or_else(|| wrong("no output"))?),
    };
    if only.is_some_and(|only| only >= outputs) {
        return Err(wrong("its output does not exist").into());
    }
    Ok(Networks { only, ..Networks::new(part.object(OBJECT)?.to_vec(), outputs)? })
}

impl<T: Real> Eigenfunctions<T> {
    /// The functions as one network with `ψ(x)` as its only output, if they are made of networks. It can be exported to
    /// ONNX and run anywhere.
    ///
    /// # Errors
    /// [`SpectralError::Setting`] if the functions are not made of networks.
    pub fn to_network(&self) -> Result<Network> {
        let Some((network, per_sample)) = self.basis().network() else {
            return Err(SpectralError::Setting(
                "only functions learnt by networks can be exported; these need the kernel".to_owned(),
            ));
        };
        join::combined(network, per_sample, self.weights().mapv(Scalar::wide).view())
    }
}
