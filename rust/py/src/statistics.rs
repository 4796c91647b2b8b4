//! Glue of `hdp_fast.learners.FeatureMap`, of exact sums of features, and of points of grids.

use hdp_fast_core::Result;
use hdp_fast_core::simd::{Real, Scaling};
use hdp_fast_core::statistics::{self, FeatureMap, Labels, Linear, Records};
use pyo3::prelude::*;

use crate::array::{self, Floats, FloatsToWrite, Integers, Vector};
use crate::error::raise;
use crate::records::{Entries, with_slice};
use crate::run::{run, streaming_cost};

/// A rough cost of a product and a sum, in nanoseconds.
const PRODUCT: f64 = 0.05;

/// The argument `features`, a dict: `matrix` has a row for each column of the records.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct MapItems<'py> {
    low: Floats<'py>,
    high: Floats<'py>,
    origin: Floats<'py>,
    factor: Floats<'py>,
    matrix: Option<(Floats<'py>, Floats<'py>)>,
    waves: bool,
    constant: bool,
    /// Whether records that are not finite are refused; else they count as zero.
    finite: bool,
}

impl MapItems<'_> {
    fn map(&self) -> PyResult<FeatureMap<'_>> {
        let scaling = Scaling {
            low: self.low.as_slice()?,
            high: self.high.as_slice()?,
            origin: self.origin.as_slice()?,
            factor: self.factor.as_slice()?,
        };
        let linear = match &self.matrix {
            Some((matrix, offset)) => Some(Linear::new(matrix.as_slice()?, offset.as_slice()?).map_err(raise)?),
            None => None,
        };
        FeatureMap::new(scaling, linear, self.waves, self.constant).map_err(raise)
    }

    fn records<'a, T: Real>(&self, entries: &'a [T], columns: usize) -> Result<Records<'a, T>> {
        let records = Records::new(entries, columns)?;
        Ok(if self.finite { records } else { records.with_failures() })
    }

    /// A rough cost of the features of so many entries, in nanoseconds.
    fn cost(&self, entries: usize, columns: usize) -> f64 {
        let products = if self.matrix.is_some() { columns as f64 } else { 0.0 };
        streaming_cost(entries.saturating_mul(64)) + PRODUCT * entries as f64 * products
    }
}

/// The argument `labels`: classes with their number, or targets.
#[derive(FromPyObject)]
pub enum LabelItems<'py> {
    Classes((Integers<'py>, usize)),
    Targets(Floats<'py>),
}

type SumVectors<'py> = (Vector<'py, i64>, Option<Vector<'py, i64>>, Vector<'py, i64>);

/// Writes the features of all records, row by row, to an array that Python has made: numpy finds room sooner.
#[pyfunction]
pub fn write_features(
    py: Python<'_>,
    entries: Entries<'_>,
    columns: usize,
    features: MapItems<'_>,
    bits: u32,
    mut out: FloatsToWrite<'_>,
) -> PyResult<()> {
    let map = features.map()?;
    let out = out.as_slice_mut()?;
    with_slice!(&entries, |entries| {
        let records = features.records(entries, columns).map_err(raise)?;
        let cost = features.cost(entries.len(), map.columns());
        run(py, None, cost, |run| statistics::write_features(records, &map, bits, out, run))
    })
}

/// The sums of features by class, or times targets; of their products; and the counts: all int64, row by row.
#[pyfunction]
pub fn feature_sums<'py>(
    py: Python<'py>,
    entries: Entries<'py>,
    columns: usize,
    labels: LabelItems<'py>,
    features: MapItems<'py>,
    bits: u32,
    second: bool,
) -> PyResult<SumVectors<'py>> {
    let map = features.map()?;
    let labels = match &labels {
        LabelItems::Classes((codes, classes)) => Labels::Classes { codes: codes.as_slice()?, classes: *classes },
        LabelItems::Targets(targets) => Labels::Targets(targets.as_slice()?),
    };
    let sums = with_slice!(&entries, |entries| {
        let records = features.records(entries, columns).map_err(raise)?;
        let cost = features.cost(entries.len(), map.columns()) + product_cost(entries, columns, &map, second);
        run(py, None, cost, |run| statistics::add_up(records, &map, labels, bits, second, run))
    })?;
    let second = sums.second.map(|sums| array::returned(py, sums));
    Ok((array::returned(py, sums.first), second, array::returned(py, sums.counts)))
}

fn product_cost<T: Real>(entries: &[T], columns: usize, map: &FeatureMap<'_>, second: bool) -> f64 {
    let width = if second { map.columns() as f64 / 2.0 } else { 1.0 };
    PRODUCT * (entries.len() / columns.max(1)) as f64 * map.columns() as f64 * width
}

/// The nearest points of even grids between the bounds of columns, which stand one after the other; int64.
#[pyfunction]
pub fn nearest_points<'py>(
    py: Python<'py>,
    numbers: Floats<'py>,
    low: Floats<'py>,
    high: Floats<'py>,
    steps: i64,
) -> PyResult<Vector<'py, i64>> {
    let (numbers, low, high) = (numbers.as_slice()?, low.as_slice()?, high.as_slice()?);
    array::filled(py, numbers.len(), streaming_cost(size_of_val(numbers)), |out, run| {
        statistics::write_points(numbers, low, high, steps, out, run)
    })
}
