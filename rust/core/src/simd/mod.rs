//! The kernels, each for several instruction sets. This is the only folder that may hold `unsafe`.
//!
//! The portable body defines every kernel. Its variant for another instruction set, an arm, agrees with it bit for bit
//! on every input. An [`Isa`] is chosen once for each operation.
//!
//! # Examples
//!
//! A product of two bit matrices of 64 x 64 entries: reversing the order of the rows twice leaves them as they were.
//!
//! ```
//! use hdp_fast_core::simd::{Block, Isa, Tiles};
//!
//! let reversal = Block::from_rows(&std::array::from_fn(|row| 1 << (63 - row)));
//! let identity = Block::from_rows(&std::array::from_fn(|row| 1 << row));
//! for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
//!     let mut tiles = Tiles::new(isa);
//!     tiles.load(&[reversal]);
//!     let mut product = [Block::ZERO];
//!     tiles.add_product(&mut product, &[&[reversal]]);
//!     assert_eq!(product, [identity]);
//! }
//! ```

#[macro_use]
mod dispatch;
#[cfg(target_arch = "aarch64")]
mod aarch64_neon;
mod answers;
mod beside;
mod block;
mod blocks;
mod capped;
mod categories;
mod coins;
mod disagreements;
mod exponential;
mod features;
mod gathered;
mod gradients;
mod grid;
mod halfspaces;
mod labels;
mod lines;
mod logarithm;
mod losses;
mod minibatch;
mod narrow;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod nibbles;
mod panels;
mod places;
mod portable;
mod powers;
mod prefetch;
mod real;
mod rows;
mod scores;
mod screen;
mod softmax;
mod terms;
mod threshold;
mod tile;
mod turn;
mod votes;
#[cfg(target_arch = "x86_64")]
mod x86_avx2;
#[cfg(target_arch = "x86_64")]
mod x86_coins;
#[cfg(target_arch = "x86_64")]
mod x86_lines;
#[cfg(target_arch = "x86_64")]
mod x86_screen;
#[cfg(target_arch = "x86_64")]
mod x86_threshold;
#[cfg(target_arch = "x86_64")]
mod x86_votes;
// The intrinsics of these arms are stable since Rust 1.89; an older compiler builds the library without them.
#[cfg(has_gfni_intrinsics)]
mod x86_gfni;
#[cfg(has_gfni_intrinsics)]
mod x86_gfni256;
#[cfg(has_gfni_intrinsics)]
mod x86_threshold_512;

pub use answers::{Clear, WORD, answer_clear};
pub use beside::{Beside, Bounds};
pub use block::{BLOCK, Block};
pub use blocks::{Work, add_block, block_products, vectorized};
pub use capped::{cap, cap_in_place, cap_past_caches};
pub use categories::{Below, Divisor, Keep, REPORTS, tell_values};
pub use coins::{COINS, keep_or_flip, position, toss_positions};
pub use disagreements::{LONG, Literal, Records, SHORT, add_conjunctions, add_parities, add_products};
pub use exponential::{exp, exponentials};
pub use features::{Cut, Scaling, add_multiples, add_to_classes, check_finite, cut_rows, scale_rows, wave_rows};
pub use gradients::{Derivatives, Examples, Grid, Rows};
pub use grid::{LARGEST_BLOCK, MOST_STEPS, ROUNDED, add_saturating, nearest_points, propose, round_to_grid};
pub use halfspaces::{Group, LANES, add_halfspaces};
pub use labels::Labels;
pub use logarithm::ln_1p;
pub use losses::{find_outside, take_bits, take_losses};
pub use minibatch::{Room, add_gradients, add_quantized};
pub use narrow::RowBlock;
pub use panels::{BLOCK_ENTRIES, Blocks, PANEL, add_blocks, lower_entries, mirror, pack_panels};
pub use places::{PART, Parts, SUMS, TARGETS, locate};
pub use powers::multiply_powers;
pub use prefetch::{ask_for_huge_pages, prefetch};
pub use real::Real;
pub use rows::{Matrix, add_projections, add_rows, inner_products};
pub use scores::{clipped_scores, squared_norm};
pub use screen::screen;
pub use softmax::{MOST_CLASSES, Softmax};
pub use threshold::divide;
pub use tile::{ABREAST, Rough, TILE, Tile, UNSURE};
pub use turn::{Abreast, turn};
pub use votes::{VOTES, add_votes};

use crate::error::{Error, Result};

/// The number of queries whose votes are counted together, label by label.
pub const LANE: usize = 64;

/// The number of rows of votes for which a count in half a byte has room.
const GROUP: usize = 15;

/// An instruction set for which there are kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// Plain Rust, for any machine.
    Portable,
    /// x86-64 with AVX2: products from nibble tables held in registers.
    Avx2,
    /// x86-64 with AVX2 and GFNI, without AVX-512: 8 x 8 bit products in one instruction; all else as with AVX2.
    Gfni256,
    /// x86-64 with AVX-512 and GFNI: 8 x 8 bit products in one instruction, and bits counted in one.
    Gfni,
    /// AArch64 with NEON: products from nibble tables held in registers; all else is portable.
    Neon,
}

impl Isa {
    /// Every instruction set that is known, slowest first; those of one architecture follow one another.
    pub const ALL: [Isa; 5] = [Isa::Portable, Isa::Avx2, Isa::Gfni256, Isa::Gfni, Isa::Neon];

    /// Whether this machine has the instruction set, and this build the kernels for it.
    pub fn available(self) -> bool {
        match self {
            Isa::Portable => true,
            Isa::Avx2 => avx2_available(),
            Isa::Gfni256 => gfni256_available(),
            Isa::Gfni => gfni_available(),
            // NEON is part of the architecture.
            Isa::Neon => cfg!(target_arch = "aarch64"),
        }
    }

    /// The fastest available instruction set, unless the environment variable `HDP_FAST_ISA` names another one; the
    /// portable one if the named one is not available.
    pub fn detect() -> Result<Isa> {
        let named = std::env::var("HDP_FAST_ISA").unwrap_or_default();
        if !named.is_empty() && Isa::ALL.iter().all(|isa| isa.name() != named) {
            return Err(Error::parameter("HDP_FAST_ISA", named, "it must be portable, avx2, gfni256, gfni or neon"));
        }
        let allowed = |isa: &Isa| isa.available() && (named.is_empty() || isa.name() == named);
        Ok(Isa::ALL.into_iter().rev().find(allowed).unwrap_or(Isa::Portable))
    }

    /// Whether [`Tiles`] take no more room than the bits of the right factor, so that many of them stay in the first cache.
    /// Other arms have tables, 4 to 32 times as large.
    pub fn is_compact(self) -> bool {
        matches!(self, Isa::Gfni256 | Isa::Gfni)
    }

    /// The name that `HDP_FAST_ISA` takes.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Portable => "portable",
            Isa::Avx2 => "avx2",
            Isa::Gfni256 => "gfni256",
            Isa::Gfni => "gfni",
            Isa::Neon => "neon",
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn avx2_available() -> bool {
    is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn avx2_available() -> bool {
    false
}

#[cfg(has_gfni_intrinsics)]
fn gfni256_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("gfni")
}

#[cfg(has_gfni_intrinsics)]
fn gfni_available() -> bool {
    let products = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("gfni");
    let counts = is_x86_feature_detected!("avx512vl") && is_x86_feature_detected!("avx512vpopcntdq");
    is_x86_feature_detected!("avx512f") && products && counts
}

#[cfg(not(has_gfni_intrinsics))]
fn gfni256_available() -> bool {
    false
}

#[cfg(not(has_gfni_intrinsics))]
fn gfni_available() -> bool {
    false
}

/// The right factor of a product of bit matrices, stored in the layout that one arm reads fastest.
pub struct Tiles(Stored);

enum Stored {
    Portable(portable::Tiles),
    #[cfg(target_arch = "x86_64")]
    Avx2(nibbles::Tiles),
    #[cfg(has_gfni_intrinsics)]
    Gfni256(x86_gfni256::Tiles),
    #[cfg(has_gfni_intrinsics)]
    Gfni(x86_gfni::Tiles),
    #[cfg(target_arch = "aarch64")]
    Neon(nibbles::Tiles),
}

impl Tiles {
    /// Prepares products with the kernels of `isa`, or with the portable ones where this machine lacks them.
    pub fn new(isa: Isa) -> Tiles {
        let isa = if isa.available() { isa } else { Isa::Portable };
        Tiles(match isa {
            Isa::Portable => Stored::Portable(portable::Tiles::default()),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Stored::Avx2(nibbles::Tiles::default()),
            #[cfg(has_gfni_intrinsics)]
            Isa::Gfni256 => Stored::Gfni256(x86_gfni256::Tiles::default()),
            #[cfg(has_gfni_intrinsics)]
            Isa::Gfni => Stored::Gfni(x86_gfni::Tiles::default()),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => Stored::Neon(nibbles::Tiles::default()),
            // Not reached: an arm that was not built is not available.
            _ => Stored::Portable(portable::Tiles::default()),
        })
    }

    /// Stores the right factor B, of 64 columns: `blocks[s]` holds its rows `64 s .. 64 s + 64`.
    pub fn load(&mut self, blocks: &[Block]) {
        match &mut self.0 {
            Stored::Portable(tiles) => tiles.load(blocks),
            #[cfg(target_arch = "x86_64")]
            Stored::Avx2(tiles) => tiles.load(blocks),
            #[cfg(has_gfni_intrinsics)]
            Stored::Gfni256(tiles) => tiles.load(blocks),
            #[cfg(has_gfni_intrinsics)]
            Stored::Gfni(tiles) => tiles.load(blocks),
            #[cfg(target_arch = "aarch64")]
            Stored::Neon(tiles) => tiles.load(blocks),
        }
    }

    /// Adds the product A B to C over GF(2), in place.
    ///
    /// `c[i]` holds rows `64 i .. 64 i + 64` of C; `a[s][i]` holds the same rows of A in columns `64 s .. 64 s + 64`.
    /// Every `a[s]` has as many blocks as `c`, and `a` has as many entries as blocks were loaded. Cost: `c.len() *
    /// a.len()` products of 64 x 64 bits.
    pub fn add_product(&self, c: &mut [Block], a: &[&[Block]]) {
        match &self.0 {
            Stored::Portable(tiles) => portable::add_product(c, a, tiles),
            #[cfg(target_arch = "x86_64")]
            Stored::Avx2(tiles) => x86_avx2::add_product(c, a, tiles),
            #[cfg(has_gfni_intrinsics)]
            Stored::Gfni256(tiles) => x86_gfni256::add_product(c, a, tiles),
            #[cfg(has_gfni_intrinsics)]
            Stored::Gfni(tiles) => x86_gfni::add_product(c, a, tiles),
            #[cfg(target_arch = "aarch64")]
            Stored::Neon(tiles) => aarch64_neon::add_product(c, a, tiles),
        }
    }
}

/// Adds up at least `count` products of 64 x 64 bits whose operands stay in the first cache: no elimination, and no
/// product of matrices, of as many blocks takes less time. Returns one of the sums.
pub fn multiply_in_cache(isa: Isa, count: usize) -> Block {
    const DEPTH: usize = 4;
    const HEIGHT: usize = 8;
    let block = |seed: usize| Block(std::array::from_fn(|at| (((seed + 3 * at) * at) >> 2) as u8));
    let blocks: Vec<Block> = (0..DEPTH * HEIGHT).map(block).collect();
    let factors: Vec<&[Block]> = blocks.chunks_exact(HEIGHT).collect();
    let mut tiles = Tiles::new(isa);
    tiles.load(&blocks[..DEPTH]);
    let mut sums = [Block::ZERO; HEIGHT];
    for _ in 0..count.div_ceil(DEPTH * HEIGHT) {
        tiles.add_product(&mut sums, &factors);
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arm_multiplies_blocks_like_the_portable_one() {
        let mut state = 1_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let mut blocks = |count: usize| -> Vec<Block> {
            (0..count).map(|_| Block::from_rows(&std::array::from_fn(|_| draw()))).collect()
        };
        for (depth, height) in [(0, 2), (1, 0), (1, 1), (2, 3), (4, 2), (5, 5)] {
            let (right, left, sums) = (blocks(depth), blocks(depth * height), blocks(height));
            let factors: Vec<&[Block]> = (0..depth).map(|s| &left[s * height..][..height]).collect();
            let product = |isa| {
                let (mut tiles, mut sums) = (Tiles::new(isa), sums.clone());
                tiles.load(&right);
                tiles.add_product(&mut sums, &factors);
                sums
            };
            let expected = product(Isa::Portable);
            assert_eq!(expected != sums, depth * height > 0);
            for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
                assert_eq!(product(isa), expected, "{isa:?}, {depth} factors of {height} blocks");
            }
        }
    }
}
