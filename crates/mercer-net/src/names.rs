//! Names a user writes: wildcards, and what they may have meant.

/// Whether a name matches a pattern in which `*` stands for any text and `?` for any character.
pub fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    // Where the last star was, and how much of the name it has swallowed.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if p < pattern.len() && pattern[p] == '*' {
            star = Some((p, n));
            p += 1;
        } else if p < pattern.len() && (pattern[p] == '?' || pattern[p] == name[n]) {
            (p, n) = (p + 1, n + 1);
        } else if let Some((at, swallowed)) = star {
            star = Some((at, swallowed + 1));
            (p, n) = (at + 1, swallowed + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The names closest to one that does not exist: at most five, by edit distance of their letters.
pub fn near(wanted: &str, names: &[&str]) -> Vec<String> {
    let plain: String = wanted.chars().filter(|c| !matches!(c, '*' | '?')).collect();
    let mut scored: Vec<(usize, &str)> = names
        .iter()
        .map(|name| {
            let contains = !plain.is_empty() && name.to_lowercase().contains(&plain.to_lowercase());
            // A pattern with an open end speaks of the beginning of a name.
            let length = if wanted.ends_with('*') { plain.chars().count() } else { usize::MAX };
            let beginning: String = name.chars().take(length).collect();
            (if contains { 0 } else { distance(&plain, &beginning) }, *name)
        })
        .collect();
    scored.sort();
    let limit = plain.chars().count().max(4);
    scored.into_iter().filter(|(score, _)| *score <= limit).take(5).map(|(_, name)| name.to_owned()).collect()
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match() {
        assert!(matches("layer1.*", "layer1.0.conv1.weight"));
        assert!(matches("*.weight", "layer1.0.conv1.weight"));
        assert!(matches("a*b*c", "aXbYbc"));
        assert!(matches("fc?", "fc1"));
        assert!(!matches("fc?", "fc"));
        assert!(!matches("*.bias", "layer1.weight"));
        assert!(matches("*", ""));
    }

    #[test]
    fn near_names_come_first() {
        assert_eq!(near("fc1.wieght", &["conv.weight", "fc1.weight", "zzz"])[0], "fc1.weight");
        assert_eq!(near("fc*", &["conv.weight", "fc1.weight"])[0], "fc1.weight");
        assert_eq!(near("fc3.*", &["conv.weight", "fc2.weight"])[0], "fc2.weight");
    }
}
