//! `[INPUT=]SIZES`: the sizes that a file leaves free.

use crate::Error;
use mercer_net::network::Input;
use mercer_run::names;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Sizes for one input, or for all inputs with free sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct GivenShape {
    input: Option<String>,
    sizes: Vec<usize>,
}

impl FromStr for GivenShape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (input, sizes) = match text.rsplit_once('=') {
            Some(("", _)) => return Err("the name before `=` is empty".to_owned()),
            Some((input, sizes)) => (Some(input.to_owned()), sizes),
            None => (None, text),
        };
        let size = |text: &str| match text.trim().parse::<usize>() {
            Ok(size) if (1..=1 << 32).contains(&size) => Ok(size),
            _ => Err(format!("`{text}` is not a size; write sizes as in 3,224,224 or 3x224x224")),
        };
        let sizes = sizes.split([',', 'x']).map(size).collect::<Result<_, _>>()?;
        Ok(Self { input, sizes })
    }
}

impl fmt::Display for GivenShape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(input) = &self.input {
            write!(formatter, "{input}=")?;
        }
        let sizes: Vec<String> = self.sizes.iter().map(ToString::to_string).collect();
        formatter.write_str(&sizes.join("x"))
    }
}

impl TryFrom<String> for GivenShape {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<GivenShape> for String {
    fn from(shape: GivenShape) -> Self {
        shape.to_string()
    }
}

/// The name of an input, and the sizes of a sample that the file declares.
struct Declared<'a> {
    name: &'a str,
    sizes: Option<Vec<Option<usize>>>,
}

/// The shape of one sample of each input; absent if it remains unknown.
pub(super) fn sample_shapes(inputs: &[Input], given: &[GivenShape]) -> Result<Option<Vec<Vec<usize>>>, Error> {
    fill(inputs.iter().map(|input| Declared { name: &input.name, sizes: input.sample() }).collect(), given)
}

fn fill(inputs: Vec<Declared<'_>>, given: &[GivenShape]) -> Result<Option<Vec<Vec<usize>>>, Error> {
    for shape in given {
        if let Some(name) = &shape.input
            && !inputs.iter().any(|input| input.name == name)
        {
            let all: Vec<&str> = inputs.iter().map(|input| input.name).collect();
            let near = names::near(name, &all);
            let listed = if near.is_empty() { all.join(", ") } else { near.join(", ") };
            return Err(Error::new(format!("‹shape› {name}=…: the network has no input named {name}"))
                .hint(format!("its inputs: {listed}")));
        }
    }
    // Checks all of them, so that every mismatch is reported.
    let shapes: Vec<Option<Vec<usize>>> =
        inputs.into_iter().map(|input| sample_shape(input, given)).collect::<Result<_, _>>()?;
    Ok(shapes.into_iter().collect())
}

fn sample_shape(input: Declared<'_>, given: &[GivenShape]) -> Result<Option<Vec<usize>>, Error> {
    let Declared { name, sizes: declared } = input;
    let own = given.iter().rev().find(|shape| shape.input.as_deref() == Some(name));
    let shape = own.or_else(|| given.iter().rev().find(|shape| shape.input.is_none()));
    let Some(declared) = declared else { return Ok(shape.map(|shape| shape.sizes.clone())) };
    let n_free = declared.iter().filter(|size| size.is_none()).count();
    let Some(GivenShape { sizes, .. }) = shape.filter(|_| n_free > 0 || own.is_some()) else {
        return Ok(declared.into_iter().collect());
    };
    let whole = sizes.len() == declared.len()
        && declared.iter().zip(sizes).all(|(declared, &size)| declared.is_none_or(|declared| declared == size));
    if whole {
        return Ok(Some(sizes.clone()));
    }
    if sizes.len() == n_free {
        let mut free = sizes.iter();
        return Ok(declared.into_iter().map(|size| size.or_else(|| free.next().copied())).collect());
    }
    let text: Vec<String> = declared.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string())).collect();
    let text = text.join(", ");
    Err(Error::new(format!("‹shape›: {sizes:?} does not fit the input {name}, whose samples have shape [{text}]"))
        .hint(format!("give all its sizes, or the {n_free} that the file leaves free")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(texts: &[&str]) -> Vec<GivenShape> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn free_sizes_are_filled_in() {
        let try_shapes = |texts: &[&str]| {
            let ids = Declared { name: "ids", sizes: Some(vec![None]) };
            let image = Declared { name: "image", sizes: Some(vec![Some(3), None, None]) };
            fill(vec![ids, image], &given(texts))
        };
        let shapes = |texts: &[&str]| try_shapes(texts).unwrap();
        assert_eq!(shapes(&[]), None);
        assert_eq!(shapes(&["ids=32"]), None);
        assert_eq!(shapes(&["ids=32", "image=3x8x9"]), Some(vec![vec![32], vec![3, 8, 9]]));
        assert_eq!(shapes(&["32", "image=8,9"]), Some(vec![vec![32], vec![3, 8, 9]]));
        assert!(try_shapes(&["image=4,8,9"]).is_err());
        assert!(try_shapes(&["idz=4"]).is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "x=", "=3", "a=3,", "-1", "0", "99999999999999999999", "1e9"] {
            assert!(text.parse::<GivenShape>().is_err(), "{text}");
        }
        for text in ["3", "ids=3x4", "a=b=7"] {
            assert_eq!(text.parse::<GivenShape>().unwrap().to_string(), text);
        }
    }
}
