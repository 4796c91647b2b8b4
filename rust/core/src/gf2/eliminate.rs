//! Row echelon form by the method of the four Russians, one panel of strips at a time.
//!
//! A panel is factored strip by strip; only then does every strip to the right of it take all its updates at once,
//! while that strip is in the cache. Several panels make a wide one, which is treated in the same way: outside of it the
//! strips take the updates of all its panels at once, so that a large matrix is read from memory less often. Nothing is
//! computed for the coefficients of an update: once a strip's pivot rows are reduced so that its pivot columns hold an
//! identity, the bits of every other row in that strip are the coefficients. (Albrecht, Bard, Pernet 2011 describe the
//! decomposition; the layout and the arms are ours.)

use super::pivots::{Pivots, ones};
use super::strips::Strips;
use crate::error::Result;
use crate::memory::{copied, room};
use crate::run::Run;
use crate::simd::{BLOCK, Block, Isa, Tiles};

/// Strips in a panel: as many as the products of a strip are added up in registers for, and so few that they stay in L2.
pub const PANEL: usize = 4;

/// Strips in a wide panel, and in that of a matrix of [`LARGE`] strips or more: the larger the matrix, the more it pays to
/// read it seldom. Below 8,192 columns, where it stays in the caches, one width is as good as another.
const WIDE_PANELS: [usize; 2] = [16, 32];
const LARGE: usize = 256;

/// Products of blocks, about 20 ns each, for which it pays to wake another thread.
const SHARED_PRODUCTS: usize = 1 << 12;

/// Strips that take the updates of a panel together: they share what is read of it, and their tables stay in L2.
const TOGETHER: usize = 16;

/// Blocks of a panel that stay in L2 while those strips take their updates, one after the other.
const BLOCKS_AT_HAND: usize = 1 << 9;

/// A matrix in row echelon form: row t has its pivot in column `pivots[t]`.
///
/// In the strip of its pivot a row is zero in the strip's other pivot columns; what stands to the left of that strip
/// is not part of the form.
pub struct Echelon {
    /// The rows `0..pivots.len()` hold the form; the others are reduced in the columns that were no unknowns.
    pub strips: Strips,
    /// Pivot columns, ascending.
    pub pivots: Vec<usize>,
    /// What was done, a step for each strip that was searched for pivots, in order.
    pub steps: Vec<Step>,
}

/// Brings `strips` to row echelon form; pivots are sought in the first `columns` columns only.
///
/// Columns that are no unknowns take part in every sum of rows if they begin with a strip of their own, or stand beside
/// the last unknowns in their strip. Whole strips to the right of such a divided strip take none of its updates: who
/// wants them to passes a number of columns that fills the strip, whose padding holds no pivots.
///
/// Cost: about rows * columns * rank - rank^2 (rows + columns) / 2 + rank^3 / 3 bit operations, in place.
pub fn eliminate(strips: Strips, columns: usize, run: Run<'_>) -> Result<Echelon> {
    let wide = wide_panel(&strips);
    eliminate_by(strips, columns, wide, run)
}

/// The number of strips in a wide panel.
pub fn wide_panel(strips: &Strips) -> usize {
    WIDE_PANELS[usize::from(strips.len() >= LARGE)]
}

/// Eliminates by panels of `wide` strips; the form is the same for every width.
fn eliminate_by(mut strips: Strips, columns: usize, wide: usize, run: Run<'_>) -> Result<Echelon> {
    let (rows, height, last) = (strips.rows(), strips.height(), columns.div_ceil(BLOCK));
    let (mut pivots, mut steps) = (room(Some(rows.min(columns)))?, room(Some(last))?);
    let (mut start, mut end) = (0, wide.min(last));
    let mut panels = factor_wide(strips.split_mut(0, end, end).0, height, rows, 0, columns, run)?;
    while start < last {
        for panel in &panels {
            for (s, step) in panel.steps.iter().enumerate() {
                pivots.extend(ones(step.columns).map(|q| (start + panel.first + s) * BLOCK + q));
            }
        }
        let top = pivots.len();
        let next_end = if top < rows { (end + wide).min(last) } else { end };
        let (done, next, rest) = strips.split_mut(start, end, next_end);
        // Pivots are searched by one thread, which does it for the next panels while the others update the rest.
        let look_ahead = || {
            update(done, next, height, &panels, run)?;
            factor_wide(next, height, rows, top, columns.saturating_sub(end * BLOCK), run)
        };
        let (factored, updated) = run.join(look_ahead, || update(done, rest, height, &panels, run));
        updated?;
        let taken = std::mem::replace(&mut panels, factored?);
        steps.extend(taken.into_iter().flat_map(|panel| panel.steps));
        (start, end) = if top < rows { (end, next_end) } else { (last, last) };
    }
    Ok(Echelon { strips, pivots, steps })
}

/// A factored panel of a wide one.
struct Panel {
    /// Its first strip, counted from that of the wide panel.
    first: usize,
    /// A step for each of its strips.
    steps: Vec<Step>,
}

/// What one strip of a panel does to the strips to its right.
pub struct Step {
    /// First pivot row; the pivot rows are the `columns.count_ones()` rows from here on, once `swaps` are done.
    pub top: usize,
    /// Exchanges of rows that bring the pivot rows there. The strips of earlier wide panels do not take part in them.
    pub swaps: Vec<(usize, usize)>,
    /// Pivot columns, a bit for each column of the strip.
    pub columns: u64,
    /// `combination[s]`: the reduced pivot row of column q is the sum of the pivot rows of step s in row q of it.
    combination: Vec<Block>,
}

impl Step {
    /// The number of pivots.
    pub fn count(&self) -> usize {
        self.columns.count_ones() as usize
    }

    /// The row after the pivot rows.
    pub fn below(&self) -> usize {
        self.top + self.count()
    }

    /// The reduced pivot row of column q as a sum of the pivot rows, a bit for each of them.
    pub fn transform(&self, q: usize) -> u64 {
        self.combination.last().map_or(0, |block| block.row(q))
    }
}

/// Factors a wide panel in place, up to the one after which no rows are left.
fn factor_wide(
    wide: &mut [Block],
    height: usize,
    rows: usize,
    mut top: usize,
    columns: usize,
    run: Run<'_>,
) -> Result<Vec<Panel>> {
    let count = wide.len() / height;
    let mut panels = Vec::with_capacity(count.div_ceil(PANEL));
    for first in (0..count).step_by(PANEL) {
        if top == rows {
            break;
        }
        run.check()?;
        let (earlier, rest) = wide.split_at_mut(first * height);
        let (panel, later) = rest.split_at_mut(PANEL.min(count - first) * height);
        let steps = factor(panel, height, rows, top, columns - first * BLOCK, run.isa)?;
        top = steps.last().map_or(top, Step::below);
        // Their coefficients are those of the rows, wherever these go.
        for strip in earlier.chunks_exact_mut(height) {
            steps.iter().for_each(|step| swap_rows(strip, &step.swaps));
        }
        let factored = Panel { first: 0, steps };
        update(panel, later, height, std::slice::from_ref(&factored), run)?;
        panels.push(Panel { first, ..factored });
    }
    Ok(panels)
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

/// Exchanges pairs of rows of a strip.
pub fn swap_rows(strip: &mut [Block], swaps: &[(usize, usize)]) {
    for &(one, other) in swaps {
        let (a, b) = (strip[one / BLOCK].row(one % BLOCK), strip[other / BLOCK].row(other % BLOCK));
        strip[one / BLOCK].set_row(one % BLOCK, b);
        strip[other / BLOCK].set_row(other % BLOCK, a);
    }
}

/// Rows `top..top + count` of a strip, at most 64, as rows `0..count` of a block.
pub fn gather_rows(strip: &[Block], top: usize, count: usize) -> Block {
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

/// Writes rows `0..count` of a block over rows `top..top + count` of a strip.
pub fn put_rows(strip: &mut [Block], top: usize, count: usize, rows: &Block) {
    if count > 0 {
        let first = count.min(BLOCK - top % BLOCK);
        strip[top / BLOCK].copy_rows(top % BLOCK, rows, 0, first);
        if count > first {
            strip[top / BLOCK + 1].copy_rows(0, rows, first, count - first);
        }
    }
}

/// Writes the reduced pivot rows, given by pivot column, over the pivot rows of a step.
fn scatter_rows(strip: &mut [Block], step: &Step, reduced: &Block) {
    if step.count() == BLOCK {
        return put_rows(strip, step.top, BLOCK, reduced);
    }
    for (row, q) in (step.top..).zip(ones(step.columns)) {
        strip[row / BLOCK].set_row(row % BLOCK, reduced.row(q));
    }
}

/// The product of two blocks.
pub fn product(left: &Block, right: &Block, tiles: &mut Tiles) -> Block {
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
    let (whole, end) = (below.div_ceil(BLOCK), strip.len());
    if !below.is_multiple_of(BLOCK) {
        // The upper rows of this block are finished: their bits in `factors` are no coefficients.
        let heads: Vec<Block> = factors.iter().map(|factor| keep_from(&factor[whole - 1], below % BLOCK)).collect();
        let heads: Vec<&[Block]> = heads.iter().map(std::slice::from_ref).collect();
        tiles.add_product(&mut strip[whole - 1..whole], &heads);
    }
    let factors: Vec<&[Block]> = factors.iter().map(|factor| &factor[whole..end]).collect();
    tiles.add_product(&mut strip[whole..], &factors);
}

fn keep_from(block: &Block, start: usize) -> Block {
    let mut kept = Block::ZERO;
    kept.copy_rows(start, block, start, BLOCK - start);
    kept
}

/// Lets strips to the right of a wide panel take the updates of its panels, one after the other. Where the wide panel
/// exceeds L2 only the pivot rows do so, and the rows below take all updates at once, part by part.
fn update(wide: &[Block], trailing: &mut [Block], height: usize, panels: &[Panel], run: Run<'_>) -> Result<()> {
    let Some(last) = panels.last() else { return Ok(()) };
    let factors: Vec<&[Block]> = wide.chunks_exact(height).take(last.first + last.steps.len()).collect();
    let shared = trailing.len() * factors.len() >= SHARED_PRODUCTS;
    let run = if shared { run } else { run.sequential() };
    // With several threads so few at a time that none is idle at the end.
    let most = if run.parallel() { trailing.len() / height / 8 } else { TOGETHER };
    let below = last.steps.last().map_or(0, |step| step.below().div_ceil(BLOCK));
    let in_parts = run.isa.is_compact() && factors.len() * (height - below) > 2 * BLOCKS_AT_HAND;
    let finished = if in_parts { below } else { height };
    run.try_for_each_chunk(trailing, most.clamp(1, TOGETHER) * height, |_, strips| {
        let mut tiles = Tiles::new(run.isa);
        let reduced: Vec<_> = strips
            .chunks_exact_mut(height)
            .map(|strip| reduce(&factors, strip, finished, panels, &mut tiles))
            .collect();
        if in_parts {
            update_below(&factors, strips, height, finished, &reduced, run.isa);
        }
        Ok(())
    })
}

/// Lets the rows of some strips from block `finished` on take updates by their reduced pivot rows.
fn update_below(
    factors: &[&[Block]],
    strips: &mut [Block],
    height: usize,
    finished: usize,
    reduced: &[Vec<Block>],
    isa: Isa,
) {
    let mut tiles: Vec<Tiles> = reduced.iter().map(|_| Tiles::new(isa)).collect();
    tiles.iter_mut().zip(reduced).for_each(|(tiles, blocks)| tiles.load(blocks));
    let size = (BLOCKS_AT_HAND / factors.len()).max(1);
    for top in (finished..height).step_by(size) {
        let part = top..height.min(top + size);
        let factors: Vec<&[Block]> = factors.iter().map(|factor| &factor[part.clone()]).collect();
        for (strip, tiles) in strips.chunks_exact_mut(height).zip(&tiles) {
            tiles.add_product(&mut strip[part.clone()], &factors);
        }
    }
}

/// Exchanges the rows of a strip and reduces its pivot rows, which are returned by their columns, a block for each step.
/// Of the other rows only those in the first `finished` blocks take updates.
fn reduce(
    factors: &[&[Block]],
    strip: &mut [Block],
    finished: usize,
    panels: &[Panel],
    tiles: &mut Tiles,
) -> Vec<Block> {
    for step in panels.iter().flat_map(|panel| &panel.steps) {
        swap_rows(strip, &step.swaps);
    }
    let strip = &mut strip[..finished];
    let mut all = vec![Block::ZERO; factors.len()];
    for Panel { first, steps } in panels {
        let reduced = &mut all[*first..][..steps.len()];
        for (s, step) in steps.iter().enumerate() {
            tiles.load(&[gather_rows(strip, step.top, step.count())]);
            for (sum, step) in reduced.iter_mut().zip(steps).skip(s) {
                tiles.add_product(std::slice::from_mut(sum), &[std::slice::from_ref(&step.combination[s])]);
            }
        }
        let below = steps.last().map_or(0, Step::below);
        add_multiples(strip, &factors[*first..][..steps.len()], reduced, below, tiles);
        for (step, reduced) in steps.iter().zip(reduced) {
            scatter_rows(strip, step, reduced);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};

    /// Words of rows, each third of which is the sum of the two before if they are to be dependent.
    fn draw(rows: usize, words: usize, dependent: bool) -> Vec<u64> {
        let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, rows as u64);
        let mut data: Vec<u64> = Vec::with_capacity(rows * words);
        for row in 0..rows {
            for word in 0..words {
                let (at, sum) = (row * words + word, dependent && row % 3 == 2);
                data.push(if sum { data[at - words] ^ data[at - 2 * words] } else { rng.next_u64() });
            }
        }
        data
    }

    #[test]
    fn every_width_of_a_wide_panel_makes_the_same_form() {
        let run = Run::alone(Isa::detect().expect("an arm"));
        let shapes =
            [(0, 300), (1, 2000), (65, 1100), (700, 4200), (1030, 1024), (1100, 1100), (2200, 1100), (4300, 2200)];
        for ((rows, columns), dependent) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let words = usize::div_ceil(columns, 64);
            let data = draw(rows, words, dependent);
            // Once with strips beside those of the unknowns.
            let unknowns = if dependent { columns } else { columns / BLOCK * 6 / 7 * BLOCK };
            let form = |wide| {
                let read = |i: usize, first: usize, out: &mut [u64]| {
                    out.copy_from_slice(&data[i * words + first..][..out.len()]);
                };
                let strips = Strips::gather(rows, words, run, read).expect("room");
                let made = eliminate_by(strips, unknowns, wide, run).expect("no interruption");
                // Coefficients remain to the left of the pivots, those of rows as they were when a panel was factored.
                let keep = |row: usize, g: usize| match made.pivots.get(row) {
                    Some(pivot) => pivot / BLOCK <= g,
                    None => g >= unknowns.div_ceil(BLOCK),
                };
                let row_word = |row: usize, g: usize| made.strips.strip(g)[row / BLOCK].row(row % BLOCK);
                let word = |row, g| if keep(row, g) { row_word(row, g) } else { 0 };
                let kept: Vec<u64> = (0..rows * words).map(|at| word(at / words, at % words)).collect();
                (made.pivots, kept)
            };
            let (pivots, kept) = form(PANEL);
            // Where rows are few, they run out within a wide panel, and within one of its panels.
            let rank = if dependent { (rows - rows / 3).min(unknowns) } else { rows.min(unknowns) };
            assert!(rank - 8.min(rank) <= pivots.len() && pivots.len() <= rank, "{rows} x {columns}");
            for wide in [2 * PANEL, WIDE_PANELS[0], WIDE_PANELS[1], 64] {
                assert!(form(wide) == (pivots.clone(), kept.clone()), "{rows} x {columns}, panels of {wide} strips");
            }
        }
    }
}
