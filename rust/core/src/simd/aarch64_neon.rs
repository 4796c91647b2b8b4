//! NEON arm of the GF(2) product: tables of 16 sums of four rows, looked up 16 rows at a time by `tbl`.
//!
//! Half of the rows are added up at a time, in sixteen of the 32 registers: then a pair of tables serves two lookups
//! each, and half bytes are cut out once. Counted from the disassembly, 32 rows and a byte k of the left factor, which are
//! 32 x 8 x 64 bit operations, take 32 `tbl` and 32 `eor`, or 16 `eor3` where the processor has them, and 13 loads and
//! cuts (`make neon` prints the count). A product by `pmull` would take more: one of its results holds
//! eight inner products of eight bits, 64 bit operations, where a `tbl` and an `eor` make 512.

use std::arch::aarch64::*;
use std::arch::is_aarch64_feature_detected;

use super::block::Block;
use super::nibbles::Tiles;

pub fn add_product(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
    assert!(a.len() == tiles.0.len() && a.iter().all(|blocks| blocks.len() == c.len()));
    assert!(is_aarch64_feature_detected!("neon"));
    if is_aarch64_feature_detected!("sha3") {
        // SAFETY: the machine has NEON and its SHA3, and the lengths that the kernel relies on were checked above.
        unsafe { add_product_eor3(c, a, tiles) }
    } else {
        // SAFETY: the machine has NEON, and the lengths that the kernel relies on were checked above.
        unsafe { add_product_eor(c, a, tiles) }
    }
}

/// The kernel for a set of features and with an exclusive or of three registers.
macro_rules! kernel {
    ($name:ident, $features:literal, $xor3:expr) => {
        /// # Safety
        /// Needs the features, `a.len() == tiles.0.len()` and `a[s].len() == c.len()` for every s.
        #[target_feature(enable = $features)]
        unsafe fn $name(c: &mut [Block], a: &[&[Block]], tiles: &Tiles) {
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
                                    let sum = &mut acc[2 * j + v];
                                    *sum = $xor3(*sum, vqtbl1q_u8(first, lower[v]), vqtbl1q_u8(second, upper[v]));
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
    };
}

kernel!(add_product_eor, "neon", |sum, a, b| veorq_u8(sum, veorq_u8(a, b)));
kernel!(add_product_eor3, "neon,sha3", |sum, a, b| veor3q_u8(sum, a, b));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_exclusive_ors_make_the_same_sums() {
        let draw = |seed: u64| {
            let row = |r: usize| (seed + r as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31) ^ seed << r;
            Block::from_rows(&std::array::from_fn(row))
        };
        let blocks: Vec<Block> = (1..12).map(draw).collect();
        let (right, factors) = (&blocks[..3], [&blocks[3..6], &blocks[4..7], &blocks[5..8]]);
        let mut tiles = Tiles::default();
        tiles.load(right);
        let (mut one, mut other) = ([Block::ZERO; 3], [Block::ZERO; 3]);
        // SAFETY: NEON is part of the architecture, and as many factors of as many blocks are given.
        unsafe { add_product_eor(&mut one, &factors, &tiles) };
        assert!(one.iter().all(|block| !block.is_zero()));
        if is_aarch64_feature_detected!("sha3") {
            // SAFETY: the machine has SHA3; else as above.
            unsafe { add_product_eor3(&mut other, &factors, &tiles) };
            assert_eq!(one, other);
        }
    }
}
