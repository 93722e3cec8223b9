//! Assigns data to the inputs of a network.

use super::{DataRef, Inputs};
use crate::Error;
use mercer_data::{Columns, Dataset, Source};
use mercer_run::names;
use std::path::Path;

/// The data for one input of a network.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    File(Source),
    Given(Box<Dataset>),
    /// Made from a text, with what is known about its column.
    Decoded(Box<(Dataset, Columns)>),
}

impl std::fmt::Display for Bound {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(source) => source.fmt(formatter),
            Self::Given(set) => formatter.write_str(set.name()),
            Self::Decoded(made) => formatter.write_str(made.0.name()),
        }
    }
}

/// Assigns the sources that the user named under a setting (`data`) to the inputs of the network.
///
/// `NAME=…` goes to the input of that name, and so does the array of that name in an npz file. A source without a name
/// goes to the only input that is left. If several are left, we do not guess.
pub(super) fn assign(flag: &str, all: &[&str], data: &[DataRef], inputs: &Inputs) -> Result<Vec<Bound>, Error> {
    let flag = &format!("‹{flag}›");
    let mut given: Vec<Option<Bound>> = vec![None; all.len()];
    let mut unnamed = Vec::new();
    for text in data {
        let (name, source) = bind(flag, all, text, inputs)?;
        let Some(name) = name else {
            unnamed.push(source);
            continue;
        };
        match all.iter().position(|own| *own == name) {
            Some(index) if given[index].is_some() => {
                return Err(Error::new(format!("{flag} gives the input {name} twice")));
            }
            Some(index) => given[index] = Some(source),
            // With a single input there is nothing to choose, and the name is not used.
            None if all.len() == 1 => unnamed.push(source),
            None => {
                let near = names::near(&name, all);
                let listed = if near.is_empty() { all.join(", ") } else { near.join(", ") };
                return Err(Error::new(format!("{flag} {text}: the network has no input named {name}"))
                    .hint(format!("its inputs are near that: {listed}")));
            }
        }
    }
    place_unnamed(flag, all, &mut given, unnamed)?;
    given
        .into_iter()
        .zip(all)
        .map(|(source, name)| {
            let missing = || Error::new(format!("there are no data for the input {name}"));
            source.ok_or_else(|| missing().hint(format!("{flag} {name}=FILE[:KEY]")))
        })
        .collect()
}

fn place_unnamed(flag: &str, all: &[&str], given: &mut [Option<Bound>], mut unnamed: Vec<Bound>) -> Result<(), Error> {
    let free: Vec<usize> = (0..given.len()).filter(|&index| given[index].is_none()).collect();
    match (unnamed.pop(), free[..].split_first()) {
        (None, _) => Ok(()),
        (Some(source), Some((&index, []))) if unnamed.is_empty() => {
            given[index] = Some(source);
            Ok(())
        }
        (Some(source), None | Some((_, []))) => {
            let (inputs, names) = (all.len(), all.join(", "));
            let plural = if inputs == 1 { "" } else { "s" };
            let text = format!(
                "{flag} {source}: there are more data than inputs; the network has {inputs} input{plural}: {names}"
            );
            Err(Error::new(text).hint("give each input once"))
        }
        (Some(source), Some((&index, _))) => {
            let text = format!(
                "{flag} {source}: the network has several inputs ({}), so say which one this is for",
                all.join(", ")
            );
            Err(Error::new(text).hint(format!("{flag} {}={source}", all[index])))
        }
    }
}

/// The name of the input, if given, and its data.
fn bind(flag: &str, all: &[&str], data: &DataRef, inputs: &Inputs) -> Result<(Option<String>, Bound), Error> {
    match data {
        DataRef::File(text) => {
            let (name, source) = split(flag, all, text)?;
            let name = name.or_else(|| source.key().filter(|key| all.contains(key)).map(str::to_owned));
            Ok((name, Bound::File(source)))
        }
        DataRef::Given { given } => {
            let name = all.contains(&given.as_str()).then(|| given.clone());
            Ok((name, Bound::Given(Box::new(inputs.array(given)?.clone()))))
        }
    }
}

/// The name before `=`, and the source after it. Input names may contain characters that other names may not
/// (`input:0`).
pub(super) fn split(flag: &str, inputs: &[&str], text: &str) -> Result<(Option<String>, Source), Error> {
    let rest_of = |name: &&str| text.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
    if !Path::new(text).exists()
        && let Some((name, rest)) = inputs.iter().find_map(|name| rest_of(name).map(|rest| (*name, rest)))
    {
        return Ok((Some(name.to_owned()), parse(flag, text, rest)?));
    }
    let source = parse(flag, text, text)?;
    let name = Some(source.name()).filter(|name| *name != source.place());
    Ok((name, source))
}

fn parse(flag: &str, text: &str, rest: &str) -> Result<Source, Error> {
    rest.parse().map_err(|error| Error::new(format!("{flag} {text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(inputs: &[&str], texts: &[&str]) -> Result<Vec<String>, String> {
        let data: Vec<DataRef> = texts.iter().map(|&text| text.into()).collect();
        let bound = assign("data", inputs, &data, &Inputs::none()).map_err(|error| error.message().to_owned())?;
        let place = |bound: &Bound| match bound {
            Bound::File(source) => source.place(),
            Bound::Given(set) => set.name().to_owned(),
            Bound::Decoded(made) => made.0.name().to_owned(),
        };
        Ok(bound.iter().map(place).collect())
    }

    #[test]
    fn names_decide_and_the_last_one_may_be_left_out() {
        let two = &["ids", "mask"];
        assert_eq!(places(&["x"], &["a.npy"]).unwrap(), ["a.npy"]);
        assert_eq!(places(&["x"], &["test=a.npz:k"]).unwrap(), ["a.npz:k"]);
        assert_eq!(places(two, &["mask=m.npy", "ids=i.npy"]).unwrap(), ["i.npy", "m.npy"]);
        assert_eq!(places(two, &["mask=m.npy", "i.npy"]).unwrap(), ["i.npy", "m.npy"]);
        assert_eq!(places(two, &["t.npz:mask", "t.npz:ids"]).unwrap(), ["t.npz:ids", "t.npz:mask"]);
        assert_eq!(places(&["input:0"], &["input:0=a.npz:x"]).unwrap(), ["a.npz:x"]);
    }

    #[test]
    fn guesses_are_refused() {
        let two = &["ids", "mask"];
        assert!(places(two, &["a.npy", "b.npy"]).unwrap_err().contains("several inputs (ids, mask)"));
        assert!(places(two, &["ids=a.npy"]).unwrap_err().contains("no data for the input mask"));
        assert!(places(two, &["ids=a.npy", "ids=b.npy"]).unwrap_err().contains("twice"));
        assert!(places(two, &["idx=a.npy", "mask=b.npy"]).unwrap_err().contains("no input named idx"));
        assert!(places(&["x"], &["a.npy", "b.npy"]).unwrap_err().contains("more data than inputs"));
    }
}
