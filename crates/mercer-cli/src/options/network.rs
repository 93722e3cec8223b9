//! A network file, and which of its tensors are parameters.

use crate::failure::{AboutNetwork, Failure};
use mercer::net::{NetError, Network};
use std::path::Path;

/// Which tensors count as parameters.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Parameters of the network")]
pub(crate) struct ParameterOptions {
    /// Count tensors of this name as parameters, too (repeatable; `*` and `?` are wild)
    #[arg(long, value_name = "GLOB")]
    include: Vec<String>,

    /// Count tensors of this name as constants (repeatable; `*` and `?` are wild)
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<String>,
}

/// Opens an ONNX file.
pub(crate) fn open_network(path: &Path, parameters: &ParameterOptions) -> Result<Network, Failure> {
    if path.extension().is_some_and(|extension| {
        matches!(extension.to_str(), Some("pt" | "pth" | "ckpt" | "safetensors" | "h5" | "keras"))
    }) && path.exists()
    {
        return Err(Failure::new(format!("{}: this is not an ONNX model", path.display()))
            .hint("export the network with torch.onnx.export(model, example, \"model.onnx\") or tf2onnx"));
    }
    let mut network = Network::from_onnx(path).about(path)?;
    for (flag, include, exclude) in
        [("--include", &parameters.include[..], &[][..]), ("--exclude", &[], &parameters.exclude[..])]
    {
        network.select_parameters(include, exclude).map_err(|error| match error {
            NetError::Unknown { .. } => Failure::new(format!("{flag}: {error}"))
                .hint(format!("`mercer info {} -v` lists all names", path.display())),
            other => Failure::of_network(path, other),
        })?;
    }
    Ok(network)
}
