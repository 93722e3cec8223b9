//! Cases of the suite as they lie on disk.

use mercer_net::Tensor;
use std::path::{Path, PathBuf};

/// The operators that Mercer claims; a `node` case of others only may be refused.
const CLAIMED: &str = "\
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization Cast \
    CastLike Ceil Celu Clip Concat Constant ConstantOfShape Conv Cos Cosh CumSum DepthToSpace Div Dropout Elu \
    Equal Erf Exp Expand EyeLike Flatten Floor Gather GatherElements GatherND Gelu Gemm GlobalAveragePool \
    GlobalMaxPool Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish Identity If \
    InstanceNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax \
    LpNormalization MatMul Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu \
    Pad Pow RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax \
    ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize Round Selu Shape Shrink \
    Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Swish Tan \
    Tanh ThresholdedRelu Tile Transpose Trilu Unsqueeze Upsample Where Xor";

/// A model with inputs and the outputs it should have.
#[derive(Debug)]
pub(super) struct Case {
    folder: PathBuf,
    /// The group of the suite, for the table.
    pub(super) group: &'static str,
    /// Relative and absolute tolerance.
    pub(super) tolerance: (f64, f64),
}

/// Inputs and outputs of a case, where they are tensors.
pub(super) struct DataSet {
    pub(super) inputs: Vec<Tensor>,
    pub(super) outputs: Vec<Tensor>,
}

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn sorted(folder: &Path) -> Fallible<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Fallible<_>>()?;
    paths.sort();
    Ok(paths)
}

impl Case {
    /// All cases under a folder, group by group.
    pub(super) fn all(folder: &Path) -> Fallible<Vec<Self>> {
        let mut cases = Vec::new();
        for group in ["pytorch-converted", "pytorch-operator", "light", "simple", "node"] {
            for folder in sorted(&folder.join(group))? {
                let text = std::fs::read_to_string(folder.join("tolerance.txt"))?;
                let (relative, absolute) = text.split_once(' ').ok_or("a tolerance file is broken")?;
                let ops = std::fs::read_to_string(folder.join("ops.txt"))?;
                let claimed = ops.lines().all(|op| CLAIMED.split_whitespace().any(|claimed| claimed == op));
                let group = match (group, claimed) {
                    ("node", true) => "node, claimed ops",
                    ("node", false) => "node, other ops",
                    _ => group,
                };
                cases.push(Self { folder, group, tolerance: (relative.parse()?, absolute.parse()?) });
            }
        }
        Ok(cases)
    }

    /// Group and name.
    pub(super) fn path(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        format!("{}/{name}", self.group.split(',').next().unwrap_or_default())
    }

    /// The model, then versions of it in which arguments that the case gives as inputs are constants, each with the
    /// number of inputs that remain.
    pub(super) fn models(&self) -> Fallible<Vec<(Vec<u8>, usize)>> {
        let mut models = vec![(std::fs::read(self.folder.join("model.onnx"))?, usize::MAX)];
        for (name, free) in [("bound_1.onnx", 1), ("bound_0.onnx", 0)] {
            if let Ok(bytes) = std::fs::read(self.folder.join(name)) {
                models.push((bytes, free));
            }
        }
        Ok(models)
    }

    /// The data sets; `None` if a value is not a tensor that can be read.
    pub(super) fn data(&self) -> Fallible<Option<Vec<DataSet>>> {
        let mut sets = Vec::new();
        for folder in sorted(&self.folder)?.into_iter().filter(|path| path.is_dir()) {
            let (Some(inputs), Some(outputs)) = (tensors(&folder, "input")?, tensors(&folder, "output")?) else {
                return Ok(None);
            };
            sets.push(DataSet { inputs, outputs });
        }
        Ok(Some(sets))
    }
}

fn tensors(folder: &Path, kind: &str) -> Fallible<Option<Vec<Tensor>>> {
    let count = std::fs::read_to_string(folder.join(format!("{kind}s.txt")));
    let count = match count {
        Ok(text) => text.trim().parse()?,
        Err(_) => (0..).take_while(|index| folder.join(format!("{kind}_{index}.pb")).exists()).count(),
    };
    let mut tensors = Vec::new();
    for index in 0..count {
        let Ok(bytes) = std::fs::read(folder.join(format!("{kind}_{index}.pb"))) else { return Ok(None) };
        let Ok(tensor) = Tensor::from_bytes(&bytes) else { return Ok(None) };
        tensors.push(tensor);
    }
    Ok(Some(tensors))
}
