//! `--precision`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use mercer::spec::Precision;

/// The names of the library.
pub(crate) fn parse_precision() -> impl TypedValueParser<Value = Precision> {
    let values = Precision::ALL.map(|(precision, help)| PossibleValue::new(precision.name()).help(help));
    PossibleValuesParser::new(values).try_map(|text| text.parse::<Precision>())
}
