//! Row echelon form by the method of the four Russians, one panel of strips at a time.
//!
//! A panel is factored strip by strip; only then does every strip to the right of it take all its updates at once,
//! while that strip is in the cache. Nothing is computed for the coefficients of an update: once a strip's pivot rows
//! are reduced so that its pivot columns hold an identity, the bits of every other row in that strip are the
//! coefficients. (Albrecht, Bard, Pernet 2011 describe the decomposition; the layout and the arms are ours.)

use super::strips::Strips;
use crate::error::Result;
use crate::memory::{copied, room};
use crate::run::Run;
use crate::simd::{BLOCK, Block, Isa, Tiles};

/// Strips in a panel: enough that the trailing strips are read seldom, few enough that the panel stays in L2.
const PANEL: usize = 4;

/// Products of blocks, about 20 ns each, for which it pays to wake another thread.
const SHARED_PRODUCTS: usize = 1 << 12;

/// Rows that are searched for pivots one by one before whole blocks are first reduced by the pivots found so far.
const SCALAR_BLOCKS: usize = 3;

/// A matrix in row echelon form: row t has its pivot in column `pivots[t]`.
///
/// In the strip of its pivot a row is zero in the strip's other pivot columns; what stands to the left of that strip
/// is not part of the form.
pub struct Echelon {
    /// The rows `0..pivots.len()` hold the form; the others are reduced in the columns that were no unknowns.
    pub strips: Strips,
    /// Pivot columns, ascending.
    pub pivots: Vec<usize>,
}

/// Brings `strips` to row echelon form; pivots are sought in the first `columns` columns only.
///
/// Cost: about rows * columns * rank - rank^2 (rows + columns) / 2 + rank^3 / 3 bit operations, in place.
pub fn eliminate(mut strips: Strips, columns: usize, run: Run<'_>) -> Result<Echelon> {
    let (rows, height, last) = (strips.rows(), strips.height(), columns.div_ceil(BLOCK));
    let mut pivots = room(Some(rows.min(columns)))?;
    let (mut start, mut end) = (0, PANEL.min(last));
    let mut steps = factor(strips.split_mut(0, end, end).0, height, rows, 0, columns, run.isa)?;
    while start < last {
        run.check()?;
        for (s, step) in steps.iter().enumerate() {
            pivots.extend(ones(step.columns).map(|q| (start + s) * BLOCK + q));
        }
        let top = pivots.len();
        let next_end = if top < rows { (end + PANEL).min(last) } else { end };
        let (panel, next, rest) = strips.split_mut(start, end, next_end);
        let worth_sharing = rest.len() * steps.len() >= SHARED_PRODUCTS;
        let run = if worth_sharing { run } else { run.sequential() };
        // The next panel is factored, which one thread must do alone, while the other threads update the rest.
        let look_ahead = || {
            update(panel, next, height, &steps, run.sequential());
            factor(next, height, rows, top, columns.saturating_sub(end * BLOCK), run.isa)
        };
        steps = run.join(look_ahead, || update(panel, rest, height, &steps, run)).0?;
        (start, end) = if top < rows { (end, next_end) } else { (last, last) };
    }
    Ok(Echelon { strips, pivots })
}

/// What one strip of a panel does to the strips to its right.
struct Step {
    /// First pivot row; the pivot rows are the `columns.count_ones()` rows from here on, once `swaps` are done.
    top: usize,
    /// Exchanges of rows that bring the pivot rows there.
    swaps: Vec<(usize, usize)>,
    /// Pivot columns, a bit for each column of the strip.
    columns: u64,
    /// `combination[s]`: the reduced pivot row of column q is the sum of the pivot rows of step s in row q of it.
    combination: Vec<Block>,
}

impl Step {
    fn count(&self) -> usize {
        self.columns.count_ones() as usize
    }

    fn below(&self) -> usize {
        self.top + self.count()
    }
}

fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
        word &= word - 1;
        Some(bit)
    })
}

/// Factors a panel in place: its strips end with their reduced pivot rows, and below them with the coefficients.
fn factor(
    panel: &mut [Block],
    height: usize,
    rows: usize,
    mut top: usize,
    columns: usize,
    isa: Isa,
) -> Result<Vec<Step>> {
    let mut steps: Vec<Step> = Vec::with_capacity(PANEL);
    let mut tiles = Tiles::new(isa);
    for s in 0..panel.len() / height {
        let width = (columns - s * BLOCK).min(BLOCK);
        let pivots = Pivots::find(&panel[s * height..][..height], top, rows, width, isa);
        let (swaps, transform) = pivots.arrange(top);
        for strip in panel.chunks_exact_mut(height) {
            swap_rows(strip, &swaps);
        }
        let mut step = Step { top, swaps, columns: pivots.columns, combination: Vec::new() };
        step.combination = combine(panel, height, &steps, &step, &transform, &mut tiles);
        let (left, right) = panel.split_at_mut((s + 1) * height);
        let strip = &mut left[s * height..];
        for later in right.chunks_exact_mut(height) {
            let reduced = product(&transform, &gather_rows(later, top, step.count()), &mut tiles);
            add_multiples(later, &[strip], &[reduced], step.below(), &mut tiles);
            scatter_rows(later, &step, &reduced);
        }
        let reduced = product(&transform, &gather_rows(strip, top, step.count()), &mut tiles);
        if width < BLOCK {
            // The strip's last columns are no unknowns; they take the update that all strips to the right take.
            let coefficients = copied(strip)?;
            add_multiples(strip, &[&coefficients], &[reduced], step.below(), &mut tiles);
        }
        scatter_rows(strip, &step, &reduced);
        top = step.below();
        steps.push(step);
    }
    Ok(steps)
}

/// The pivots of one strip.
struct Pivots {
    columns: u64,
    /// Row indices in the order in which they were found.
    rows: Vec<usize>,
    /// By pivot column: the reduced row, zero in all other pivot columns.
    reduced: [u64; BLOCK],
    /// By pivot column: which of `rows` it is the sum of.
    sums: [u64; BLOCK],
}

impl Pivots {
    fn find(strip: &[Block], top: usize, rows: usize, width: usize, isa: Isa) -> Pivots {
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
    fn arrange(&self, top: usize) -> (Vec<(usize, usize)>, Block) {
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

fn swap_rows(strip: &mut [Block], swaps: &[(usize, usize)]) {
    for &(one, other) in swaps {
        let (a, b) = (strip[one / BLOCK].row(one % BLOCK), strip[other / BLOCK].row(other % BLOCK));
        strip[one / BLOCK].set_row(one % BLOCK, b);
        strip[other / BLOCK].set_row(other % BLOCK, a);
    }
}

/// Rows `top..top + count` of a strip, at most 64, as rows `0..count` of a block.
fn gather_rows(strip: &[Block], top: usize, count: usize) -> Block {
    let mut block = Block::ZERO;
    if count > 0 {
        let first = count.min(BLOCK - top % BLOCK);
        block.copy_rows(0, &strip[top / BLOCK], top % BLOCK, first);
        if count > first {
            block.copy_rows(first, &strip[top / BLOCK + 1], 0, count - first);
        }
    }
    block
}

/// Writes the reduced pivot rows, given by pivot column, over the pivot rows of a step.
fn scatter_rows(strip: &mut [Block], step: &Step, reduced: &Block) {
    if step.count() == BLOCK {
        let (at, rest) = (step.top / BLOCK, step.top % BLOCK);
        strip[at].copy_rows(rest, reduced, 0, BLOCK - rest);
        if rest > 0 {
            strip[at + 1].copy_rows(0, reduced, BLOCK - rest, rest);
        }
        return;
    }
    for (row, q) in (step.top..).zip(ones(step.columns)) {
        strip[row / BLOCK].set_row(row % BLOCK, reduced.row(q));
    }
}

fn product(left: &Block, right: &Block, tiles: &mut Tiles) -> Block {
    let mut sum = [Block::ZERO];
    tiles.load(std::slice::from_ref(right));
    tiles.add_product(&mut sum, &[std::slice::from_ref(left)]);
    sum[0]
}

/// The reduced pivot rows of a step as sums of the pivot rows of this and all earlier steps of the panel.
fn combine(
    panel: &[Block],
    height: usize,
    steps: &[Step],
    step: &Step,
    transform: &Block,
    tiles: &mut Tiles,
) -> Vec<Block> {
    let mut sums = vec![Block::ZERO; steps.len() + 1];
    for (s, earlier) in steps.iter().enumerate() {
        let coefficients = gather_rows(&panel[s * height..][..height], step.top, step.count());
        for (sum, part) in sums.iter_mut().zip(&earlier.combination) {
            tiles.load(std::slice::from_ref(part));
            tiles.add_product(std::slice::from_mut(sum), &[std::slice::from_ref(&coefficients)]);
        }
    }
    sums.iter_mut().for_each(|sum| *sum = product(transform, sum, tiles));
    sums[steps.len()] = *transform;
    sums
}

/// Adds multiples of the reduced pivot rows to the rows from `below` on; their coefficients stand in `factors`.
fn add_multiples(strip: &mut [Block], factors: &[&[Block]], reduced: &[Block], below: usize, tiles: &mut Tiles) {
    tiles.load(reduced);
    let whole = below.div_ceil(BLOCK);
    if !below.is_multiple_of(BLOCK) {
        // The upper rows of this block are finished: their bits in `factors` are no coefficients.
        let heads: Vec<Block> = factors.iter().map(|factor| keep_from(&factor[whole - 1], below % BLOCK)).collect();
        let heads: Vec<&[Block]> = heads.iter().map(std::slice::from_ref).collect();
        tiles.add_product(&mut strip[whole - 1..whole], &heads);
    }
    let factors: Vec<&[Block]> = factors.iter().map(|factor| &factor[whole..]).collect();
    tiles.add_product(&mut strip[whole..], &factors);
}

fn keep_from(block: &Block, start: usize) -> Block {
    let mut kept = Block::ZERO;
    kept.copy_rows(start, block, start, BLOCK - start);
    kept
}

/// Lets every strip to the right of a panel take all the panel's updates.
fn update(panel: &[Block], trailing: &mut [Block], height: usize, steps: &[Step], run: Run<'_>) {
    let factors: Vec<&[Block]> = panel.chunks_exact(height).collect();
    let below = steps[steps.len() - 1].below();
    run.for_each_chunk(
        trailing,
        height,
        || Tiles::new(run.isa),
        |tiles, _, strip| {
            let mut rows = [Block::ZERO; PANEL];
            let mut reduced = [Block::ZERO; PANEL];
            for step in steps {
                swap_rows(strip, &step.swaps);
            }
            for (block, step) in rows.iter_mut().zip(steps) {
                *block = gather_rows(strip, step.top, step.count());
            }
            for (s, part) in rows.iter().take(steps.len()).enumerate() {
                tiles.load(std::slice::from_ref(part));
                for (sum, step) in reduced.iter_mut().zip(steps).skip(s) {
                    tiles.add_product(std::slice::from_mut(sum), &[std::slice::from_ref(&step.combination[s])]);
                }
            }
            add_multiples(strip, &factors, &reduced[..steps.len()], below, tiles);
            for (step, reduced) in steps.iter().zip(&reduced) {
                scatter_rows(strip, step, reduced);
            }
        },
    );
}
