//! Sums of integer features over records, by class or times a target, and of their products.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::map::{FeatureMap, Records, Workspace};
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::run::Run;
use crate::simd::{
    Blocks, Cut, PANEL, Real, add_blocks, add_multiples, add_to_classes, lower_entries, mirror, pack_panels,
};

/// The finest unit of features is 2^-26: their squares and a sum of two of them are exact in doubles.
pub const MOST_BITS: u32 = 26;

/// The bits of doubles, and those of sums.
const EXACT: u32 = 53;
const WHOLE: u32 = 62;

/// What is known of the records beside their features.
#[derive(Clone, Copy)]
pub enum Labels<'a> {
    /// The class of each.
    Classes {
        /// One class for each record, from 0 on.
        codes: &'a [i64],
        /// The number of classes.
        classes: usize,
    },
    /// A number for each, cut to [-1, 1]; NaN counts as 0.
    Targets(&'a [f64]),
}

impl Labels<'_> {
    fn check(&self, records: usize) -> Result<()> {
        let labels = match self {
            Labels::Classes { codes, .. } => codes.len(),
            Labels::Targets(targets) => targets.len(),
        };
        if labels != records {
            return Err(Error::Shape(format!("y has length {labels}, but X has {records} records")));
        }
        match *self {
            Labels::Classes { codes, classes } if !codes.iter().all(|&code| (code as u64) < classes as u64) => {
                Err(Error::Parameter(format!("codes hold something else, but each must lie in [0, {classes})")))
            }
            _ => Ok(()),
        }
    }

    fn classes(&self) -> usize {
        if let Labels::Classes { classes, .. } = *self { classes } else { 1 }
    }

    fn exact_bits(&self, bits: u32, second: bool) -> u32 {
        if second || matches!(self, Labels::Targets(_)) { 2 * bits } else { bits }
    }
}

/// The sums. Features are integers in units of 2^-bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the features of each class, class by class; or the sum of all features times the targets, which are
    /// integers in units of 2^-bits, too.
    pub first: Vec<i64>,
    /// The sum of the products of every two features, row by row, if it is wanted.
    pub second: Option<Vec<i64>>,
    /// The number of records in each class; the number of all with targets.
    pub counts: Vec<i64>,
}

/// Adds up the features of records. Every row counts by its integer features, of norm at most 2^bits; a row whose
/// features are not finite, or overflow, counts as zero.
///
/// The sums are exact, and therefore the same in any order of the records and on any number of threads.
///
/// Cost: that of the features, a pass over them, and half of their product with themselves if it is wanted. Memory:
/// that of the sums in two kinds for each thread.
pub fn add_up<T: Real>(
    records: Records<'_, T>,
    map: &FeatureMap<'_>,
    labels: Labels<'_>,
    bits: u32,
    second: bool,
    run: Run<'_>,
) -> Result<Sums> {
    map.check(records)?;
    labels.check(records.len())?;
    check_bits(records.len(), bits)?;
    let work = Work::new(records, map, labels, bits, second);
    let parts = if run.parallel() { rayon::current_num_threads() } else { 1 };
    let blocks = records.len().div_ceil(work.rows);
    let mut parts = (0..parts.min(blocks).max(1)).map(|_| Part::new(&work)).collect::<Result<Vec<Part>>>()?;
    let next = AtomicUsize::new(0);
    run.try_for_each_chunk(&mut parts, 1, |_, parts| {
        parts.iter_mut().try_for_each(|part| part.take_blocks(&work, &next, run))
    })?;
    let mut parts = parts.into_iter();
    // Not reached without a part: there is at least one.
    let mut sums = parts.next().ok_or_else(|| Error::System("there is no part".into()))?.sums;
    for part in parts {
        add_to(&mut sums.first, &part.sums.first);
        if let (Some(sum), Some(more)) = (&mut sums.second, &part.sums.second) {
            add_to(sum, more);
        }
    }
    sums.second = sums.second.map(|lower| mirror(&lower, map.columns())).transpose()?;
    sums.counts = counts(labels, records.len())?;
    Ok(sums)
}

fn check_bits(records: usize, bits: u32) -> Result<()> {
    let room = usize::BITS - records.saturating_sub(1).leading_zeros();
    if (1..=MOST_BITS).contains(&bits) && 2 * bits + room <= WHOLE {
        return Ok(());
    }
    let rule = format!("it must lie in [1, {MOST_BITS}], and n times 4^bits be at most 2^{WHOLE} for n = {records}");
    Err(Error::parameter("bits", bits, &rule))
}

fn counts(labels: Labels<'_>, records: usize) -> Result<Vec<i64>> {
    let mut counts: Vec<i64> = zeros(Some(labels.classes()))?;
    match labels {
        Labels::Classes { codes, .. } => codes.iter().for_each(|&code| counts[code as usize] += 1),
        Labels::Targets(_) => counts[0] = records as i64,
    }
    Ok(counts)
}

fn add_to(sums: &mut [i64], more: &[i64]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// What is to be added up.
struct Work<'a, T> {
    records: Records<'a, T>,
    map: &'a FeatureMap<'a>,
    labels: Labels<'a>,
    second: bool,
    columns: usize,
    cut: Cut,
    /// What targets are multiplied with.
    unit: f64,
    /// The number of rows whose sums are exact in doubles, and the number of rows taken at a time.
    exact: usize,
    rows: usize,
}

impl<'a, T: Real> Work<'a, T> {
    fn new(records: Records<'a, T>, map: &'a FeatureMap<'a>, labels: Labels<'a>, bits: u32, second: bool) -> Self {
        // No product of two integers is above 4^bits, since no row is longer than 2^bits.
        let exact = 1usize << (EXACT - labels.exact_bits(bits, second)).min(31);
        let (columns, unit) = (map.columns(), (1u64 << bits) as f64);
        Work { records, map, labels, second, columns, cut: map.cut(bits), unit, exact, rows: exact.min(map.rows()) }
    }
}

/// What one thread adds up: sums of doubles as long as they are exact, then of integers.
struct Part {
    sums: Sums,
    first: Vec<f64>,
    second: Vec<f64>,
    /// Rows in the doubles.
    pending: usize,
    workspace: Workspace,
    rows: Vec<f64>,
    panels: Vec<f64>,
    factors: Vec<f64>,
}

impl Part {
    fn new<T: Real>(work: &Work<'_, T>) -> Result<Part> {
        let first = work.columns.checked_mul(work.labels.classes());
        let second = if work.second { lower_entries(work.columns) } else { Some(0) };
        let whole = if work.second { Some(zeros(second)?) } else { None };
        let panels = if work.second { work.columns.div_ceil(PANEL) * PANEL * work.rows } else { 0 };
        Ok(Part {
            sums: Sums { first: zeros(first)?, second: whole, counts: Vec::new() },
            first: zeros(first)?,
            second: zeros(second)?,
            pending: 0,
            workspace: Workspace::new(work.map)?,
            rows: zeros(work.columns.checked_mul(work.rows))?,
            panels: zeros(Some(panels))?,
            factors: zeros(Some(work.rows))?,
        })
    }

    /// Adds blocks of rows that no other part has taken, until there are none.
    fn take_blocks<T: Real>(&mut self, work: &Work<'_, T>, next: &AtomicUsize, run: Run<'_>) -> Result<()> {
        loop {
            run.check()?;
            let start = next.fetch_add(1, Ordering::Relaxed) * work.rows;
            if start >= work.records.len() {
                break;
            }
            let rows = work.rows.min(work.records.len() - start);
            if self.pending + rows > work.exact {
                self.flush();
            }
            self.add(work, start, rows, run)?;
            self.pending += rows;
        }
        self.flush();
        Ok(())
    }

    fn add<T: Real>(&mut self, work: &Work<'_, T>, start: usize, count: usize, run: Run<'_>) -> Result<()> {
        let (isa, columns) = (run.isa, work.columns);
        let rows = &mut self.rows[..count * columns];
        let entries = work.records.part(start, count, isa)?;
        self.workspace.fill(work.map, entries, work.cut, isa, rows);
        match work.labels {
            Labels::Classes { codes, .. } => {
                add_to_classes(isa, rows, columns, &codes[start..][..count], &mut self.first);
            }
            Labels::Targets(targets) => {
                let targets = &targets[start..][..count];
                let cut =
                    |target: f64| if target.is_nan() { 0.0 } else { (target.clamp(-1.0, 1.0) * work.unit).trunc() };
                self.factors.iter_mut().zip(targets).for_each(|(factor, &target)| *factor = cut(target));
                add_multiples(isa, rows, columns, &self.factors[..count], &mut self.first);
            }
        }
        if work.second {
            let panels = &mut self.panels[..columns.div_ceil(PANEL) * PANEL * count];
            pack_panels(rows, columns, panels);
            add_blocks(isa, panels, panels, count, Blocks::Lower, &mut self.second);
        }
        Ok(())
    }

    /// Moves the doubles to the integers.
    fn flush(&mut self) {
        move_to(&mut self.sums.first, &mut self.first);
        if let Some(second) = &mut self.sums.second {
            move_to(second, &mut self.second);
        }
        self.pending = 0;
    }
}

fn move_to(integers: &mut [i64], doubles: &mut [f64]) {
    for (integer, double) in integers.iter_mut().zip(doubles) {
        *integer += *double as i64;
        *double = 0.0;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::{Isa, Scaling};
    use crate::statistics::{Linear, write_features};

    fn real(rng: &mut Rng) -> f64 {
        (rng.below(2001) as f64 - 1000.0) / 1000.0
    }

    /// Sums of 128 bits over the features, which are looked at row by row.
    #[test]
    fn sums_are_those_of_the_integers() {
        let mut rng = Seed::reproducible([9; 32]).stream(Stream::Speed, 0);
        for (inputs, outputs, n, bits, waves, constant) in [
            (3, 0, 300, 26, false, false),
            (8, 0, 129, 24, false, true),
            (5, 9, 1000, 20, false, true),
            (130, 17, 200, 26, true, false),
            (257, 7, 50, 1, true, true),
        ] {
            let mut reals = |count| (0..count).map(|_| real(&mut rng)).collect::<Vec<f64>>();
            let (entries, targets) = (reals(inputs * n), reals(n));
            let (matrix, offset) = (reals(inputs * outputs), reals(outputs));
            let codes: Vec<i64> = targets.iter().map(|t| (t * 1000.0) as i64 & 1).collect();
            let (low, high) = (vec![-0.9; inputs], vec![0.8; inputs]);
            let (origin, factor) = (vec![0.1; inputs], vec![0.7; inputs]);
            let scaling = Scaling { low: &low, high: &high, origin: &origin, factor: &factor };
            let linear = (outputs > 0).then(|| Linear::new(&matrix, &offset).unwrap());
            let map = FeatureMap::new(scaling, linear, waves, constant).unwrap();
            let records = Records::new(&entries, inputs).unwrap();
            let columns = map.columns();
            let scale = (1u64 << bits) as f64;
            let mut phi = vec![0.0; n * columns];
            write_features(records, &map, bits, &mut phi, Run::alone(Isa::Portable)).unwrap();
            let q: Vec<i128> = phi.iter().map(|x| (x * scale) as i128).collect();
            let mut first = vec![0i128; 2 * columns];
            let (mut cross, mut second) = (vec![0i128; columns], vec![0i128; columns * columns]);
            for (i, row) in q.chunks_exact(columns).enumerate() {
                assert!(row.iter().map(|q| q * q).sum::<i128>() <= 1 << (2 * bits));
                for j in 0..columns {
                    first[codes[i] as usize * columns + j] += row[j];
                    cross[j] += row[j] * (targets[i] * scale) as i128;
                    for k in 0..columns {
                        second[j * columns + k] += row[j] * row[k];
                    }
                }
            }
            let wide = |sums: &[i64]| sums.iter().map(|&sum| i128::from(sum)).collect::<Vec<i128>>();
            for isa in Isa::ALL {
                for wanted in [false, true] {
                    let by_class = Labels::Classes { codes: &codes, classes: 2 };
                    let sums = add_up(records, &map, by_class, bits, wanted, Run::alone(isa)).unwrap();
                    assert_eq!(wide(&sums.first), first);
                    assert_eq!(sums.second.map(|sums| wide(&sums)), wanted.then(|| second.clone()));
                    assert_eq!(sums.counts.iter().sum::<i64>(), n as i64);
                    let sums = add_up(records, &map, Labels::Targets(&targets), bits, wanted, Run::alone(isa)).unwrap();
                    assert_eq!(wide(&sums.first), cross);
                }
            }
        }
    }

    #[test]
    fn units_whose_sums_could_overflow_are_refused() {
        for (n, bits, fits) in
            [(0, 26, true), (1, 26, true), (1 << 10, 26, true), (1025, 26, false), (1 << 20, 21, true)]
        {
            assert_eq!(check_bits(n, bits).is_ok(), fits, "{n} {bits}");
        }
        assert!(check_bits(1, 0).is_err() && check_bits(1, 27).is_err());
    }
}
