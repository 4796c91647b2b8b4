//! Records of real numbers, of either precision, and their labels.

use hdp_fast_core::memory::collected;
use hdp_fast_core::simd::Labels;
use pyo3::Borrowed;
use pyo3::prelude::*;

use crate::array::{Floats, Integers, ShortIntegers, SingleFloats};
use crate::error::raise;
use crate::run::streaming_cost;

/// Entries of either precision, row by row.
#[derive(FromPyObject)]
pub enum Entries<'py> {
    Single(SingleFloats<'py>),
    Double(Floats<'py>),
}

/// Evaluates an expression for entries as a slice of whatever precision they have.
macro_rules! with_slice {
    ($entries:expr, |$slice:ident| $body:expr) => {
        match $entries {
            $crate::records::Entries::Single(entries) => {
                let $slice = entries.as_slice()?;
                $body
            }
            $crate::records::Entries::Double(entries) => {
                let $slice = entries.as_slice()?;
                $body
            }
        }
    };
}
pub(crate) use with_slice;

/// Labels as real numbers or as small integers.
#[derive(FromPyObject)]
pub enum LabelsArgument<'py> {
    Reals(Floats<'py>),
    Integers(ShortIntegers<'py>),
}

impl LabelsArgument<'_> {
    /// The labels where they are.
    pub fn get(&self) -> PyResult<Labels<'_>> {
        Ok(match self {
            LabelsArgument::Reals(labels) => labels.as_slice()?.into(),
            LabelsArgument::Integers(labels) => labels.as_slice()?.into(),
        })
    }
}

/// The argument `records`: entries, columns and labels.
pub struct Labeled<'py> {
    pub entries: Entries<'py>,
    pub columns: usize,
    pub labels: LabelsArgument<'py>,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Labeled<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<Labeled<'py>> {
        let (entries, columns, labels) = value.extract()?;
        Ok(Labeled { entries, columns, labels })
    }
}

impl Labeled<'_> {
    /// How many there are.
    pub fn len(&self) -> PyResult<usize> {
        Ok(self.labels.get()?.len())
    }

    /// A rough cost of a pass over all entries, in nanoseconds.
    pub fn pass_cost(&self) -> PyResult<f64> {
        Ok(streaming_cost(8 * self.len()?.saturating_mul(self.columns + 2)))
    }
}

/// Runs a kernel on records of whatever precision they have.
macro_rules! with_records {
    ($py:expr, $threads:expr, $records:expr, $cost:expr, |$whole:ident, $run:ident| $body:expr) => {{
        let (columns, labels) = ($records.columns, $records.labels.get()?);
        $crate::records::with_slice!(&$records.entries, |entries| run($py, $threads, $cost, |$run| {
            let $whole = hdp_fast_core::sgd::Records::new(entries, columns, labels)?;
            $body
        }))
    }};
}
pub(crate) use with_records;

/// Row numbers; what is none becomes one that no matrix has.
pub fn row_numbers(rows: &Integers<'_>) -> PyResult<Vec<usize>> {
    collected(rows.as_slice()?.iter().map(|&row| row.try_into().unwrap_or(usize::MAX))).map_err(raise)
}
