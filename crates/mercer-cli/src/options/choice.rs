//! Choices with the names that the library gives them.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mercer::run::names::Named;

/// Parses a choice; help, errors and completions list its names.
pub(crate) fn choice<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let values = T::CHOICES.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(values).try_map(|text| T::from_name(&text))
}
