//! Which data go to which input of a network.

use crate::failure::Failure;
use mercer::data::Source;
use mercer::net::names;
use std::path::Path;

/// Sorts what the user wrote after `flag` (`--data`) by the inputs of the network.
///
/// `NAME=…` goes to the input of that name; so does the array of that name of an npz file. What has neither goes to the
/// only input that is left. More than one left is a guess we do not make.
pub(crate) fn assign(flag: &str, all: &[&str], texts: &[String]) -> Result<Vec<Source>, Failure> {
    let mut given: Vec<Option<Source>> = vec![None; all.len()];
    let mut unnamed = Vec::new();
    for text in texts {
        let (name, source) = split(flag, all, text)?;
        let Some(name) = name.or_else(|| source.key().filter(|key| all.contains(key)).map(str::to_owned)) else {
            unnamed.push(source);
            continue;
        };
        match all.iter().position(|own| *own == name) {
            Some(index) if given[index].is_some() => {
                return Err(Failure::new(format!("{flag} gives the input {name} twice")));
            }
            Some(index) => given[index] = Some(source),
            // With a single input there is nothing to choose, and the name is only a name.
            None if all.len() == 1 => unnamed.push(source),
            None => {
                let near = names::near(&name, all);
                let listed = if near.is_empty() { all.join(", ") } else { near.join(", ") };
                return Err(Failure::new(format!("{flag} {text}: the network has no input named {name}"))
                    .hint(format!("its inputs are near that: {listed}")));
            }
        }
    }
    place_unnamed(flag, all, &mut given, unnamed)?;
    given
        .into_iter()
        .zip(all)
        .map(|(source, name)| {
            let missing = || Failure::new(format!("there are no data for the input {name}"));
            source.ok_or_else(|| missing().hint(format!("{flag} {name}=FILE[:KEY]")))
        })
        .collect()
}

fn place_unnamed(
    flag: &str,
    all: &[&str],
    given: &mut [Option<Source>],
    mut unnamed: Vec<Source>,
) -> Result<(), Failure> {
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
            Err(Failure::new(text).hint("give each input once"))
        }
        (Some(source), Some((&index, _))) => {
            let text = format!(
                "{flag} {source}: the network has several inputs ({}), so say which one this is for",
                all.join(", ")
            );
            Err(Failure::new(text).hint(format!("{flag} {}={source}", all[index])))
        }
    }
}

/// The name before `=`, and the source after it. Names of inputs may hold characters that others may not (`input:0`).
fn split(flag: &str, inputs: &[&str], text: &str) -> Result<(Option<String>, Source), Failure> {
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

fn parse(flag: &str, text: &str, rest: &str) -> Result<Source, Failure> {
    rest.parse().map_err(|error| Failure::new(format!("{flag} {text}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(inputs: &[&str], texts: &[&str]) -> Result<Vec<String>, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        let sources = assign("--data", inputs, &texts).map_err(|failure| failure.message().to_owned())?;
        Ok(sources.iter().map(Source::place).collect())
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
