//! Memory for what grows with the input: where there is no room for it, an error and not the end of the process.

use std::hint::black_box;

use bytemuck::Zeroable;

use crate::error::{Error, Result};

/// From so many bytes on, an allocation must leave some room.
const LARGE: usize = 1 << 20;

/// The room that it must leave, for what is small and ends the process where it fails: tasks of threads, messages, the
/// scratch memory of kernels, objects of the interpreter. So much that the C library hands it back to the system once it
/// is given back: up to 32 MiB it might keep it in a heap, which other threads have no part in.
const MARGIN: usize = 33 << 20;

/// So many zeros; `None` is a number beyond all numbers. Memory that the system has cleared is not cleared again.
pub fn zeros<T: Zeroable>(count: Option<usize>) -> Result<Vec<T>> {
    let zeros = bytemuck::allocation::try_zeroed_vec(count.unwrap_or(usize::MAX));
    zeros.ok().filter(leaves_room).ok_or_else(|| refused::<T>(count))
}

/// An empty vector with room for so many elements.
pub fn room<T>(count: Option<usize>) -> Result<Vec<T>> {
    let mut room = Vec::new();
    let reserved = room.try_reserve_exact(count.unwrap_or(usize::MAX));
    reserved.ok().map(|()| room).filter(leaves_room).ok_or_else(|| refused::<T>(count))
}

/// Room for so many elements more, which doubles what there is where it must grow.
pub fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    if more <= values.capacity() - values.len() {
        return Ok(());
    }
    let count = values.len().checked_add(more);
    let grown = values.try_reserve(more).is_ok() && leaves_room(values);
    if grown { Ok(()) } else { Err(refused::<T>(count)) }
}

/// The values, whose number is known.
pub fn collected<T>(values: impl ExactSizeIterator<Item = T>) -> Result<Vec<T>> {
    let mut collected = room(Some(values.len()))?;
    collected.extend(values);
    Ok(collected)
}

/// A copy.
pub fn copied<T: Copy>(values: &[T]) -> Result<Vec<T>> {
    let mut copy = room(Some(values.len()))?;
    copy.extend_from_slice(values);
    Ok(copy)
}

/// An error unless there is room for so many bytes, which nobody keeps, and the margin.
pub fn check_room(bytes: usize) -> Result<()> {
    let bytes = bytes.saturating_add(MARGIN);
    let mut room = Vec::<u8>::new();
    let fits = room.try_reserve_exact(bytes).is_ok();
    // Else the compiler takes the allocation away and calls it a success.
    black_box(&room);
    if fits { Ok(()) } else { Err(Error::Memory(bytes)) }
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
