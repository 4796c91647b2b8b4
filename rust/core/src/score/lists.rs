//! Hypotheses given one by one, each as a list of features.

use super::columns::Columns;
use crate::error::{Error, Result};
use crate::gf2::BitMatrix;
use crate::memory::{collected, reserve, room, zeros};
use crate::run::Run;
use crate::simd::{Literal, add_conjunctions, add_parities};

/// Hypotheses that are conjunctions of literals, or parities of features, given as lists.
pub struct Lists {
    features: usize,
    parity: bool,
    /// List i is `literals[starts[i]..starts[i + 1]]`.
    starts: Vec<usize>,
    literals: Vec<Literal>,
}

/// Lists between two looks at the cancel flag.
const BETWEEN_CHECKS: usize = 1 << 10;

/// Words that a task of `predict` makes at a time.
const WORDS: usize = 1 << 8;

impl Lists {
    /// Conjunctions: hypothesis i demands the features in row i of `ones` to be 1 and those in row i of `zeros` to be
    /// 0.
    pub fn conjunctions(ones: &BitMatrix, zeros: &BitMatrix) -> Result<Lists> {
        let shapes = [(ones.rows(), ones.columns()), (zeros.rows(), zeros.columns())];
        if shapes[0] != shapes[1] {
            return Err(Error::Shape(format!(
                "zeros has shape {:?}, but it must be that of ones, {:?}",
                shapes[1], shapes[0]
            )));
        }
        Lists::new(ones, Some(zeros))
    }

    /// Parities: hypothesis i is the sum over GF(2) of the features in row i.
    pub fn parities(masks: &BitMatrix) -> Result<Lists> {
        Lists::new(masks, None)
    }

    fn new(ones: &BitMatrix, zeros: Option<&BitMatrix>) -> Result<Lists> {
        let (mut starts, mut literals) = (room(ones.rows().checked_add(1))?, Vec::new());
        starts.push(0);
        for i in 0..ones.rows() {
            for (matrix, flip) in [(Some(ones), 0), (zeros, u64::MAX)] {
                for column in matrix.into_iter().flat_map(|matrix| members(matrix, i)) {
                    reserve(&mut literals, 1)?;
                    literals.push(Literal { column, flip });
                }
            }
            starts.push(literals.len());
        }
        Ok(Lists { features: ones.columns(), parity: zeros.is_none(), starts, literals })
    }

    /// The number of hypotheses.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of literals of all hypotheses together.
    pub fn literals(&self) -> usize {
        self.literals.len()
    }

    fn list(&self, i: usize) -> &[Literal] {
        &self.literals[self.starts[i]..self.starts[i + 1]]
    }

    /// The number of records that each hypothesis gets wrong; `labels` is a matrix of one row.
    ///
    /// Cost: for 64 records, one word operation for each literal and one for the count.
    pub fn errors(&self, columns: &Columns, labels: &BitMatrix, run: Run<'_>) -> Result<Vec<i64>> {
        columns.check(self.features, labels)?;
        let add = if self.parity { add_parities } else { add_conjunctions };
        let lists = collected((0..self.count()).map(|i| self.list(i)))?;
        columns.sum(lists.len(), labels, run, |records, errors| {
            for (lists, errors) in lists.chunks(BETWEEN_CHECKS).zip(errors.chunks_mut(BETWEEN_CHECKS)) {
                run.check()?;
                add(run.isa, records, lists, errors);
            }
            Ok(())
        })
    }

    /// The prediction of hypothesis i for every record.
    ///
    /// Cost: one step for every record, and for 64 records one word operation for each literal.
    pub fn predict(&self, i: usize, columns: &Columns, run: Run<'_>) -> Result<Vec<u8>> {
        if self.features != columns.features() {
            let text = format!("X has {} features, but the hypotheses have {}", columns.features(), self.features);
            return Err(Error::Shape(text));
        }
        if i >= self.count() {
            return Err(Error::parameter("i", i, &format!("there are {} hypotheses", self.count())));
        }
        let list = self.list(i);
        let word = |i: usize| {
            let words = list.iter().map(|literal| columns.word(i, literal.column) ^ literal.flip);
            if self.parity {
                words.fold(0, |sum, word| sum ^ word)
            } else {
                words.fold(u64::MAX, |all, word| all & word)
            }
        };
        let mut values: Vec<u8> = zeros(Some(columns.records()))?;
        run.try_for_each_chunk(&mut values, 64 * WORDS, |chunk, values| {
            for (i, values) in (chunk * WORDS..).zip(values.chunks_mut(64)) {
                let word = word(i);
                values.iter_mut().enumerate().for_each(|(r, value)| *value = (word >> r & 1) as u8);
            }
            Ok(())
        })?;
        Ok(values)
    }
}

fn members(matrix: &BitMatrix, i: usize) -> impl Iterator<Item = usize> + '_ {
    (0..matrix.columns()).filter(move |&j| matrix.bit(i, j) == 1)
}
