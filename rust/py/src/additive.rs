//! Glue of `hdp_fast.learners.additive`: steps of an additive model on sums over bins.

use hdp_fast_core::additive::{Binned, Residuals, Rounds, fit_shapes};
use pyo3::prelude::*;

use crate::array::{self, Bits, Floats, Integers, Vector};
use crate::run::{run, streaming_cost};

/// Bins column by column, the widths of columns, and labels.
type RecordsArgument<'py> = (Bits<'py>, Vec<usize>, Integers<'py>);

/// Whether scores are log-odds, the base, the least residual and the largest.
type ResidualsArgument = (bool, i32, i32, i32);

/// Rates, noise, curvatures and gains.
type RoundsArgument<'py> = (Floats<'py>, Integers<'py>, Floats<'py>, Floats<'py>);

/// The values of all bins, int64 in units of 2^-16.
#[pyfunction]
pub fn fit_additive<'py>(
    py: Python<'py>,
    records: RecordsArgument<'py>,
    residuals: ResidualsArgument,
    rounds: RoundsArgument<'py>,
) -> PyResult<Vector<'py, i64>> {
    let (bins, widths, labels) = records;
    let (rates, noise, curvatures, gains) = rounds;
    let (bins, labels) = (bins.as_slice()?, labels.as_slice()?);
    let (rates, noise) = (rates.as_slice()?, noise.as_slice()?);
    let (curvatures, gains) = (curvatures.as_slice()?, gains.as_slice()?);
    let (logistic, base, low, high) = residuals;
    let cost = streaming_cost(bins.len().saturating_mul(rates.len()).saturating_mul(32));
    let shapes = run(py, None, cost, |run| {
        let records = Binned::new(bins, &widths, labels)?;
        let residuals = Residuals { logistic, base, limits: (low, high) };
        fit_shapes(records, residuals, Rounds { rates, noise, curvatures, gains }, run)
    })?;
    Ok(array::returned(py, shapes.into_iter().map(i64::from).collect()))
}
