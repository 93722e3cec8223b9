//! The table of the suite.

use super::case::Case;
use super::judge::{Judgement, Verdict};
use std::fmt::Write as _;

#[derive(Default)]
struct Row {
    passed: usize,
    unsupported: usize,
    mixing: usize,
    wrong: usize,
}

impl Row {
    fn add(&mut self, judgement: &Judgement) {
        *match judgement {
            Judgement::Passed => &mut self.passed,
            Judgement::Unsupported(_) => &mut self.unsupported,
            Judgement::Mixing(_) => &mut self.mixing,
            Judgement::Wrong(_) => &mut self.wrong,
        } += 1;
    }

    fn write(&self, name: &str, to: &mut String) {
        let Self { passed, unsupported, mixing, wrong } = self;
        let total = passed + unsupported + mixing + wrong;
        let _ = writeln!(to, "{name:<34} {total:>6} {passed:>8} {unsupported:>12} {mixing:>8} {wrong:>6}");
    }
}

/// One row per group and way of running it.
pub(super) fn table(results: &[(Case, Verdict)]) -> String {
    let mut groups: Vec<&str> = Vec::new();
    for (case, _) in results {
        if !groups.contains(&case.group) {
            groups.push(case.group);
        }
    }
    let mut text =
        format!("{:<34} {:>6} {:>8} {:>12} {:>8} {:>6}\n", "", "cases", "passed", "unsupported", "mixing", "wrong");
    for group in groups {
        let (mut whole, mut samples) = (Row::default(), Row::default());
        for (_, verdict) in results.iter().filter(|(case, _)| case.group == group) {
            whole.add(&verdict.whole);
            verdict.samples.iter().for_each(|judgement| samples.add(judgement));
        }
        whole.write(group, &mut text);
        samples.write("  … on samples", &mut text);
    }
    text
}
