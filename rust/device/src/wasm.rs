//! The module's door for a host without Rust: texts as bytes in memory, random bytes from `env.random`.
#![allow(unsafe_code)]

use alloc::string::String;
use alloc::vec::Vec;
use core::slice;

use crate::device;

#[global_allocator]
static HEAP: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

/// No input leads here, which tests try; if one does, the host sees a trap.
#[panic_handler]
fn stop(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    /// Fills `len` bytes from `ptr` on at random, from a cryptographic generator.
    fn random(ptr: *mut u8, len: usize);
}

/// Room for so many bytes, which [`release`] frees.
#[unsafe(no_mangle)]
pub extern "C" fn alloc(len: usize) -> *mut u8 {
    leak(alloc::vec![0; len])
}

/// Frees so many bytes.
///
/// # Safety
/// They must be those of [`alloc`], or of a result: its length and four bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(ptr: *mut u8, len: usize) {
    // SAFETY: the caller hands back what `leak` has made of a boxed slice of this length.
    drop(unsafe { Vec::from_raw_parts(ptr, len, len) });
}

/// [`device::describe`] of a text of UTF-8: its place is that of four bytes with the length, and the text after them.
///
/// # Safety
/// There must be so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn describe(ptr: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller has written so many bytes there.
    reply(unsafe { slice::from_raw_parts(ptr, len) }, device::describe)
}

/// [`device::answer`] of a text, in the same way.
///
/// # Safety
/// There must be so many bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(ptr: *const u8, len: usize) -> *mut u8 {
    let mut fill = |bytes: &mut [u8]| {
        // SAFETY: the host fills exactly these bytes.
        unsafe { random(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    };
    // SAFETY: the caller has written so many bytes there.
    reply(unsafe { slice::from_raw_parts(ptr, len) }, |input| device::answer(input, &mut fill))
}

/// Bytes that are no UTF-8 are no JSON either, and neither is an empty text.
fn reply(input: &[u8], work: impl FnOnce(&str) -> String) -> *mut u8 {
    let text = work(core::str::from_utf8(input).unwrap_or_default());
    let mut bytes = (text.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(text.as_bytes());
    leak(bytes)
}

fn leak(bytes: Vec<u8>) -> *mut u8 {
    alloc::boxed::Box::leak(bytes.into_boxed_slice()).as_mut_ptr()
}
