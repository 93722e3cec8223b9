//! A kernel within a saved result: its recipe and its network, if it has one.

use crate::error::{KernelError, Result};
use crate::kernel::Real;
use crate::recipe::{Built, Recipe};
use mercer_data::folder::{Part, PartWriter};
use mercer_net::Network;
use mercer_net::network::SavedNetwork;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Everything needed to build a kernel again.
#[derive(Clone, Debug)]
pub struct SavedKernel {
    /// The kernel.
    pub recipe: Recipe,
    /// Its network.
    pub network: Option<SavedNetwork>,
    /// The identity of the kernel ([`Kernel::identity`](crate::Kernel::identity)), which is compared when it is built
    /// again.
    pub identity: Option<Value>,
}

/// Whether two [identities](crate::Kernel::identity) belong to the same kernel. The forms in which its parts are
/// computed are not compared: a later version may choose others, and must still open old folders.
pub fn same_kernel(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            let names = |object: &Map<String, Value>| -> Vec<String> {
                object.keys().filter(|name| *name != "forms").cloned().collect()
            };
            names(one) == names(other) && names(one).iter().all(|name| same_kernel(&one[name], &other[name]))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same_kernel(one, other))
        }
        (one, other) => one == other,
    }
}

/// Its description in a manifest.
#[derive(Serialize, Deserialize)]
struct Content {
    recipe: Recipe,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    network: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    identity: Option<Value>,
}

impl SavedKernel {
    /// A kernel, and its network if it has one.
    pub fn new(recipe: Recipe, network: Option<SavedNetwork>) -> Self {
        Self { recipe, network, identity: None }
    }

    /// Adds the identity of the kernel.
    pub fn with_identity(self, identity: Value) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// The network, if the kernel has one.
    pub fn open(&self) -> Result<Option<Network>> {
        Ok(self.network.as_ref().map(SavedNetwork::open).transpose()?)
    }

    /// The kernel for samples of these shapes.
    pub fn build<T: Real>(&self, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        self.build_with(self.open()?.as_ref(), shapes)
    }

    /// The same, with the network [opened](Self::open) before.
    ///
    /// # Errors
    /// [`KernelError::Setting`] if it is not the kernel that was saved.
    pub fn build_with<T: Real>(&self, network: Option<&Network>, shapes: &[Vec<usize>]) -> Result<Built<T>> {
        let built = self.recipe.build::<T>(network, shapes)?;
        match &self.identity {
            Some(identity) if !same_kernel(identity, &built.kernel.identity()) => {
                Err(KernelError::Setting("this is not the saved kernel: its network is different".to_owned()))
            }
            _ => Ok(built),
        }
    }

    /// Writes the network into a folder, and returns the rest.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, part: &PartWriter<'_>) -> Result<Value, mercer_data::DataError> {
        let network = self.network.as_ref().map(|network| network.write(part)).transpose()?;
        part.content(&Content { recipe: self.recipe.clone(), network, identity: self.identity.clone() })
    }

    /// Reads it from a folder.
    ///
    /// # Errors
    /// If files are missing or damaged.
    pub fn read(part: &Part<'_>, content: &Value) -> Result<Self, mercer_data::DataError> {
        let Content { recipe, network, identity } = part.content(content)?;
        let network = network.map(|content| SavedNetwork::read(part, &content)).transpose()?;
        if recipe.needs_network() && network.is_none() {
            return Err(part.malformed("the network of the kernel is missing"));
        }
        Ok(Self { recipe, network, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn forms_are_no_part_of_a_kernel() {
        let own = json!({ "kernel": "sum", "of": [{ "network": "a", "forms": ["factored"] }] });
        for (other, same) in [
            (json!({ "kernel": "sum", "of": [{ "network": "a", "forms": ["explicit"] }] }), true),
            (json!({ "kernel": "sum", "of": [{ "network": "a" }] }), true),
            (json!({ "kernel": "sum", "of": [{ "network": "b", "forms": ["factored"] }] }), false),
            (json!({ "kernel": "sum", "of": [] }), false),
            (json!({ "kernel": "sum", "of": [{ "network": "a" }], "more": 1 }), false),
            (json!("sum"), false),
        ] {
            assert_eq!(same_kernel(&own, &other), same, "{other}");
        }
    }
}
