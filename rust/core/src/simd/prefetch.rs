//! Hints to the memory and to the system about it.

/// Asks the memory for entries that will be read soon.
///
/// They are brought into the second cache, which can wait for more lines at a time than the first one: long rows in
/// random order arrive up to a third faster, and short ones no slower.
#[inline(always)]
pub fn prefetch<T>(entries: &[T]) {
    // Where the entries are not aligned to lines, the last one lies in a line of its own.
    entries.iter().step_by((64 / size_of::<T>()).max(1)).for_each(ask);
    entries.last().into_iter().for_each(ask);
}

#[inline(always)]
fn ask<T>(entry: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: a prefetch is a hint that changes nothing, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(std::ptr::from_ref(entry).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = entry;
}

/// Asks the system for huge pages below memory that was not written yet. It is then faster to write first, since fewer
/// pages are made, and to read in random order, since the processor finds more of them without a look at their table.
pub fn ask_for_huge_pages<T>(memory: &mut [T]) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 12;
        let bytes = std::mem::size_of_val(memory);
        let ahead = memory.as_ptr().cast::<u8>().align_offset(PAGE);
        if bytes >= HUGE && ahead < bytes {
            // SAFETY: the advice concerns whole pages inside the memory, and changes nothing of what they hold.
            unsafe {
                let start = memory.as_mut_ptr().cast::<u8>().add(ahead);
                libc::madvise(start.cast(), (bytes - ahead) & !(PAGE - 1), libc::MADV_HUGEPAGE);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// For less memory than this, huge pages are not worth a call.
#[cfg(target_os = "linux")]
const HUGE: usize = 1 << 22;
