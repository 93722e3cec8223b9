//! Layers: the parameters that belong together.

use mercer_net::graph::{Graph, Node};
use std::collections::HashMap;

/// The layer of every parameter: the part of its name before the last dot (`layer1.0.conv1.weight`) or, if a file has
/// no such names, the path of the first node that uses it (`/layer1/conv1` of `/layer1/conv1/Conv`).
pub fn layer_names(graph: &Graph) -> Vec<String> {
    (0..graph.parameters().len()).map(|parameter| layer_name(graph, parameter)).collect()
}

/// The layer of one of them.
pub(crate) fn layer_name(graph: &Graph, parameter: usize) -> String {
    let id = graph.parameters()[parameter];
    let own = &graph.value(id).name;
    if let Some((layer, _)) = own.rsplit_once('.')
        && !layer.is_empty()
    {
        return layer.to_owned();
    }
    let user = graph.uses(id).first().map(|&node| &graph.nodes()[node]);
    user.map(node_name).filter(|name| !name.is_empty()).unwrap_or_else(|| own.clone())
}

fn node_name(node: &Node) -> String {
    match node.name.rsplit_once('/') {
        Some((path, _)) if !path.is_empty() => path.to_owned(),
        _ if node.name.is_empty() => node.operator.clone(),
        _ => node.name.clone(),
    }
}

/// The layers in the order of their first parameter, with their selected parameters.
pub(crate) fn layers(graph: &Graph, chosen: &[bool]) -> Vec<(String, Vec<usize>)> {
    let mut found: Vec<(String, Vec<usize>)> = Vec::new();
    let mut place: HashMap<String, usize> = HashMap::new();
    for (parameter, name) in layer_names(graph).into_iter().enumerate().filter(|&(at, _)| chosen[at]) {
        match place.get(&name) {
            Some(&at) => found[at].1.push(parameter),
            None => {
                place.insert(name.clone(), found.len());
                found.push((name, vec![parameter]));
            }
        }
    }
    found
}
