//! Functions as codes of samples: the quality of codes by length, if classes are known.

use super::{CodeScore, CodesFindings};
use crate::Error;
use mercer_data::{Classes, Labels};
use mercer_kernel::Real;
use mercer_learn::classification::Glm;
use mercer_learn::metrics::accuracy;
use mercer_learn::{Classify, Fit, SampleRows};
use mercer_run::Context;
use mercer_spectral::retrieval::{self, retrieval};
use ndarray::{Array2, s};

/// The number of nearest items for precision.
const NEAREST: usize = 20;

/// The ridge of the linear classifier, small compared with a sum over samples whose features have variance one.
const PENALTY: f64 = 1.0;

/// Powers of two, and the whole code.
fn lengths(whole: usize) -> Vec<usize> {
    let mut lengths: Vec<usize> = (0..).map(|power| 1 << power).take_while(|&length| length < whole).collect();
    lengths.push(whole);
    lengths
}

/// Retrieves and classifies the evaluated samples by the samples of the data, for several code lengths; none unless
/// both have labels.
pub(super) fn scores<T: Real>(
    items: (&Array2<T>, Option<&Labels>),
    queries: (&Array2<T>, Option<&Labels>),
    context: &Context,
) -> Result<Option<CodesFindings>, Error> {
    let (Some(known), Some(asked)) = (items.1, queries.1) else { return Ok(None) };
    let (Labels::Classes(known), Labels::Classes(asked)) = (known, asked) else {
        return Err(Error::new("‹test-labels›: codes are scored by classes, these labels are numbers")
            .hint("labels are whole numbers or, in a CSV file, texts"));
    };
    if items.0.nrows() != known.indices().len() {
        return Err(Error::new("‹test-labels›: a kernel with several outputs has no code per sample")
            .hint("‹kernel› trace or pseudo"));
    }
    let asked = asked.with_names(known.names()).map_err(|error| Error::new(format!("‹test-labels›: {error}")))?;
    let narrow = |codes: &Array2<T>| codes.mapv(|x| x.wide() as f32);
    let wide = |codes: &Array2<T>| codes.mapv(|x| x.wide());
    let lengths = lengths(items.0.ncols());
    let (all, new) = (narrow(items.0), narrow(queries.0));
    let found = retrieval(
        retrieval::Codes { codes: all.view(), classes: known.indices() },
        retrieval::Codes { codes: new.view(), classes: asked.indices() },
        &lengths,
        NEAREST,
        context,
    )?;
    let (all, new) = (wide(items.0), wide(queries.0));
    let score = |found: retrieval::Retrieval| {
        context.check()?;
        let cut = s![.., ..found.length];
        let accuracy = classified((&all.slice(cut).to_owned(), known), (&new.slice(cut).to_owned(), &asked))?;
        Ok(CodeScore { found, accuracy })
    };
    let lengths = found.into_iter().map(score).collect::<Result<_, Error>>()?;
    Ok(Some(CodesFindings { nearest: NEAREST.min(all.nrows()), lengths }))
}

/// The accuracy of multinomial logistic regression.
fn classified(items: (&Array2<f64>, &Classes), queries: (&Array2<f64>, &Classes)) -> Result<f64, Error> {
    let machine = Glm::new(PENALTY)?.fit(&SampleRows::Features(items.0.view()), items.1)?;
    Ok(accuracy(&machine.decide(&SampleRows::Features(queries.0.view()))?, queries.1.indices())?)
}
