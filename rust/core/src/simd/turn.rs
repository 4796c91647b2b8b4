//! Tiles of 64 x 64 bits, transposed side by side.
//!
//! Records are stored by rows and scored by columns. A tile is transposed by exchanges of bits between rows, which are
//! the same for every tile: so the tiles of a whole line of the cache are turned together.
//!
//! ```text
//! for half in 32, 16, 8, 4, 2, 1:
//!     for each pair of rows a, b that are `half` apart:
//!         exchange the upper half of each 2 half bits of a with the lower half of those of b
//! ```

use super::disagreements::SHORT;

/// As many tiles as a short column has words: entry r holds row r of each of them, which is a line of the cache.
pub type Abreast = [[u64; SHORT]; 64];

dispatched! {
    /// Transposes each tile: bit c of row r becomes bit r of row c.
    turn(tiles: &mut Abreast) = turned
}

/// Quarters change places, then theirs, down to single bits (Hacker's Delight, 7-3).
#[inline(always)]
fn turned(tiles: &mut Abreast) {
    let (mut half, mut low) = (32usize, u64::MAX >> 32);
    while half > 0 {
        for pair in tiles.chunks_exact_mut(2 * half) {
            let (upper, lower) = pair.split_at_mut(half);
            for (a, b) in upper.iter_mut().zip(lower) {
                for (a, b) in a.iter_mut().zip(b) {
                    let swap = (*a >> half ^ *b) & low;
                    *a ^= swap << half;
                    *b ^= swap;
                }
            }
        }
        half /= 2;
        low ^= low << half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn every_bit_changes_its_row_for_its_place_on_every_arm() {
        let mut rng = Seed::reproducible([11; 32]).stream(Stream::Speed, 0);
        let tiles: Abreast = std::array::from_fn(|_| std::array::from_fn(|_| rng.next_u64()));
        for isa in Isa::ALL {
            let mut other = tiles;
            turn(isa, &mut other);
            for (row, column, tile) in (0..64 * 64 * SHORT).map(|i| (i / SHORT / 64, i / SHORT % 64, i % SHORT)) {
                assert_eq!(other[column][tile] >> row & 1, tiles[row][tile] >> column & 1, "{}", isa.name());
            }
        }
    }
}
