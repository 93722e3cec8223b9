//! Damaged copies of a state file. The tests of learnt eigenfunctions use them, too.

use mercer_net::export::{TensorFile, Tensors, kind};
use serde_json::Value;
use std::path::Path;

/// A damaged file.
pub(crate) struct Damage {
    /// In words.
    pub(crate) what: String,
    /// The tensor that the error has to name.
    pub(crate) tensor: Option<String>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    double: bool,
    shape: Vec<usize>,
    values: Vec<f64>,
    /// Where its bytes are in the file.
    place: std::ops::Range<usize>,
}

/// The tensors of a file, read without the library.
fn tensors(bytes: &[u8]) -> Vec<Tensor> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let read = |(name, entry): (&String, &Value)| {
        let at = |index: usize| 8 + length + entry["data_offsets"][index].as_u64().unwrap() as usize;
        let (place, double) = (at(0)..at(1), entry["dtype"] == "F64");
        let data = &bytes[place.clone()];
        let values = if double {
            data.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect()
        } else {
            data.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect()
        };
        let shape = entry["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        Tensor { name: name.clone(), double, shape, values, place }
    };
    header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__").map(read).collect()
}

/// A file with these tensors and this header, whose digest is right: what a clumsy or hostile hand may write.
fn sealed(path: &Path, tensors: &[Tensor], header: &Value) -> Vec<u8> {
    let mut file = Tensors::new(&kind(path).unwrap());
    for tensor in tensors {
        if tensor.double {
            file.push(tensor.name.clone(), &tensor.shape, &tensor.values);
        } else {
            let values: Vec<f32> = tensor.values.iter().map(|&x| x as f32).collect();
            file.push(tensor.name.clone(), &tensor.shape, &values);
        }
    }
    let other = path.with_extension("damaged");
    file.write_sealed(&other, header).unwrap();
    let bytes = std::fs::read(&other).unwrap();
    std::fs::remove_file(other).unwrap();
    bytes
}

/// Many of them.
pub(crate) fn damages(path: &Path) -> Vec<Damage> {
    let whole = std::fs::read(path).unwrap();
    let header: Value = TensorFile::read(path).unwrap().unseal(&kind(path).unwrap()).unwrap();
    let all = tensors(&whole);
    assert_eq!(sealed(path, &all, &header).len(), whole.len(), "what is written again is the file");
    let mut found = Vec::new();
    let mut add = |what: String, tensor: Option<&str>, bytes: Vec<u8>| {
        found.push(Damage { what, tensor: tensor.map(str::to_owned), bytes });
    };
    // Broken off, and with single bytes changed.
    for share in [0, 1, 4, 10, 50, 90, 99] {
        add(format!("{share} % of the file"), None, whole[..whole.len() * share / 100].to_vec());
    }
    for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        add(format!("byte {at} changed"), None, bytes);
    }
    // Bytes of two tensors exchanged.
    for (one, two) in all.iter().zip(&all[1..]).filter(|(one, two)| one.place.len() == two.place.len()) {
        let mut bytes = whole.clone();
        bytes[one.place.clone()].copy_from_slice(&whole[two.place.clone()]);
        bytes[two.place.clone()].copy_from_slice(&whole[one.place.clone()]);
        if bytes != whole {
            add(format!("{} and {} exchanged", one.name, two.name), None, bytes);
        }
    }
    // Tensors that do not fit, in a file that is otherwise in order.
    for (at, tensor) in all.iter().enumerate() {
        let name = tensor.name.as_str();
        let mut with = |what: &str, change: &dyn Fn(&mut Tensor)| {
            let mut changed = all.clone();
            change(&mut changed[at]);
            add(format!("{name}: {what}"), Some(name), sealed(path, &changed, &header));
        };
        let resized = |tensor: &mut Tensor, length: usize| {
            tensor.values.resize(length, 0.5);
            tensor.shape = vec![length];
        };
        with("one number more", &|tensor| resized(tensor, tensor.values.len() + 1));
        with("other axes", &|tensor| tensor.shape.insert(0, 1));
        with("another name", &|tensor| tensor.name += "x");
        with("another precision", &|tensor| tensor.double = !tensor.double);
        if !tensor.values.is_empty() {
            with("no number", &|tensor| resized(tensor, 0));
            with("NaN", &|tensor| tensor.values[0] = f64::NAN);
            with("infinite", &|tensor| *tensor.values.last_mut().unwrap() = f64::NEG_INFINITY);
        }
        // Numbers that cannot be: a covariance is positive, and so are squares.
        if name.ends_with("sigma") || name == "optimiser/second" && !tensor.values.is_empty() {
            with("negated", &|tensor| tensor.values.iter_mut().for_each(|x| *x = -x.abs() - 1.0));
        }
        let mut fewer = all.clone();
        fewer.remove(at);
        add(format!("{name}: missing"), Some(name), sealed(path, &fewer, &header));
    }
    // Headers.
    for (field, value) in [("steps", Value::from(u64::MAX)), ("steps", Value::from(-1)), ("version", Value::from(1))] {
        let mut changed = header.clone();
        changed[field] = value;
        add(format!("{field}: {}", changed[field]), None, sealed(path, &all, &changed));
    }
    add("no header".to_owned(), None, sealed(path, &all, &Value::Null));
    found
}
