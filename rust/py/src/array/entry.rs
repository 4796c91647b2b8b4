//! Entries of any integer type as bits.

use numpy::Element;
use numpy::ndarray::ArrayView1;

/// An integer type that may hold bits.
pub trait Entry: Element + Copy {
    /// The lowest bit, and whether there is anything else.
    fn split(self) -> (u8, bool);

    /// The entries of a contiguous array, where each is a byte that counts as what it is.
    fn as_bytes<'a>(_entries: &ArrayView1<'a, Self>) -> Option<&'a [u8]> {
        None
    }
}

impl Entry for u8 {
    fn split(self) -> (u8, bool) {
        (self & 1, self > 1)
    }

    fn as_bytes<'a>(entries: &ArrayView1<'a, u8>) -> Option<&'a [u8]> {
        entries.to_slice()
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
entries!(i8 u16 i16 u32 i32 u64 i64);

/// Writes the lowest bits of the entries; says whether any entry holds more.
pub fn split_row<T: Entry>(entries: ArrayView1<'_, T>, bits: &mut [u8]) -> bool {
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
