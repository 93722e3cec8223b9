//! Results as JSON.

use crate::Error;
use serde::Serialize;

/// Something that can be written as JSON: outcomes, plans, findings.
pub trait Json {
    /// As text, indented.
    ///
    /// # Errors
    /// If it cannot be represented in JSON, such as a map whose keys are not strings.
    fn json(&self) -> Result<String, Error>;
}

impl<T: Serialize> Json for T {
    fn json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self);
        text.map_err(|error| Error::new(format!("the result cannot be written as JSON: {error}")))
    }
}
