//! Disagreements of conjunctions and parities with labels, 64 records a word.
//!
//! Records are stored by columns, a bit each, so that a literal of a hypothesis is one operation for 64 records. Some
//! words of a hypothesis are computed at a time: enough to share the cost of a literal, few enough for the nearest
//! cache. The bodies are plain Rust; an arm is the same body compiled for an instruction set that counts bits in
//! vectors. The plain x86-64 target has no instruction for it: there a count takes about three times as long as with
//! AVX2 and four times as long as with AVX-512.
//!
//! ```text
//! for each list of literals:
//!     for each 64 (or 8) words of the records:
//!         value = all records (a conjunction) or 0 (a parity)
//!         for each literal: value &= column ^ flip, or value ^= column
//!         errors += ones in value ^ labels
//! ```

/// Widths are multiples of this number of words, and above [`LONG`] multiples of that.
pub const SHORT: usize = 8;

/// Words of a hypothesis that are computed at a time: enough to share the cost of a literal, few enough for the nearest
/// cache.
pub const LONG: usize = 64;

/// A feature of a block of records, or its negation.
#[derive(Clone, Copy, Debug)]
pub struct Literal {
    /// The index of the feature's column in the block.
    pub column: usize,
    /// All ones for a negation, zero otherwise.
    pub flip: u64,
}

/// A block of records by columns of `width` words each, one after the other, and the labels of the same records.
#[derive(Clone, Copy)]
pub struct Records<'a> {
    /// The number of words in a column, a multiple of [`SHORT`] or [`LONG`].
    pub width: usize,
    /// The columns. The last one has a one for every record; behind the last record every column is zero.
    pub columns: &'a [u64],
    /// One bit for each record, its label; behind the last record all bits are zero.
    pub labels: &'a [u64],
}

dispatched! {
    /// Adds to `errors[j]` the number of records whose label differs from the conjunction of `prefix`, one bit for each
    /// record, and column j.
    add_products(records: Records<'_>, prefix: &[u64], errors: &mut [i64]) = products
}

dispatched! {
    /// Adds to `errors[i]` the number of records whose label differs from the conjunction of list i.
    add_conjunctions(records: Records<'_>, lists: &[&[Literal]], errors: &mut [i64]) = listed::<false>
}

dispatched! {
    /// Adds to `errors[i]` the number of records whose label differs from the sum of list i over GF(2); flips are
    /// ignored.
    add_parities(records: Records<'_>, lists: &[&[Literal]], errors: &mut [i64]) = listed::<true>
}

#[inline(always)]
fn products(records: Records<'_>, prefix: &[u64], errors: &mut [i64]) {
    for (column, errors) in records.columns.chunks_exact(records.width).zip(errors) {
        let words = prefix.iter().zip(column).zip(records.labels);
        *errors += count(words.map(|((prefix, column), label)| prefix & column ^ label));
    }
}

#[inline(always)]
fn listed<const PARITY: bool>(records: Records<'_>, lists: &[&[Literal]], errors: &mut [i64]) {
    if records.width.is_multiple_of(LONG) {
        by_lanes::<PARITY, LONG>(records, lists, errors);
    } else {
        by_lanes::<PARITY, SHORT>(records, lists, errors);
    }
}

/// Loops of fixed length, which the compiler turns into vectors without a tail.
#[inline(always)]
fn by_lanes<const PARITY: bool, const LANE: usize>(records: Records<'_>, lists: &[&[Literal]], errors: &mut [i64]) {
    let Records { width, columns, labels } = records;
    let all_records = &columns[columns.len() - width..];
    for (list, errors) in lists.iter().zip(errors) {
        for (lane, labels) in labels.chunks_exact(LANE).enumerate() {
            let mut value = [0; LANE];
            if !PARITY {
                value.copy_from_slice(&all_records[lane * LANE..][..LANE]);
            }
            for literal in *list {
                let words = &columns[literal.column * width + lane * LANE..][..LANE];
                for (value, word) in value.iter_mut().zip(words) {
                    *value = if PARITY { *value ^ word } else { *value & (word ^ literal.flip) };
                }
            }
            *errors += count(value.iter().zip(labels).map(|(value, label)| value ^ label));
        }
    }
}

/// Ones in the words. Wrapping, since a checked sum would not be vectorized; it cannot pass 64 times their number.
#[inline(always)]
fn count(words: impl Iterator<Item = u64>) -> i64 {
    words.fold(0, |sum: i64, word| sum.wrapping_add(i64::from(word.count_ones())))
}
