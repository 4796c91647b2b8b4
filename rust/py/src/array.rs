//! The door for numpy arrays: checked once, packed once. The only file that names numpy's types.

use hdp_fast_core::error::{Error, Result};
use hdp_fast_core::gf2::BitMatrix;
use numpy::PyUntypedArrayMethods;
use numpy::ndarray::{ArrayView1, ArrayView2, s};
use numpy::{
    BorrowError, Element, IntoPyArray, PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1,
    PyReadwriteArray1, PyUntypedArray,
};
use pyo3::Borrowed;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::{parameter, raise};
use crate::run::{run, streaming_cost};
use crate::scalar::bytes;

const RULE: &str = "every entry must be 0 or 1";

/// An integer type that may hold bits.
trait Entry: Element + Copy {
    /// The lowest bit, and whether there is anything else.
    fn split(self) -> (u8, bool);
}

impl Entry for bool {
    fn split(self) -> (u8, bool) {
        (u8::from(self), false)
    }
}

macro_rules! entries {
    ($($type:ty)*) => {$(
        impl Entry for $type {
            fn split(self) -> (u8, bool) {
                (self as u8 & 1, self & !1 != 0)
            }
        }
    )*};
}
entries!(u8 i8 u16 i16 u32 i32 u64 i64);

/// The argument `threads`.
pub type Threads<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// Packs a matrix of 0/1 entries of any integer dtype and any strides.
pub fn matrix(name: &str, value: &Bound<'_, PyAny>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    packed_entries(name, &checked(name, value, 2)?, threads)
}

/// Packs a vector of 0/1 entries as a matrix of one row.
pub fn vector(name: &str, value: &Bound<'_, PyAny>) -> PyResult<BitMatrix> {
    let bits = bits(name, value)?;
    run(value.py(), None, streaming_cost(bits.len()), |run| {
        BitMatrix::pack(1, bits.len(), run, |_, words| {
            run.try_for_each_chunk(words, COPIED / 64, |chunk, words| {
                let bytes = bits[chunk * COPIED..].chunks(64);
                words.iter_mut().zip(bytes).for_each(|(word, bytes)| *word = pack_word(bytes));
                Ok(())
            })
        })
    })
}

/// A vector of 0/1 entries, a byte each, as a copy of our own.
pub fn bits(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let array = checked(name, value, 1)?;
    macro_rules! copied_from {
        ($($type:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArray1<$type>>() {
                return copied(name, array);
            }
        )*};
    }
    copied_from!(bool u8 i8 u16 i16 u32 i32 u64 i64);
    Err(wrong_type(name, &array))
}

/// What agents answer: bits, or fractions to be rounded to bits.
pub enum Answers<'py> {
    Bits(Vec<u8>),
    Fractions(Floats<'py>),
}

/// A vector of 0/1 entries, or one of floats in [0, 1].
pub fn answers<'py>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<Answers<'py>> {
    let array = shaped(name, value, 1)?;
    if array.dtype().kind() != b'f' {
        return bits(name, &array).map(Answers::Bits);
    }
    let numpy = value.py().import("numpy")?;
    let floats: Floats<'py> = numpy.call_method1("require", (array, "f8", "CA"))?.extract()?;
    let values = floats.as_slice()?;
    let inside = |values: &[f64]| values.iter().fold(true, |all, value| all & (*value >= 0.0) & (*value <= 1.0));
    let (left, right) = values.split_at(values.len() / 2);
    let cost = streaming_cost(size_of_val(values));
    if run(value.py(), None, cost, |run| Ok(run.join(|| inside(left), || inside(right))))? != (true, true) {
        let text = format!("{name} holds something else, but every entry must lie in [0, 1]");
        return Err(raise(Error::Parameter(text)));
    }
    Ok(Answers::Fractions(floats))
}

fn copied<T: Entry>(name: &str, array: &Bound<'_, PyArray1<T>>) -> PyResult<Vec<u8>> {
    let readable = array.try_readonly().map_err(in_use)?;
    let view = readable.as_array();
    let mut bits = bytes(view.len())?;
    run(array.py(), None, streaming_cost(view.len() * size_of::<T>()), |run| {
        run.try_for_each_chunk(&mut bits, COPIED, |chunk, bits| {
            let start = chunk * COPIED;
            let wrong = split_row(view.slice(s![start..start + bits.len()]), bits);
            if wrong { Err(not_bits(name)) } else { Ok(()) }
        })?;
        Ok(bits)
    })
}

/// Entries that a thread copies at a time.
const COPIED: usize = 1 << 16;

fn packed_entries(name: &str, array: &Bound<'_, PyUntypedArray>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    macro_rules! packed_as {
        ($($type:ty)*) => {$(
            if let Ok(array) = array.cast::<PyArray2<$type>>() {
                return packed(name, array, threads);
            }
        )*};
    }
    packed_as!(bool u8 i8 u16 i16 u32 i32 u64 i64);
    Err(wrong_type(name, array))
}

/// The rows of `numpy.packbits(X, axis=1, bitorder="little")` as a matrix.
pub fn packed_rows(name: &str, value: &Bound<'_, PyAny>, columns: usize) -> PyResult<BitMatrix> {
    let array = checked(name, value, 2)?;
    let Ok(array) = array.cast::<PyArray2<u8>>() else {
        return Err(parameter(name, format!("array of {}", array.dtype()), "packed rows must be uint8"));
    };
    let shape = [array.shape()[0], array.shape()[1]];
    if shape[1] != columns.div_ceil(8) {
        return Err(raise(Error::Shape(format!(
            "{name} has shape {shape:?}, but {columns} columns take {} bytes a row",
            columns.div_ceil(8)
        ))));
    }
    let bytes = array.try_readonly().map_err(in_use)?;
    let view = bytes.as_array();
    let used = u64::MAX >> ((64 - columns % 64) % 64);
    run(array.py(), None, streaming_cost(array.len()), |run| {
        BitMatrix::pack(shape[0], columns, run, |first, out| {
            for (row, words) in
                view.slice(s![first.., ..]).rows().into_iter().zip(out.chunks_exact_mut(columns.div_ceil(64)))
            {
                match row.as_slice() {
                    Some(bytes) => bytes.chunks(8).zip(&mut *words).for_each(|(bytes, word)| *word = little(bytes)),
                    None => (0..).zip(row).for_each(|(i, &byte)| words[i / 8] |= u64::from(byte) << (i % 8 * 8)),
                }
                if let Some(last) = words.last_mut() {
                    *last &= used;
                }
            }
            Ok(())
        })
    })
}

fn little(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

/// A uint8 matrix of numpy.
pub type Matrix<'py> = Bound<'py, PyArray2<u8>>;

/// A vector of numpy.
pub type Vector<'py, T = u8> = Bound<'py, PyArray1<T>>;

/// A contiguous vector of numpy, to read.
pub struct ToRead<'py, T: Element>(PyReadonlyArray1<'py, T>);

impl<'a, 'py, T: Element + 'a> FromPyObject<'a, 'py> for ToRead<'py, T> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<ToRead<'py, T>> {
        value.cast::<PyArray1<T>>()?.try_readonly().map(ToRead).map_err(in_use)
    }
}

impl<T: Element> ToRead<'_, T> {
    /// The entries.
    pub fn as_slice(&self) -> PyResult<&[T]> {
        Ok(self.0.as_slice()?)
    }
}

/// A contiguous float64 vector of numpy, to write.
pub struct FloatsToWrite<'py>(PyReadwriteArray1<'py, f64>);

impl<'a, 'py> FromPyObject<'a, 'py> for FloatsToWrite<'py> {
    type Error = PyErr;

    fn extract(value: Borrowed<'a, 'py, PyAny>) -> PyResult<FloatsToWrite<'py>> {
        value.cast::<PyArray1<f64>>()?.try_readwrite().map(FloatsToWrite).map_err(in_use)
    }
}

impl FloatsToWrite<'_> {
    /// The entries.
    pub fn as_slice_mut(&mut self) -> PyResult<&mut [f64]> {
        Ok(self.0.as_slice_mut()?)
    }
}

/// The error of an array that a call of another thread writes, or reads while this one would write it.
fn in_use(_: BorrowError) -> PyErr {
    raise(Error::Parameter("an array is in use by another call, but none may be written while it is read".into()))
}

/// int64, to read.
pub type Integers<'py> = ToRead<'py, i64>;

/// float64, to read.
pub type Floats<'py> = ToRead<'py, f64>;

/// float32, to read.
pub type SingleFloats<'py> = ToRead<'py, f32>;

/// uint8, to read.
pub type Bits<'py> = ToRead<'py, u8>;

/// uint32, to read.
pub type Counts<'py> = ToRead<'py, u32>;

/// uint64, to read.
pub type Weights<'py> = ToRead<'py, u64>;

/// Looks up what numpy offers to compiled modules, and borrows an array by its rules.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    returned::<u8>(py, Vec::new()).try_readonly().map_err(in_use)?;
    Ok(())
}

/// A matrix, one byte an entry.
pub fn unpacked<'py>(py: Python<'py>, matrix: &BitMatrix) -> PyResult<Matrix<'py>> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let mut entries = bytes(rows.saturating_mul(columns))?;
    run(py, None, streaming_cost(8 * entries.len()), |run| {
        run.try_for_each_chunk(&mut entries, columns.max(1), |i, row| {
            for (word, bits) in matrix.row(i).iter().zip(row.chunks_mut(64)) {
                bits.iter_mut().enumerate().for_each(|(j, bit)| *bit = (word >> j & 1) as u8);
            }
            Ok(())
        })
    })?;
    returned(py, entries).reshape([rows, columns])
}

/// A vector handed over to Python without a copy.
pub fn returned<T: Element>(py: Python<'_>, values: Vec<T>) -> Vector<'_, T> {
    values.into_pyarray(py)
}

/// Refuses a list of masked arrays, whose masks numpy would drop in silence.
fn refuse_masked_rows(name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        return Ok(());
    }
    let masked = value.py().import("numpy.ma")?.getattr("MaskedArray")?;
    for row in value.try_iter()? {
        if row?.is_instance(&masked)? {
            return Err(masked_array(name));
        }
    }
    Ok(())
}

fn masked_array(name: &str) -> PyErr {
    parameter(name, "masked array", "masked entries are neither 0 nor 1: fill them first")
}

/// The value as an array of so many dimensions.
fn shaped<'py>(name: &str, value: &Bound<'py, PyAny>, dimensions: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = value.py().import("numpy")?;
    refuse_masked_rows(name, value)?;
    let untouched = numpy.call_method1("asanyarray", (value,));
    let array = untouched.map_err(|_| parameter(name, value.get_type(), "it must be an array of 0 and 1"))?;
    let array = array.cast_into::<PyUntypedArray>()?;
    if array.hasattr("mask")? {
        return Err(masked_array(name));
    }
    if array.ndim() != dimensions {
        let shape = array.getattr("shape")?;
        return Err(raise(Error::Shape(format!(
            "{name} has shape {shape}, but it must have {dimensions} dimension(s)"
        ))));
    }
    // An empty list is an array of floats, and yet holds nothing but bits.
    if array.len() == 0 {
        return Ok(numpy.call_method1("zeros", (array.getattr("shape")?, "uint8"))?.cast_into()?);
    }
    Ok(array)
}

/// The value as an array of integers, aligned and in the machine's byte order.
fn checked<'py>(name: &str, value: &Bound<'py, PyAny>, dimensions: usize) -> PyResult<Bound<'py, PyUntypedArray>> {
    let numpy = value.py().import("numpy")?;
    let array = shaped(name, value, dimensions)?;
    if !matches!(array.dtype().kind(), b'b' | b'i' | b'u') {
        return Err(wrong_type(name, &array));
    }
    let native = array.dtype().call_method1("newbyteorder", ("=",))?;
    Ok(numpy.call_method1("require", (array, native, "A"))?.cast_into()?)
}

fn wrong_type(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyErr {
    let rule = "its dtype must be bool or an integer type, as after .astype('uint8'), and every entry 0 or 1";
    parameter(name, format!("array of {}", array.dtype()), rule)
}

fn packed<T: Entry>(name: &str, array: &Bound<'_, PyArray2<T>>, threads: Threads<'_, '_>) -> PyResult<BitMatrix> {
    let readable = array.try_readonly().map_err(in_use)?;
    let view = readable.as_array();
    let (rows, columns) = view.dim();
    let bytes = array.len() * size_of::<T>();
    run(array.py(), threads, streaming_cost(bytes), |run| {
        BitMatrix::pack(rows, columns, run, |first, out| pack_rows(name, &view, first, out))
    })
}

/// Packs the rows from `first` on, 64 columns at a time, through a tile of bytes: whatever the strides, memory is
/// read along the shorter one.
fn pack_rows<T: Entry>(name: &str, all: &ArrayView2<'_, T>, first: usize, out: &mut [u64]) -> Result<()> {
    let words = all.ncols().div_ceil(64);
    let view = all.slice(s![first..first + out.len() / words, ..]);
    let by_columns = view.strides()[0].unsigned_abs() < view.strides()[1].unsigned_abs();
    let mut tile = [0u8; 64 * 64];
    let mut wrong = false;
    for word in 0..words {
        let part = view.slice(s![.., word * 64..all.ncols().min(word * 64 + 64)]);
        if part.ncols() < 64 {
            tile.fill(0);
        }
        if by_columns {
            for (j, column) in part.columns().into_iter().enumerate() {
                for (i, &entry) in column.iter().enumerate() {
                    let (bit, more) = entry.split();
                    tile[i * 64 + j] = bit;
                    wrong |= more;
                }
            }
        } else {
            for (row, bits) in part.rows().into_iter().zip(tile.chunks_exact_mut(64)) {
                wrong |= split_row(row, bits);
            }
        }
        for (bits, row) in tile.chunks_exact(64).zip(out.chunks_exact_mut(words)) {
            row[word] = pack_word(bits);
        }
    }
    if wrong { Err(not_bits(name)) } else { Ok(()) }
}

/// Writes the lowest bits of the entries; says whether any entry holds more.
fn split_row<T: Entry>(entries: ArrayView1<'_, T>, bits: &mut [u8]) -> bool {
    let mut wrong = false;
    let mut put = |(bit, entry): (&mut u8, &T)| {
        let (low, more) = entry.split();
        *bit = low;
        wrong |= more;
    };
    match entries.as_slice() {
        // The compiler vectorizes this loop.
        Some(slice) => bits.iter_mut().zip(slice).for_each(&mut put),
        None => bits.iter_mut().zip(entries.iter()).for_each(&mut put),
    }
    wrong
}

/// Up to 64 bytes of 0 or 1 as a word: each multiplication gathers eight of them in its top byte.
fn pack_word(bits: &[u8]) -> u64 {
    let gather = |bytes: &[u8]| little(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56;
    bits.chunks(8).enumerate().fold(0, |word, (i, bytes)| word | gather(bytes) << (8 * i))
}

/// The array may be private: neither place nor value is told.
fn not_bits(name: &str) -> Error {
    Error::Parameter(format!("{name} holds something else, but {RULE}"))
}
