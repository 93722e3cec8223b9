//! An expression as a kernel: its terms, combined by the algebra of kernels.

use super::expression::{Formula, Node};
use super::leaf::Leaf;
use crate::algebra::{Product, Scaled, Sum};
use crate::error::{KernelError, Result};
use crate::kernel::{Block, Cost, Kernel, Real};
use std::sync::Arc;

/// A classic kernel for samples of a known size. Samples with several axes (images) are flattened to vectors.
///
/// ```
/// use mercer_kernel::Kernel;
/// use mercer_kernel::classic::Classic;
///
/// let kernel = Classic::<f32>::new(&"linear() + 1".parse()?, 2)?;
/// let block = kernel.prepare(&[&[1.0, 2.0, 0.0, 3.0]], 2)?;
/// let mut gram = [0.0; 4];
/// kernel.contract(&block, &block, &mut gram);
/// assert_eq!(gram, [6.0, 7.0, 7.0, 10.0]);
/// # Ok::<(), mercer_kernel::KernelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Classic<T> {
    kernel: Arc<dyn Kernel<T>>,
    expression: Formula,
}

impl<T: Real> Classic<T> {
    /// For samples of `size` numbers. An error if a kernel has another number of lengthscales, or `size` is zero.
    pub fn new(expression: &Formula, size: usize) -> Result<Self> {
        if size == 0 {
            return Err(KernelError::Setting("a kernel of samples without numbers".to_owned()));
        }
        Ok(Self { kernel: build(&expression.0, size)?, expression: expression.clone() })
    }

    /// The formula.
    pub fn expression(&self) -> &Formula {
        &self.expression
    }
}

fn build<T: Real>(node: &Node, size: usize) -> Result<Arc<dyn Kernel<T>>> {
    Ok(match node {
        Node::Number(value) => Arc::new(Constant(T::narrow(*value))),
        Node::Term(term) => Arc::new(Leaf::new(term, size)?),
        Node::Sum(nodes) => Arc::new(Sum::new(build_all(nodes.iter(), size)?)?),
        Node::Product(nodes) => {
            let is_number = |node: &&Node| matches!(node, Node::Number(_));
            let factor: f64 =
                nodes.iter().map(|node| if let Node::Number(value) = node { *value } else { 1.0 }).product();
            let mut kernels: Vec<Arc<dyn Kernel<T>>> = build_all(nodes.iter().filter(|node| !is_number(node)), size)?;
            let product: Arc<dyn Kernel<T>> = match kernels.len() {
                0 => return Ok(Arc::new(Constant(T::narrow(factor)))),
                1 => kernels.remove(0),
                _ => Arc::new(Product::new(kernels)?),
            };
            if nodes.iter().any(|node| is_number(&node)) {
                Arc::new(Scaled::new(product, T::narrow(factor))?)
            } else {
                product
            }
        }
    })
}

fn build_all<'a, T: Real>(nodes: impl Iterator<Item = &'a Node>, size: usize) -> Result<Vec<Arc<dyn Kernel<T>>>> {
    nodes.map(|node| build(node, size)).collect()
}

impl<T: Real> Kernel<T> for Classic<T> {
    fn cost(&self) -> Cost {
        self.kernel.cost()
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!({ "kernel": "classic", "expression": self.expression.to_string(), "precision": T::NAME })
    }

    fn prepare(&self, inputs: &[&[T]], samples: usize) -> Result<Block> {
        self.kernel.prepare(inputs, samples)
    }

    fn contract(&self, a: &Block, b: &Block, tile: &mut [T]) {
        self.kernel.contract(a, b, tile);
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        self.kernel.diagonal(a)
    }
}

/// The same number for every pair.
#[derive(Clone, Copy, Debug)]
struct Constant<T>(T);

impl<T: Real> Kernel<T> for Constant<T> {
    fn cost(&self) -> Cost {
        Cost { pair_flops: 1.0, ..Cost::default() }
    }

    fn identity(&self) -> serde_json::Value {
        serde_json::json!(self.0.wide())
    }

    fn prepare(&self, _: &[&[T]], samples: usize) -> Result<Block> {
        Ok(Block::new(samples, ()))
    }

    fn contract(&self, _: &Block, _: &Block, tile: &mut [T]) {
        tile.fill(self.0);
    }

    fn diagonal(&self, a: &Block) -> Vec<T> {
        vec![self.0; a.samples()]
    }
}
