//! Records packed by feature: bit r of a column is record r.

use super::sum::sum;
use crate::error::{Error, Result};
use crate::gf2::BitMatrix;
use crate::memory::zeros;
use crate::run::Run;
use crate::simd::{LONG, Records, SHORT, ask_for_huge_pages, prefetch, turn};

/// Words of a column in one block at most: 16,384 records, of which some hundred columns fit the second cache.
const WIDEST: usize = 256;

/// Blocks to aim at where there are few records, so that threads have something to share.
const BLOCKS: usize = 8;

/// Records whose bits are turned at a time.
const ABREAST: usize = 64 * SHORT;

/// Records of bits, stored in blocks. A block holds its records column by column, and then a column of ones.
pub struct Columns {
    records: usize,
    features: usize,
    width: usize,
    data: Vec<u64>,
}

impl Columns {
    /// Packs the rows of a matrix, one record each, by columns.
    ///
    /// Cost: one pass, and the memory of the matrix once more.
    pub fn pack(matrix: &BitMatrix, run: Run<'_>) -> Result<Columns> {
        Columns::of_places(matrix, matrix.rows(), run, |first, places| {
            places.iter_mut().zip(first..).for_each(|(place, row)| *place = row);
            Ok(())
        })
    }

    /// The same with the rows of these indices, in their order. An index may come several times.
    ///
    /// Cost: a random read for every index, and the memory of as many rows.
    pub fn taken(matrix: &BitMatrix, numbers: &[i64], run: Run<'_>) -> Result<Columns> {
        Columns::of_places(matrix, numbers.len(), run, |first, places| {
            let numbers = &numbers[first..][..places.len()];
            // A way out in the loop that reads rows would keep the processor from looking ahead.
            if let Some(wrong) = numbers.iter().find(|&&number| number as u64 >= matrix.rows() as u64) {
                return Err(Error::parameter("indices", wrong, &format!("there are {} rows", matrix.rows())));
            }
            // What another thread has changed since is not beyond the rows either.
            let last = matrix.rows().saturating_sub(1);
            places.iter_mut().zip(numbers).for_each(|(place, &number)| *place = last.min(number as usize));
            Ok(())
        })
    }

    /// Packs `records` rows, of which `places(first, out)` tells the numbers from the given one on.
    fn of_places(
        matrix: &BitMatrix,
        records: usize,
        run: Run<'_>,
        places: impl Fn(usize, &mut [usize]) -> Result<()> + Sync + Send,
    ) -> Result<Columns> {
        let (features, words) = (matrix.columns(), records.div_ceil(64));
        let share = words.div_ceil(BLOCKS).clamp(1, WIDEST);
        let width = share.next_multiple_of(if share < LONG { SHORT } else { LONG });
        let size = width.checked_mul(features + 1);
        let mut data = zeros(size.and_then(|size| size.checked_mul(words.div_ceil(width))))?;
        ask_for_huge_pages(&mut data);
        run.try_for_each_chunk(&mut data, width * (features + 1), |block, columns| {
            let (mut now, mut ahead) = ([0; ABREAST], [0; ABREAST]);
            let count = |word: usize| ABREAST.min(records.saturating_sub((block * width + word) * 64));
            places(block * width * 64, &mut ahead[..count(0)])?;
            for word in (0..width).step_by(SHORT) {
                std::mem::swap(&mut now, &mut ahead);
                let next = word + SHORT;
                let ahead = &mut ahead[..if next < width { count(next) } else { 0 }];
                places(records.min((block * width + next) * 64), ahead)?;
                fill(matrix, (&now[..count(word)], ahead), columns, (width, word), run);
            }
            Ok(())
        })?;
        Ok(Columns { records, features, width, data })
    }

    /// The records by rows again.
    ///
    /// Cost: one pass, and the memory of the columns once more.
    pub fn rows(&self, run: Run<'_>) -> Result<BitMatrix> {
        let words = self.features.div_ceil(64);
        BitMatrix::pack(self.records, self.features, run, |first, rows| {
            for (word, rows) in rows.chunks_mut(64 * words).enumerate() {
                for group in 0..words {
                    let mut tiles = [[0; SHORT]; 64];
                    for j in group * 64..self.features.min(group * 64 + 64) {
                        tiles[j % 64][0] = self.word(first / 64 + word, j);
                    }
                    turn(run.isa, &mut tiles);
                    rows.chunks_exact_mut(words).zip(&tiles).for_each(|(row, tile)| row[group] = tile[0]);
                }
            }
            Ok(())
        })
    }

    /// The number of records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// The number of features.
    pub fn features(&self) -> usize {
        self.features
    }

    /// An error unless hypotheses and labels are made for these records.
    pub(super) fn check(&self, features: usize, labels: &BitMatrix) -> Result<()> {
        if features != self.features {
            let text = format!("X has {} features, but the hypotheses have {features}", self.features);
            return Err(Error::Shape(text));
        }
        if labels.columns() != self.records {
            let text = format!("y has length {}, but X has {} records", labels.columns(), self.records);
            return Err(Error::Shape(text));
        }
        Ok(())
    }

    /// The values of feature j for the records from 64 i on.
    pub(super) fn word(&self, i: usize, j: usize) -> u64 {
        let (block, word) = (i / self.width, i % self.width);
        self.data[(block * (self.features + 1) + j) * self.width + word]
    }

    /// The sums over all blocks of what `add` adds for each hypothesis.
    ///
    /// Cost: beside that of `add`, eight bytes a hypothesis and thread.
    pub(super) fn sum(
        &self,
        hypotheses: usize,
        labels: &BitMatrix,
        run: Run<'_>,
        add: impl Fn(Records<'_>, &mut [i64]) -> Result<()> + Sync + Send,
    ) -> Result<Vec<i64>> {
        let size = self.width * (self.features + 1);
        let blocks = self.data.len() / size;
        let mut padded = zeros(blocks.checked_mul(self.width))?;
        let words = labels.row(0);
        padded[..words.len()].copy_from_slice(words);
        sum(hypotheses, blocks, run, |block, sums| {
            let columns = &self.data[block * size..][..size];
            let labels = &padded[block * self.width..][..self.width];
            add(Records { width: self.width, columns, labels }, sums)
        })
    }
}

/// Fills a word of each tile abreast, in every column of a block of this width, with the rows of these numbers. Those
/// ahead are asked for.
fn fill(
    matrix: &BitMatrix,
    (now, ahead): (&[usize], &[usize]),
    columns: &mut [u64],
    (width, word): (usize, usize),
    run: Run<'_>,
) {
    let all_records = columns.len() - width;
    for (tile, column) in columns[all_records + word..][..SHORT].iter_mut().enumerate() {
        let count = now.len().saturating_sub(64 * tile).min(64);
        *column = if count == 0 { 0 } else { u64::MAX >> (64 - count) };
    }
    ahead.iter().for_each(|&number| prefetch(matrix.row(number)));
    for group in 0..matrix.words() {
        let mut tiles = [[0; SHORT]; 64];
        for (tile, numbers) in now.chunks(64).enumerate() {
            tiles.iter_mut().zip(numbers).for_each(|(row, &number)| row[tile] = matrix.row(number)[group]);
        }
        turn(run.isa, &mut tiles);
        for (j, tiles) in (group * 64..matrix.columns()).zip(&tiles) {
            columns[j * width + word..][..SHORT].copy_from_slice(tiles);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn columns_hold_the_rows_that_were_taken_and_give_them_back() {
        let mut rng = Seed::reproducible([12; 32]).stream(Stream::Speed, 0);
        for (rows, features) in [(1, 0usize), (1, 1), (63, 64), (64, 65), (511, 3), (513, 130), (5000, 7)] {
            let words: Vec<u64> = (0..rows * features.div_ceil(64)).map(|_| rng.next_u64()).collect();
            let matrix = BitMatrix::from_words(rows, features, words).unwrap();
            let numbers: Vec<i64> = (0..rows + 70).map(|_| rng.below(rows as u64) as i64).collect();
            for isa in Isa::ALL {
                let run = Run::alone(isa);
                assert!(Columns::pack(&matrix, run).unwrap().rows(run).unwrap() == matrix);
                let taken = Columns::taken(&matrix, &numbers, run).unwrap();
                let again = taken.rows(run).unwrap();
                assert_eq!((taken.records(), again.rows()), (numbers.len(), numbers.len()));
                for (i, &number) in numbers.iter().enumerate() {
                    assert_eq!(again.row(i), matrix.row(number as usize), "{} {rows} {features}", isa.name());
                }
            }
            for wrong in [-1, rows as i64, i64::MIN, i64::MAX] {
                let numbers = [&numbers[..], &[wrong]].concat();
                let error = Columns::taken(&matrix, &numbers, Run::alone(Isa::Portable)).map(drop).unwrap_err();
                assert!(error.to_string().contains("rows"), "{error}");
            }
        }
    }
}
