//! Equations that come in parts, of which no more is held than d + 64 rows and the span of those before.
//!
//! Rows wait until there are d + 64 of them, and are then eliminated together. Once the rank is full, nothing waits any
//! more: a row that comes is verified against the only solution where it lies. Until then rows are reduced by the span,
//! many at a time, and what is left of those outside of it joins. Which rows wait, and when they are eliminated, changes
//! nothing: the span of rows has one form.

use super::matrix::BitMatrix;
use super::row_space::RowSpace;
use super::solve::{SLACK, System, solve, violated};
use crate::error::Result;
use crate::memory::reserve;
use crate::run::Run;
use crate::simd::BLOCK;

/// Rows that are copied before the caller is asked whether to go on.
const ROWS_AT_ONCE: usize = 1024;

/// Equations of several systems in the same unknowns, one system after the other.
///
/// # Examples
///
/// x0 + x1 = 1, and then x1 = 1 and x0 + x1 = 0.
///
/// ```
/// use hdp_fast_core::gf2::{BitMatrix, Equations, System};
/// use hdp_fast_core::run::Run;
/// use hdp_fast_core::simd::Isa;
///
/// let run = Run::alone(Isa::detect()?);
/// let mut equations = Equations::new(2)?;
/// for (rows, rhs) in [(vec![0b11], 0b1), (vec![0b10, 0b11], 0b01)] {
///     let matrix = BitMatrix::from_words(rows.len(), 2, rows)?;
///     equations.add(&System { matrix: &matrix, rows: None, ones: false, rhs: Some(&[rhs]) }, run)?;
/// }
/// let space = equations.into_space(run)?;
/// assert!(space.rank() == 2 && !space.consistent());
/// # Ok::<(), hdp_fast_core::Error>(())
/// ```
pub struct Equations {
    /// The span of all rows that do not wait.
    space: RowSpace,
    /// Rows that wait, as those of a matrix, and their packed right-hand sides.
    rows: Vec<u64>,
    rhs: Vec<u64>,
    count: usize,
}

impl Equations {
    /// No equations yet.
    pub fn new(unknowns: usize) -> Result<Equations> {
        RowSpace::new(unknowns).map(Equations::after)
    }

    /// The equations of a space, which others follow.
    pub fn after(space: RowSpace) -> Equations {
        Equations { space, rows: Vec::new(), rhs: Vec::new(), count: 0 }
    }

    /// The number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.space.unknowns()
    }

    /// The number of rows that wait.
    pub fn waiting(&self) -> usize {
        self.count
    }

    /// Whether so many rows more might be enough for an elimination.
    pub fn eliminates(&self, more: usize) -> bool {
        self.space.nullity() > 0 && self.count.saturating_add(more) >= self.most()
    }

    /// Adds the equations of a system. After an error the equations must be dropped: some may be lost.
    ///
    /// Cost: d bit operations an equation and no copy, where the rank is full. Otherwise a copy of each; and for d + 64
    /// of them together a product with the d x nullity matrix of null vectors, an elimination in as many unknowns as the
    /// nullity, and a product by which the form is reduced.
    pub fn add(&mut self, system: &System<'_>, run: Run<'_>) -> Result<()> {
        system.check(self.space.unknowns())?;
        if self.count == 0 && self.space.rank() == 0 && self.space.consistent() && system.len() >= self.most() {
            // Many at once need not be copied.
            self.space = solve(system, run)?.row_space(run)?;
            return Ok(());
        }
        let mut next = 0;
        while next < system.len() {
            if self.space.nullity() == 0 {
                return self.verify(system, next, run);
            }
            let end = system.len().min(next + self.most() - self.count).min(next + ROWS_AT_ONCE);
            self.wait(system, next, end)?;
            run.check()?;
            next = end;
            if self.count == self.most() {
                self.eliminate(run)?;
            }
        }
        Ok(())
    }

    /// The span of all of them.
    ///
    /// Cost: an elimination of those that wait, as in [`Equations::add`].
    pub fn into_space(mut self, run: Run<'_>) -> Result<RowSpace> {
        if self.count > 0 {
            self.eliminate(run)?;
        }
        Ok(self.space)
    }

    /// The most rows that wait: with 64 more than there are unknowns, random ones have full rank but for a probability of
    /// 2^-64.
    fn most(&self) -> usize {
        self.space.unknowns() + SLACK
    }

    /// Copies equations `from..to` of a system to those that wait.
    fn wait(&mut self, system: &System<'_>, from: usize, to: usize) -> Result<()> {
        let words = self.space.unknowns().div_ceil(BLOCK);
        reserve(&mut self.rows, (to - from) * words)?;
        self.rows.resize((self.count + to - from) * words, 0);
        self.rhs.resize((self.count + to - from).div_ceil(BLOCK), 0);
        for i in from..to {
            system.read_coefficients(i, &mut self.rows[self.count * words..][..words]);
            self.rhs[self.count / BLOCK] |= system.value(i) << (self.count % BLOCK);
            self.count += 1;
        }
        Ok(())
    }

    fn eliminate(&mut self, run: Run<'_>) -> Result<()> {
        let unknowns = self.space.unknowns();
        let matrix = BitMatrix::from_words(self.count, unknowns, std::mem::take(&mut self.rows))?;
        let rhs = std::mem::take(&mut self.rhs);
        self.count = 0;
        let space = std::mem::replace(&mut self.space, RowSpace::new(unknowns)?);
        self.space = space.extend(&matrix, &rhs, run)?;
        Ok(())
    }

    /// Checks equations from `from` on against the only solution. Once 0 = 1 follows, every equation does; the pass is
    /// made all the same, since its absence would show in the running time.
    fn verify(&mut self, system: &System<'_>, from: usize, run: Run<'_>) -> Result<()> {
        let rows = system.rows_from(from)?;
        let rest = System { rows: rows.as_deref().or(system.rows), ..*system };
        if !violated(&rest, self.space.at_pivots(), 1, run)?.is_empty() {
            self.space.contradict();
        }
        Ok(())
    }
}

impl RowSpace {
    /// The span of these equations and of those of a system.
    ///
    /// Cost: that of [`Equations::add`].
    pub fn add(&self, system: &System<'_>, run: Run<'_>) -> Result<RowSpace> {
        let mut equations = Equations::after(self.clone());
        equations.add(system, run)?;
        equations.into_space(run)
    }
}
