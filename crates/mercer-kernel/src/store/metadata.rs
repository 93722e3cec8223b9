//! The `zarr.json` files of a store: one of the group, one per array.
//!
//! Zarr specification version 3: core, with the codecs `bytes` and `crc32c`, the `regular` grid and the `default` keys.

use super::error::{Result, StoreError, io_error};
use super::layout::StoreLayout;
use super::manifest::Manifest;
use mercer_data::DType;
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;

/// The name of these files.
pub(super) const FILE: &str = "zarr.json";

/// Longer files are not read: ours have a few kilobytes.
const LONGEST: u64 = 16 << 20;

/// The contents of the group's file.
pub(super) fn group(manifest: &Manifest) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {"mercer": manifest.seal()}})
}

/// The contents of an array's file. `name` is the array's own name, which may not be a valid folder name.
pub(super) fn array(layout: &StoreLayout, name: &str) -> Value {
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": layout.shape(),
        "data_type": if layout.precision == DType::F64 { "float64" } else { "float32" },
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": layout.chunk_shape()}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
        "dimension_names": layout.axis_names(),
        "attributes": {"name": name},
    })
}

/// The manifest of the store in a folder, if all of its files agree.
pub(super) fn read(folder: &Path) -> Result<Manifest> {
    let path = folder.join(FILE);
    let found = read_json(&path)?;
    let malformed = |path: &Path, reason: &str| StoreError::Malformed {
        place: path.display().to_string(),
        reason: reason.to_owned(),
    };
    let Some(attribute) = found.pointer("/attributes/mercer") else {
        return Err(malformed(&path, "it has no attribute \"mercer\": Mercer did not make it"));
    };
    let manifest = Manifest::unseal(attribute, &path)?;
    if found != group(&manifest) {
        return Err(malformed(&path, "it is not the group that its manifest describes"));
    }
    for (name, array_folder) in manifest.layout.arrays.iter().zip(manifest.layout.folders()) {
        let path = folder.join(array_folder).join(FILE);
        if read_json(&path)? != array(&manifest.layout, name) {
            return Err(malformed(&path, "it is not the array that the store's manifest describes"));
        }
    }
    Ok(manifest)
}

fn read_json(path: &Path) -> Result<Value> {
    let malformed = |reason: String| StoreError::Malformed { place: path.display().to_string(), reason };
    let mut bytes = Vec::new();
    let (file, _) = mercer_data::open_regular(path).map_err(io_error(path))?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(io_error(path))?;
    if bytes.len() as u64 > LONGEST {
        return Err(malformed(format!("it is longer than {LONGEST} bytes")));
    }
    serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))
}
