//! NEON arm of the GF(2) product: tables of 16 sums of four rows, looked up 16 rows at a time by `tbl`.
//!
//! The tables, and what is looked up in them, are those of `simd/nibbles.rs`. Half of the rows are added up at a time, in
//! sixteen of the 32 registers: then nothing is spilled, a table is loaded for two lookups, and half bytes are cut out
//! once. `make neon` prints the instructions of the inner loop, 82 for 32 x 8 x 64 bit operations: 32 `tbl`, 32 `eor`, 9
//! loads of two registers, and 9 others. With `eor3`, which not all processors have, it had 90, since the compiler spilled.
//! A `pmull` makes eight products of polynomials, each of which holds one inner product of eight bits: 64 bit operations,
//! where a `tbl` and an `eor` make 512.

use std::arch::aarch64::*;

use super::block::Block;
use super::nibbles::Tiles;

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    assert!(a.len() == tiles.0.len() && a.iter().all(|blocks| blocks.len() == c.len()));
    // SAFETY: NEON is part of the architecture, and the lengths that the kernel relies on were checked above.
    unsafe { add_product_neon(c, a, tiles) }
}

/// # Safety
/// Needs NEON, `a.len() == tiles.0.len()` and `a[s].len() == c.len()` for every s.
#[target_feature(enable = "neon")]
unsafe fn add_product_neon(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    let low = vdupq_n_u8(0x0f);
    for (i, sum) in c.iter_mut().enumerate() {
        for half in 0..2 {
            // SAFETY: half a plane is 32 of its 64 bytes, two registers.
            let at = unsafe { sum.0.as_mut_ptr().add(32 * half) };
            let place = |v: usize| 64 * (v / 2) + 16 * (v % 2);
            // SAFETY: register v of the sums lies in plane v / 2 of eight.
            let mut acc: [uint8x16_t; 16] = unsafe { std::array::from_fn(|v| vld1q_u8(at.add(place(v)))) };
            for (s, tables) in tiles.0.iter().enumerate() {
                // SAFETY: s < a.len() and i < a[s].len() by this function's contract.
                let planes = unsafe { a.get_unchecked(s).get_unchecked(i) }.0.as_ptr();
                for (k, tables) in tables.chunks_exact(8).enumerate() {
                    // SAFETY: as for the sums; k < 8.
                    let rows: [uint8x16_t; 2] =
                        unsafe { std::array::from_fn(|v| vld1q_u8(planes.add(64 * k + 32 * half + 16 * v))) };
                    let lower = rows.map(|bytes| vandq_u8(bytes, low));
                    let upper = rows.map(|bytes| vshrq_n_u8::<4>(bytes));
                    for (j, table) in tables.iter().enumerate() {
                        let table = table.0.as_ptr();
                        // SAFETY: a table is 32 bytes.
                        let (first, second) = unsafe { (vld1q_u8(table), vld1q_u8(table.add(16))) };
                        for v in 0..2 {
                            let (one, other) = (vqtbl1q_u8(first, lower[v]), vqtbl1q_u8(second, upper[v]));
                            acc[2 * j + v] = veorq_u8(acc[2 * j + v], veorq_u8(one, other));
                        }
                    }
                }
            }
            for (v, sum) in acc.into_iter().enumerate() {
                // SAFETY: as for the loads above.
                unsafe { vst1q_u8(at.add(place(v)), sum) };
            }
        }
    }
}
