//! Public maps from records to features of norm at most 1, one row at a time.

use crate::error::{Error, Result};
use crate::memory::{room, zeros};
use crate::run::Run;
use crate::simd::{
    BLOCK_ENTRIES, Blocks, Cut, Isa, PANEL, Real, Scaling, add_blocks, check_finite, cut_rows, scale_rows, wave_rows,
};

/// The number of rows whose features are computed together, which stay in the second cache.
pub(super) const ROWS: usize = 128;

/// The most products that are computed between two looks at the cancel flag; wide records are taken in fewer rows.
const PRODUCTS: usize = 1 << 30;

/// The number of columns of records that are multiplied before the next: a panel of so many rows stays in the first
/// cache.
const DEPTH: usize = 128;

/// Blocks of rows whose features a thread computes before it takes others: so many that it makes room for its work
/// seldom.
const CHUNK: usize = 32;

/// Records of real numbers, read in place.
#[derive(Clone, Copy)]
pub struct Records<'a, T> {
    pub(super) entries: &'a [T],
    pub(super) columns: usize,
    finite: bool,
}

impl<'a, T: Real> Records<'a, T> {
    /// Records of `columns` entries each, row by row. There must be at least one column, and sums refuse an entry that is
    /// not finite.
    pub fn new(entries: &'a [T], columns: usize) -> Result<Records<'a, T>> {
        if columns == 0 || !entries.len().is_multiple_of(columns) {
            let entries = entries.len();
            return Err(Error::Shape(format!("{entries} entries are no rows of {columns}")));
        }
        Ok(Records { entries, columns, finite: true })
    }

    /// The same records, of which rows that are not finite count as zero instead.
    pub fn with_failures(self) -> Records<'a, T> {
        Records { finite: false, ..self }
    }

    /// The number of records.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.entries.len() / self.columns
    }

    /// At most so many records, from that number on, checked while they are in the cache.
    pub(super) fn part(&self, first: usize, count: usize, isa: Isa) -> Result<&'a [T]> {
        let entries = &self.entries[first * self.columns..(first + count).min(self.len()) * self.columns];
        let mut finite = true;
        if self.finite {
            check_finite(isa, entries, &mut finite);
        }
        if finite {
            Ok(entries)
        } else {
            Err(Error::Parameter("X has an infinite entry or NaN, but all must be finite".into()))
        }
    }
}

/// A matrix and a vector that is added to its product, stored as the kernel reads them.
pub struct Linear {
    outputs: usize,
    /// For each part of the columns of records, panels of eight outputs.
    panels: Vec<f64>,
    offset: Vec<f64>,
}

impl Linear {
    /// The map from x to A x + b, where `matrix` holds the transpose of A, row by row: a row for each entry of x, with
    /// an entry for each entry of `offset`, which is b.
    pub fn new(matrix: &[f64], offset: &[f64]) -> Result<Linear> {
        let outputs = offset.len();
        if outputs == 0 || matrix.is_empty() || !matrix.len().is_multiple_of(outputs) {
            let entries = matrix.len();
            return Err(Error::Shape(format!("a matrix of {entries} entries does not have {outputs} columns")));
        }
        let width = outputs.div_ceil(PANEL) * PANEL;
        let mut padded = zeros(Some(width))?;
        padded[..outputs].copy_from_slice(offset);
        let mut panels = room((matrix.len() / outputs).checked_mul(width))?;
        for part in matrix.chunks(DEPTH * outputs) {
            for start in (0..outputs).step_by(PANEL) {
                for row in part.chunks_exact(outputs) {
                    let entries = &row[start..(start + PANEL).min(outputs)];
                    panels.extend_from_slice(entries);
                    panels.resize(panels.len() + PANEL - entries.len(), 0.0);
                }
            }
        }
        Ok(Linear { outputs, panels, offset: padded })
    }

    fn panels(&self) -> usize {
        self.offset.len() / PANEL
    }

    fn inputs(&self) -> usize {
        self.panels.len() / self.offset.len()
    }
}

/// A public map to features: columns are scaled, multiplied with a matrix, and turned into waves, of which all but the
/// first may be left out. A constant may follow.
pub struct FeatureMap<'a> {
    scaling: Scaling<'a>,
    linear: Option<Linear>,
    waves: bool,
    constant: bool,
}

impl<'a> FeatureMap<'a> {
    /// A map. With `waves`, the outputs of the linear map are angles in turns, and the features are their cosines and
    /// then their sines. With `constant`, the others have a norm of at most sqrt(1/2), and sqrt(1/2) follows as the
    /// last one.
    pub fn new(scaling: Scaling<'a>, linear: Option<Linear>, waves: bool, constant: bool) -> Result<FeatureMap<'a>> {
        let columns = scaling.low.len();
        let lengths = [scaling.high.len(), scaling.origin.len(), scaling.factor.len()];
        let inputs = linear.as_ref().map_or(columns, Linear::inputs);
        if columns == 0 || lengths.iter().chain([&inputs]).any(|&length| length != columns) {
            return Err(Error::Shape(format!("{columns} columns do not fit {lengths:?} numbers and {inputs} inputs")));
        }
        Ok(FeatureMap { scaling, linear, waves, constant })
    }

    /// The number of features, a constant included.
    pub fn columns(&self) -> usize {
        let outputs = self.linear.as_ref().map_or(self.scaling.low.len(), |linear| linear.outputs);
        outputs * if self.waves { 2 } else { 1 } + usize::from(self.constant)
    }

    /// The number of rows that are taken at a time.
    pub(super) fn rows(&self) -> usize {
        let widest = self.columns().max(self.scaling.low.len());
        (PRODUCTS / widest.saturating_mul(widest)).clamp(1, ROWS)
    }

    /// Refuses records of another number of columns.
    pub(super) fn check<T: Real>(&self, records: Records<'_, T>) -> Result<()> {
        let (columns, wanted) = (records.columns, self.scaling.low.len());
        if columns == wanted {
            return Ok(());
        }
        Err(Error::Shape(format!("X has {columns} columns, but the features are made of {wanted}")))
    }

    /// How features are cut to integers in units of 2^-bits. With a constant, the unit is the largest integer c whose
    /// square is at most half of 4^bits: both the constant and the rest have a norm of at most c, so that no two rows
    /// of integers have a negative inner product, and none has a norm above 2^bits.
    pub(super) fn cut(&self, bits: u32) -> Cut {
        let whole = 1u64 << (2 * bits);
        let unit = if self.constant { (whole / 2).isqrt() } else { 1 << bits };
        Cut { unit: unit as f64, constant: self.constant }
    }
}

/// Room for the features of some rows.
pub(super) struct Workspace {
    scaled: Vec<f64>,
    panels: Vec<f64>,
    blocks: Vec<f64>,
    outputs: Vec<f64>,
}

impl Workspace {
    pub fn new(map: &FeatureMap<'_>) -> Result<Workspace> {
        let linear = map.linear.as_ref();
        let (inputs, width) = linear.map_or((0, 0), |linear| (linear.inputs(), linear.offset.len()));
        let scaled = if map.linear.is_some() || map.waves { map.scaling.low.len() } else { 0 };
        Ok(Workspace {
            scaled: zeros(scaled.checked_mul(ROWS))?,
            panels: zeros(Some(inputs.min(DEPTH) * ROWS))?,
            blocks: zeros(width.checked_mul(ROWS))?,
            outputs: zeros(if map.waves { width.checked_mul(ROWS) } else { Some(0) })?,
        })
    }

    /// Writes the integer features of at most [`ROWS`] rows; a row that fails is all zero.
    pub fn fill<T: Real>(&mut self, map: &FeatureMap<'_>, entries: &[T], cut: Cut, isa: Isa, out: &mut [f64]) {
        let columns = map.columns();
        self.put_features(map, entries, isa, columns, out);
        cut_rows(isa, out, columns, cut);
    }

    fn put_features<T: Real>(
        &mut self,
        map: &FeatureMap<'_>,
        entries: &[T],
        isa: Isa,
        columns: usize,
        out: &mut [f64],
    ) {
        let inputs = map.scaling.low.len();
        let rows = entries.len() / inputs;
        if map.linear.is_none() && !map.waves {
            scale_rows(isa, entries, map.scaling, columns, out);
            return;
        }
        scale_rows(isa, entries, map.scaling, inputs, &mut self.scaled);
        let Some(linear) = &map.linear else {
            wave_rows(isa, &self.scaled[..rows * inputs], inputs, columns, out);
            return;
        };
        self.multiply(linear, rows, isa);
        if map.waves {
            unpack(&self.blocks, linear, linear.outputs, &mut self.outputs[..rows * linear.outputs]);
            wave_rows(isa, &self.outputs[..rows * linear.outputs], linear.outputs, columns, out);
        } else {
            unpack(&self.blocks, linear, columns, out);
        }
    }

    /// Puts the products of the scaled rows with the matrix into the blocks.
    fn multiply(&mut self, linear: &Linear, rows: usize, isa: Isa) {
        let (inputs, groups) = (linear.inputs(), rows.div_ceil(PANEL));
        let blocks = &mut self.blocks[..groups * PANEL * linear.offset.len()];
        for group in blocks.chunks_exact_mut(PANEL * linear.offset.len()) {
            for (block, offset) in group.chunks_exact_mut(BLOCK_ENTRIES).zip(linear.offset.chunks_exact(PANEL)) {
                block.chunks_exact_mut(PANEL).for_each(|row| row.copy_from_slice(offset));
            }
        }
        let mut rest = &linear.panels[..];
        for start in (0..inputs).step_by(DEPTH) {
            let depth = DEPTH.min(inputs - start);
            let (right, later) = rest.split_at(depth * linear.offset.len());
            rest = later;
            let left = &mut self.panels[..groups * PANEL * depth];
            for (group, panel) in left.chunks_exact_mut(PANEL * depth).enumerate() {
                for lane in 0..PANEL {
                    // Rows beyond the last are those of calls before; nothing reads what becomes of them.
                    let row = &self.scaled[(group * PANEL + lane) * inputs + start..][..depth];
                    panel[lane..].iter_mut().step_by(PANEL).zip(row).for_each(|(entry, &x)| *entry = x);
                }
            }
            add_blocks(isa, left, right, depth, Blocks::All, blocks);
        }
    }
}

/// Copies blocks of products to rows of `stride`.
fn unpack(blocks: &[f64], linear: &Linear, stride: usize, out: &mut [f64]) {
    let rows = out.chunks_exact_mut(stride);
    for (i, out) in rows.enumerate() {
        let group = &blocks[i / PANEL * linear.panels() * BLOCK_ENTRIES..];
        let out = &mut out[..linear.outputs];
        for (block, out) in group.chunks_exact(BLOCK_ENTRIES).zip(out.chunks_mut(PANEL)) {
            out.copy_from_slice(&block[i % PANEL * PANEL..][..out.len()]);
        }
    }
}

/// Writes the features of every record as the sums see them, row by row: integers in units of 2^-bits.
///
/// Cost: the product of the records with the matrix, if there is one, and a few passes over records and features.
pub fn write_features<T: Real>(
    records: Records<'_, T>,
    map: &FeatureMap<'_>,
    bits: u32,
    out: &mut [f64],
    run: Run<'_>,
) -> Result<()> {
    map.check(records)?;
    let columns = map.columns();
    if columns.checked_mul(records.len()) != Some(out.len()) {
        let (entries, rows) = (out.len(), records.len());
        return Err(Error::Shape(format!("{entries} entries have no room for {rows} rows of {columns} features")));
    }
    let unit = 1.0 / (1u64 << bits) as f64;
    let rows = map.rows();
    let chunk = CHUNK * rows;
    run.try_for_each_chunk(out, chunk * columns, |i, out| {
        let mut workspace = Workspace::new(map)?;
        for (j, out) in out.chunks_mut(rows * columns).enumerate() {
            run.check()?;
            let entries = records.part(i * chunk + j * rows, rows, run.isa)?;
            workspace.fill(map, entries, map.cut(bits), run.isa, out);
            // Adding 0 takes the sign of zeros away.
            out.iter_mut().for_each(|q| *q = *q * unit + 0.0);
        }
        Ok(())
    })
}
