//! Search of a strip for pivots: 64 columns, and as many rows as it takes.

use crate::simd::{BLOCK, Block, Isa, Tiles};

/// Rows that are searched for pivots one by one before whole blocks are first reduced by the pivots found so far.
const SCALAR_BLOCKS: usize = 3;

/// The places of the bits of a word, ascending.
pub fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// The pivots of one strip.
pub struct Pivots {
    /// The columns that have a pivot, a bit for each.
    pub columns: u64,
    /// Row indices in the order in which they were found.
    rows: Vec<usize>,
    /// By pivot column: the reduced row, zero in all other pivot columns.
    reduced: [u64; BLOCK],
    /// By pivot column: which of `rows` it is the sum of.
    sums: [u64; BLOCK],
}

impl Pivots {
    /// Searches rows `top..rows` of a strip; columns from `width` on are no unknowns.
    pub fn find(strip: &[Block], top: usize, rows: usize, width: usize, isa: Isa) -> Pivots {
        let wanted = u64::MAX >> (BLOCK - width);
        let mut pivots = Pivots { columns: 0, rows: Vec::with_capacity(BLOCK), reduced: [0; BLOCK], sums: [0; BLOCK] };
        let first = top / BLOCK;
        let mut tiles = Tiles::new(isa);
        let mut stale = true;
        for (i, block) in strip.iter().enumerate().skip(first) {
            if i >= first + SCALAR_BLOCKS {
                if stale {
                    tiles.load(&[Block::from_rows(&pivots.reduced)]);
                    stale = false;
                }
                let mut residue = [*block];
                tiles.add_product(&mut residue, &[std::slice::from_ref(block)]);
                if residue[0].to_rows().iter().all(|row| row & wanted == 0) {
                    continue;
                }
            }
            let words = block.to_rows();
            for (r, word) in words.iter().enumerate() {
                let row = BLOCK * i + r;
                if row >= top && row < rows && pivots.offer(row, word & wanted) {
                    stale = true;
                    if pivots.columns == wanted {
                        return pivots;
                    }
                }
            }
        }
        pivots
    }

    /// Takes the row as a pivot if it is independent of those found so far.
    fn offer(&mut self, row: usize, word: u64) -> bool {
        let (mut rest, mut sum) = (word, 0);
        for q in ones(word & self.columns) {
            rest ^= self.reduced[q];
            sum ^= self.sums[q];
        }
        if rest == 0 {
            return false;
        }
        sum |= 1 << self.rows.len();
        let column = rest.trailing_zeros() as usize;
        for q in 0..BLOCK {
            // All-ones where the earlier pivot row has a bit in the new pivot column; branches would be guesses.
            let mask = (self.reduced[q] >> column & 1).wrapping_neg();
            self.reduced[q] ^= rest & mask;
            self.sums[q] ^= sum & mask;
        }
        self.reduced[column] = rest;
        self.sums[column] = sum;
        self.columns |= 1 << column;
        self.rows.push(row);
        true
    }

    /// The exchanges that bring the pivot rows to `top..`, and the reduced rows as sums of the rows found there.
    pub fn arrange(&self, top: usize) -> (Vec<(usize, usize)>, Block) {
        let below = top + self.rows.len();
        let mut place = vec![usize::MAX; self.rows.len()];
        let mut taken = 0u64;
        for (pivot, &row) in self.rows.iter().enumerate() {
            if row < below {
                place[pivot] = row - top;
                taken |= 1 << (row - top);
            }
        }
        let mut free = ones(!taken);
        let mut swaps = Vec::new();
        for (pivot, &row) in self.rows.iter().enumerate() {
            if row >= below
                && let Some(at) = free.next()
            {
                place[pivot] = at;
                swaps.push((top + at, row));
            }
        }
        let in_place = place.iter().enumerate().all(|(pivot, &at)| pivot == at);
        let moved = |sum: u64| if in_place { sum } else { ones(sum).fold(0, |word, pivot| word | 1 << place[pivot]) };
        (swaps, Block::from_rows(&self.sums.map(moved)))
    }
}
