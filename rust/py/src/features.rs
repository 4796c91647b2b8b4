//! Glue of `hdp_fast.learners.Features`.

use std::sync::Arc;

use hdp_fast_core::gf2::BitMatrix;
use hdp_fast_core::score::Columns;
use pyo3::prelude::*;

use crate::array::{Integers, Threads};
use crate::bit_matrix::{matrix, vector};
use crate::run::{run, streaming_cost};

/// A rough cost of a read from anywhere, in nanoseconds.
const READ: f64 = 10.0;

type Any<'a, 'py> = &'a Bound<'py, PyAny>;

/// Records of 0/1 features, packed by rows and columns.
///
/// Every class of hypotheses over bits takes Features in place of X, and then need not pack the
/// records again. Features can't be changed.
///
/// Args:
///     X: The records, 0/1 of shape (m, d): an array of bool or any integer dtype, a BitMatrix, or
///         Features, whose memory is shared.
///     threads: Number of threads, from 1 to 1024. None takes the default of hdp_fast.gf2.rank.
///
/// Raises:
///     ShapeError: X does not have two dimensions.
///     ParameterError: An entry of X is neither 0 nor 1, its dtype is no integer type, or threads
///         is out of range.
///     MemoryError: The packed records do not fit into memory.
///
/// Cost:
///     One pass over X and one over the packed rows; about m d / 4 bytes.
///
/// Examples:
///     >>> from hdp_fast.learners import Conjunctions, Features
///     >>> features = Features([[1, 0, 1], [1, 1, 1], [0, 1, 1]])
///     >>> features.shape, len(features)
///     ((3, 3), 3)
///     >>> int(Conjunctions(3, 2).errors(features, [0, 1, 0]).min())
///     0
#[pyclass(frozen, module = "hdp_fast.learners")]
pub struct Features {
    pub columns: Arc<Columns>,
    /// Only records that were taken from others are not there by rows: hardly any are taken from them again.
    rows: Option<Arc<BitMatrix>>,
}

#[pymethods]
impl Features {
    #[new]
    #[pyo3(signature = (X, *, threads=None))]
    #[allow(non_snake_case)]
    fn new(X: Any<'_, '_>, threads: Threads<'_, '_>) -> PyResult<Features> {
        if let Ok(packed) = X.cast::<Features>() {
            return Ok(packed.get().shared());
        }
        let rows = matrix("X", X, threads)?;
        let cost = streaming_cost(16 * rows.rows() * rows.words());
        let columns = run(X.py(), threads, cost, |run| Columns::pack(&rows, run))?;
        Ok(Features { columns: Arc::new(columns), rows: Some(rows) })
    }

    /// The records with these indices, int64 and contiguous; learn_indices checks them before.
    #[pyo3(name = "_take")]
    fn take(&self, py: Python<'_>, indices: Integers<'_>) -> PyResult<Features> {
        let indices = indices.as_slice()?;
        let cost = READ * (indices.len() * self.columns.features().div_ceil(64)) as f64;
        let columns = run(py, None, cost, |run| match &self.rows {
            Some(rows) => Columns::taken(rows, indices, run),
            None => Columns::taken(&self.columns.rows(run)?, indices, run),
        })?;
        Ok(Features { columns: Arc::new(columns), rows: None })
    }

    /// The numbers of records and features, (m, d).
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.columns.records(), self.columns.features())
    }

    fn __len__(&self) -> usize {
        self.columns.records()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Any<'_, '_>) -> Py<Self> {
        slf
    }

    fn __repr__(&self) -> String {
        format!("Features({} records of {} bits)", self.columns.records(), self.columns.features())
    }
}

impl Features {
    fn shared(&self) -> Features {
        Features { columns: self.columns.clone(), rows: self.rows.clone() }
    }

    /// The labels, one for each record.
    pub fn labels(&self, y: Any<'_, '_>) -> PyResult<BitMatrix> {
        vector("y", y, self.columns.records(), "the number of records of X")
    }

    /// A rough cost of `operations` word operations for each 64 records, in nanoseconds.
    pub fn cost(&self, operations: usize) -> f64 {
        operations as f64 * self.columns.records().div_ceil(64) as f64 / 4.0
    }
}
