//! Minibatches: gradients at rows read in any order, shrunk, clipped, added up.
//!
//! Rows that are read in any order come from memory one by one, each after a wait. So they are copied in blocks to the
//! first caches while the memory fetches later ones, and what is done with a block then waits for nothing: its products
//! with all models, its factors together, and its sums, in registers. Batches of few rows, and rows too long for the
//! caches, are taken one by one. The bodies are plain Rust; an arm is the same body compiled for an instruction set
//! whose vectors are longer. Sums are kept in lanes and products are not fused with them, so that all arms round alike.
//!
//! ```text
//! for each four blocks of 16 rows:                    so few that sums of rounded terms fit into 32 bits
//!     for each block:
//!         copies, squares, labels = the next rows     missing ones are zeros
//!         scores = copies times models
//!         factors = those of `simd/gradients.rs`, times the grid's scale; 0 where a rounded gradient would be too long
//!         sums += factors times copies                as they are, or each term rounded to an integer
//!     sum += sums, as doubles
//! ```

use bytemuck::{Pod, Zeroable};

use super::Isa;
use super::gathered::{HEIGHT, LATE, add_up, gather, multiply};
use super::gradients::{Derivatives, Examples, Grid};
use super::real::{InLines, Line, Real};
use super::terms::{Plain, Terms};
use crate::error::Result;
use crate::memory::zeros;

/// A block has fewer rows where they would take more bytes than this, a part of the second cache.
const MOST_BYTES: usize = 1 << 18;

/// Batches of fewer draws are taken row by row.
const FEW: usize = 4;

/// Blocks after which sums go over from the precision of the rows to doubles. So many integers of at most 2^21 have a
/// sum that fits into 32 bits.
const BLOCKS: usize = 4;

/// Memory that begins where a line of the cache does.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Aligned([u8; 64]);

// SAFETY: an array of bytes without padding, of which all values are valid.
unsafe impl Zeroable for Aligned {}
// SAFETY: the same.
unsafe impl Pod for Aligned {}

/// The scratch memory of a thread that adds up gradients.
pub struct Room {
    rows: Vec<Aligned>,
    models: Vec<Aligned>,
    sums: Vec<Aligned>,
    factors: Vec<Aligned>,
    scores: Vec<f64>,
}

impl Room {
    /// Room for batches of this number of draws and models of one weight for each column and class.
    pub fn new<T: Real>(draws: usize, columns: usize, classes: usize) -> Result<Room> {
        let lines = columns.div_ceil(64 / size_of::<T>());
        let one_by_one = draws < FEW || lines > MOST_BYTES / (64 * HEIGHT);
        let (height, lines) = if one_by_one { (1, 0) } else { (HEIGHT, lines) };
        Ok(Room {
            rows: zeros(lines.checked_mul(height))?,
            models: zeros(lines.checked_mul(classes))?,
            sums: zeros(lines.checked_mul(classes))?,
            factors: zeros(classes.checked_mul(height * size_of::<T>()).map(|bytes| bytes.div_ceil(64)))?,
            scores: zeros(classes.checked_mul(height))?,
        })
    }
}

/// The memory as arrays of so many numbers.
#[inline(always)]
fn numbers<T: Pod, const COUNT: usize>(memory: &mut [Aligned]) -> &mut [[T; COUNT]] {
    bytemuck::cast_slice_mut::<Aligned, T>(memory).as_chunks_mut().0
}

/// Adds to `sum` the clipped gradient of each of the first `count` rows of `rows`, the part of one class after that of
/// the other, as the weights stand in w. The norm that is clipped is that of all parts together. The rows behind the
/// first ones will be needed next and are fetched meanwhile.
pub fn add_gradients<T: Real, D: Derivatives>(
    isa: Isa,
    examples: Examples<'_, T, D>,
    (rows, count): (&[usize], usize),
    w: &[T],
    room: &mut Room,
    sum: &mut [f64],
) {
    Minibatch { examples, terms: Plain, rows, count, w, room, sum }.add(isa);
}

/// The same with every clipped gradient rounded to integers, whose norm over all parts never exceeds that of the grid.
/// Sums whose magnitudes stay below 2^53 are exact.
pub fn add_quantized<T: Real, D: Derivatives>(
    isa: Isa,
    examples: Examples<'_, T, D>,
    grid: Grid,
    (rows, count): (&[usize], usize),
    w: &[T],
    room: &mut Room,
    sum: &mut [f64],
) {
    Minibatch { examples, terms: grid, rows, count, w, room, sum }.add(isa);
}

/// The clipped gradients of the first `count` of `rows`, added to `sum`.
struct Minibatch<'a, T, D, A> {
    examples: Examples<'a, T, D>,
    terms: A,
    rows: &'a [usize],
    count: usize,
    w: &'a [T],
    room: &'a mut Room,
    sum: &'a mut [f64],
}

impl<T: Real, D: Derivatives, A: Terms<T>> Minibatch<'_, T, D, A> {
    /// Adds them up.
    fn add(self, isa: Isa) {
        if self.room.rows.is_empty() {
            T::in_lines(isa, OneByOne(self));
        } else {
            T::in_lines(isa, InBlocks(self));
        }
    }
}

/// Rows that are read where they are.
struct OneByOne<'a, T, D, A>(Minibatch<'a, T, D, A>);

impl<T: Real, D: Derivatives, A: Terms<T>> InLines<T> for OneByOne<'_, T, D, A> {
    #[inline(always)]
    fn run<L: Line<T, LANES>, const LANES: usize>(self) {
        let Minibatch { examples, terms, rows, count, w, room, sum } = self.0;
        let (scores, factors) = (room.scores.as_chunks_mut().0, numbers::<T, 1>(&mut room.factors));
        let batch = (examples, terms, rows, count);
        // A single class needs no loops over classes.
        if scores.len() == 1 {
            one_by_one::<T, D, A, L, LANES>(batch, w, &mut [[0.0]], &mut [[T::default()]], sum);
        } else {
            let factors = &mut factors[..scores.len()];
            one_by_one::<T, D, A, L, LANES>(batch, w, scores, factors, sum);
        }
    }
}

#[inline(always)]
fn one_by_one<T: Real, D: Derivatives, A: Terms<T>, L: Line<T, LANES>, const LANES: usize>(
    (examples, terms, rows, count): (Examples<'_, T, D>, A, &[usize], usize),
    w: &[T],
    scores: &mut [[f64; 1]],
    multiples: &mut [[T; 1]],
    sum: &mut [f64],
) {
    let columns = examples.rows.columns;
    for i in 0..count {
        examples.ask(rows, i);
        let row = examples.rows.row(rows[i]);
        let squared = dot::<T, L, LANES>(row, row).get();
        for (class, score) in scores.iter_mut().enumerate() {
            *score = [dot::<T, L, LANES>(row, &w[class * columns..][..columns]).get()];
        }
        let label = examples.labels.get(rows[i]);
        factors(examples, terms, scores, &[squared], &[label], multiples, |_| row.iter().copied());
        for (class, [factor]) in multiples.iter().enumerate() {
            let sum = &mut sum[class * columns..][..columns];
            sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += A::term(*factor, x));
        }
    }
}

/// Rows that are copied block by block.
struct InBlocks<'a, T, D, A>(Minibatch<'a, T, D, A>);

impl<T: Real, D: Derivatives, A: Terms<T>> InLines<T> for InBlocks<'_, T, D, A> {
    #[inline(always)]
    fn run<L: Line<T, LANES>, const LANES: usize>(self) {
        let Minibatch { examples, terms, rows, count, w, room, sum } = self.0;
        let columns = examples.rows.columns;
        let Room { rows: copies, models, sums, factors, scores } = room;
        let copies = numbers::<T, LANES>(copies).as_chunks_mut::<HEIGHT>().0;
        let (models, sums) = (numbers::<T, LANES>(models), numbers::<T, LANES>(sums));
        let (scores, factors) = (scores.as_chunks_mut().0, numbers::<T, HEIGHT>(factors));
        let classes = scores.len();
        for (class, w) in w.chunks_exact(columns).enumerate() {
            for (line, w) in w.chunks(LANES).enumerate() {
                models[line * classes + class][..w.len()].copy_from_slice(w);
            }
        }
        sums.fill([T::default(); LANES]);
        let mut start = 0;
        while start < count {
            let end = count.min(start + BLOCKS * HEIGHT);
            for block in (start..end).step_by(HEIGHT) {
                let size = HEIGHT.min(end - block);
                let (squared, labels) = gather::<T, D, L, LANES>(examples, &rows[block..], size, copies);
                (HEIGHT - LATE..HEIGHT - LATE / 2).for_each(|i| examples.ask(&rows[block..], i));
                multiply::<T, L, LANES>(copies, models, scores);
                let row = |i: usize| copies.iter().flat_map(move |line| line[i]);
                self::factors(examples, terms, scores, &squared, &labels, factors, row);
                (HEIGHT - LATE / 2..HEIGHT).for_each(|i| examples.ask(&rows[block..], i));
                add_up::<T, A, L, LANES>(copies, factors, sums);
            }
            let terms = (end - start).next_multiple_of(HEIGHT);
            for (class, sum) in sum.chunks_exact_mut(columns).enumerate() {
                for (line, sum) in sum.chunks_mut(LANES).enumerate() {
                    let sums = &mut sums[line * classes + class];
                    match <&mut [f64; LANES]>::try_from(&mut *sum) {
                        // A loop of known length becomes vectors.
                        Ok(sum) => (0..LANES).for_each(|lane| sum[lane] += A::total(sums[lane], terms)),
                        Err(_) => sum.iter_mut().zip(&*sums).for_each(|(sum, more)| *sum += A::total(*more, terms)),
                    }
                    *sums = [T::default(); LANES];
                }
            }
            start = end;
        }
    }
}

/// What some rows are to be multiplied with, from their inner products: with each model in `scores`, which are lost,
/// and with themselves. Multiples that are too long are replaced by 0.
#[inline(always)]
fn factors<T: Real, D: Derivatives, A: Terms<T>, I: Iterator<Item = T> + Clone, const N: usize>(
    examples: Examples<'_, T, D>,
    terms: A,
    scores: &mut [[f64; N]],
    squared: &[f64; N],
    labels: &[f64; N],
    factors: &mut [[T; N]],
    row: impl Fn(usize) -> I,
) {
    examples.factors(scores, squared, labels);
    for (factors, scores) in factors.iter_mut().zip(scores.iter_mut()) {
        for i in 0..N {
            factors[i] = T::of(scores[i] * terms.scale());
            scores[i] = factors[i].get();
        }
    }
    let short = terms.are_short(scores, squared, examples.rows.columns);
    if short != [true; N] {
        for i in (0..N).filter(|&i| !short[i]) {
            if !terms.is_short(factors.iter().map(|factors| factors[i]), row(i)) {
                factors.iter_mut().for_each(|factors| factors[i] = T::default());
            }
        }
    }
}

/// The inner product of a row with a model.
#[inline(always)]
fn dot<T: Real, L: Line<T, LANES>, const LANES: usize>(row: &[T], w: &[T]) -> T {
    let (row, row_end) = row.as_chunks();
    let (w, w_end) = w.as_chunks();
    let mut sums = L::splat(T::default());
    for (x, w) in row.iter().zip(w) {
        sums = sums.add(L::load(x).multiply(L::load(w)));
    }
    if !row_end.is_empty() {
        sums = sums.add(L::load_start(row_end).multiply(L::load_start(w_end)));
    }
    sums.fold()
}
