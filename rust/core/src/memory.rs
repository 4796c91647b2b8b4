//! Memory for what grows with the input: where there is no room for it, the caller gets an error and the process goes
//! on.
//!
//! # Examples
//!
//! A size is the product of checked factors; `None` says that the product overflowed.
//!
//! ```
//! use hdp_fast_core::Error;
//! use hdp_fast_core::memory::zeros;
//!
//! let (rows, columns) = (3_usize, 2);
//! assert_eq!(zeros::<u64>(rows.checked_mul(columns))?, [0; 6]);
//! assert_eq!(zeros::<u64>(usize::MAX.checked_mul(columns)), Err(Error::Memory(usize::MAX)));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

use std::hint::black_box;

use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// An allocation of this many bytes or more must leave some room.
const LARGE: usize = 1 << 20;

/// The room that it must leave for small allocations that end the process where they fail: tasks of threads, messages,
/// the scratch memory of kernels, objects of the interpreter. It is so large that the C library returns it to the
/// system when it is freed: up to 32 MiB it might keep it in a heap, which other threads cannot use.
const MARGIN: usize = 33 << 20;

/// A vector of `count` zeros. A `count` of `None` stands for a number that overflowed and is refused like any other for
/// which there is no room. Memory that the system has cleared is not cleared again.
pub fn zeros<T: Zeroable>(count: Option<usize>) -> Result<Vec<T>> {
    let zeros = bytemuck::allocation::try_zeroed_vec(count.unwrap_or(usize::MAX));
    zeros.ok().filter(leaves_room).ok_or_else(|| refused::<T>(count))
}

/// An empty vector with room for `count` elements; `None` stands for a number that overflowed.
pub fn room<T>(count: Option<usize>) -> Result<Vec<T>> {
    let mut room = Vec::new();
    let reserved = room.try_reserve_exact(count.unwrap_or(usize::MAX));
    reserved.ok().map(|()| room).filter(leaves_room).ok_or_else(|| refused::<T>(count))
}

/// Makes room for `more` elements beyond those that `values` holds, at least doubling its capacity where it must grow.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    if more <= values.capacity() - values.len() {
        return Ok(());
    }
    let count = values.len().checked_add(more);
    let grown = values.try_reserve(more).is_ok() && leaves_room(values);
    if grown { Ok(()) } else { Err(refused::<T>(count)) }
}

/// Collects an iterator of known length into a vector.
pub fn collected<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut collected = room(Some(values.len()))?;
    collected.extend(values);
    Ok(collected)
}

/// Copies a slice into a new vector.
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = room(Some(values.len()))?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// Refuses unless `bytes` bytes and a margin of 33 MiB beside them could be allocated now. They are freed again at
/// once.
pub fn check_room(bytes: usize) -> Result<()> {
    let bytes = bytes.saturating_add(MARGIN);
    let mut room = Vec::<u8>::new();
    let fits = room.try_reserve_exact(bytes).is_ok();
    // Else the compiler takes the allocation away and calls it a success.
    black_box(&room);
    if fits { Ok(()) } else { Err(Error::Memory(bytes)) }
}

/// Refuses to have another library allocate an array of so many bytes where it would leave no room.
pub fn check_array(bytes: usize) -> Result<()> {
    if bytes < LARGE { Ok(()) } else { check_room(bytes) }
}

fn leaves_room<T>(values: &Vec<T>) -> bool {
    values.capacity().saturating_mul(size_of::<T>()) < LARGE || check_room(0).is_ok()
}

fn refused<T>(count: Option<usize>) -> Error {
    Error::Memory(count.unwrap_or(usize::MAX).saturating_mul(size_of::<T>()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_no_machine_is_an_error() {
        for count in [None, Some(usize::MAX), Some(1 << 60)] {
            assert!(matches!(zeros::<u64>(count), Err(Error::Memory(_))));
            assert!(matches!(room::<u64>(count), Err(Error::Memory(_))));
            assert!(matches!(reserve(&mut vec![0u64], count.unwrap_or(usize::MAX)), Err(Error::Memory(_))));
        }
        assert_eq!(zeros::<u64>(Some(1 << 60)), Err(Error::Memory(1 << 63)));
        assert_eq!(check_room(1 << 60), Err(Error::Memory((1 << 60) + MARGIN)));
    }

    #[test]
    fn what_was_reserved_is_kept() {
        assert_eq!(zeros::<u32>(Some(3)).unwrap(), [0, 0, 0]);
        assert!(room::<u64>(Some(1000)).unwrap().capacity() >= 1000);
        let mut values = copied(&[1, 2, 3]).unwrap();
        reserve(&mut values, 7).unwrap();
        assert!(values.capacity() >= 10 && values == [1, 2, 3]);
        assert_eq!(collected((0..5).map(|i| i * i)).unwrap(), [0, 1, 4, 9, 16]);
    }
}
