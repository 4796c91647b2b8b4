//! Indices of a bit matrix: which rows and columns they ask for.

use hdp_fast_core::gf2 as core;
use hdp_fast_core::run::Run;
use hdp_fast_core::{Error, Result};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PySlice, PyString};

use crate::error::{parameter, raise};

/// What one index of a matrix asks for.
pub enum Axis {
    One(usize),
    /// So many from the first on.
    Range(usize, usize),
    /// Those of a slice with another step.
    Stepped(Vec<usize>),
    /// Those of an index array or a mask, of which an array pairs two: there is one at most.
    Listed(Vec<usize>),
}

impl Axis {
    /// Those that an index asks for of `size` rows or columns.
    pub fn new(value: &Bound<'_, PyAny>, size: usize, what: &str) -> PyResult<Axis> {
        if let Ok(slice) = value.cast::<PySlice>() {
            let bounds = slice.indices(isize::try_from(size)?)?;
            if bounds.step == 1 {
                return Ok(Axis::Range(bounds.start as usize, bounds.slicelength));
            }
            let places = (0..bounds.slicelength as isize).map(|k| (bounds.start + k * bounds.step) as usize);
            return Ok(Axis::Stepped(places.collect()));
        }
        let place = |index: isize| {
            let at = if index < 0 { index.checked_add_unsigned(size) } else { Some(index) };
            let at = at.and_then(|at| usize::try_from(at).ok()).filter(|&at| at < size);
            at.ok_or_else(|| PyIndexError::new_err(format!("{what} {index} is out of range: there are {size}")))
        };
        if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
            return Err(Axis::refused());
        }
        if let Ok(index) = value.extract::<isize>() {
            return place(index).map(Axis::One);
        }
        let numpy = value.py().import("numpy")?;
        let places = numpy.call_method1("asarray", (value,)).map_err(|_| Axis::refused())?;
        let kind: String = places.getattr("dtype")?.getattr("kind")?.extract()?;
        let shape = places.getattr("shape")?.extract::<(usize,)>().map_err(|_| Axis::refused())?;
        let places = match kind.as_str() {
            "b" if shape.0 == size => numpy.call_method1("flatnonzero", (places,))?,
            "i" | "u" => places,
            _ if shape.0 == 0 => return Ok(Axis::Listed(Vec::new())),
            _ => return Err(Axis::refused()),
        };
        let places: Vec<isize> = places.call_method0("tolist")?.extract().map_err(|_| Axis::refused())?;
        places.into_iter().map(place).collect::<PyResult<_>>().map(Axis::Listed)
    }

    /// All of `size` rows or columns in another order; `None` leaves them as they are.
    pub fn permutation(name: &str, value: Option<&Bound<'_, PyAny>>, size: usize) -> PyResult<Axis> {
        let Some(value) = value else { return Ok(Axis::Range(0, size)) };
        let rule = format!("it must hold each integer from 0 to {} once", size as i128 - 1);
        let shown = || value.get_type().name().map_or_else(|_| "?".into(), |kind| kind.to_string());
        let Ok(Axis::Listed(places)) = Axis::new(value, size, name) else {
            return Err(parameter(name, shown(), &rule));
        };
        let mut seen = vec![false; places.len()];
        if places.len() == size {
            places.iter().for_each(|&place| seen[place] = true);
        }
        match places.len() == size && seen.iter().all(|&seen| seen) {
            true => Ok(Axis::Listed(places)),
            false => Err(parameter(name, shown(), &rule)),
        }
    }

    /// Whether it is a single place.
    pub fn is_one(&self) -> bool {
        matches!(self, Axis::One(_))
    }

    /// The error of what is no index.
    pub fn refused() -> PyErr {
        let text = "index is something else, but a BitMatrix takes integers, slices, and an index array or a mask as \
                    long as the axis, for one axis at a time: A[rows][:, columns]";
        raise(Error::Parameter(text.into()))
    }
}

/// The rows and columns that an index asks for.
pub fn part(matrix: &core::BitMatrix, rows: &Axis, columns: &Axis, run: Run<'_>) -> Result<core::BitMatrix> {
    let whole = matches!(columns, Axis::Range(_, count) if *count == matrix.columns());
    let rows = match rows {
        Axis::One(i) => matrix.slice(*i, i + 1)?,
        Axis::Range(from, count) => matrix.slice(*from, from + count)?,
        Axis::Stepped(rows) | Axis::Listed(rows) => matrix.take_rows(rows, run)?,
    };
    match columns {
        _ if whole => Ok(rows),
        Axis::One(j) => rows.slice_columns(*j, j + 1, run),
        Axis::Range(from, count) => rows.slice_columns(*from, from + count, run),
        Axis::Stepped(columns) | Axis::Listed(columns) => rows.take_columns(columns, run),
    }
}
