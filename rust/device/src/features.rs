//! Public maps from records to features of norm at most 1, and inner products, in the order of sums of `hdp_fast`'s core.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, require};
use crate::json::{Json, Object};

/// The bounds of what is multiplied and squared without overflow.
pub(crate) const LEAST: f64 = 1e-30;
pub(crate) const MOST: f64 = 1e30;

/// Running sums that stand beside each other, and are folded in one order at the end.
const LANES: usize = 8;

/// A row whose norm is found to be larger is shrunk to it.
const LONGEST: f64 = 1.0 - 1.0 / (1u64 << 40) as f64;

/// Features are multiples of 2^-26. With a constant, the unit is the largest integer whose square is at most 2^51.
const UNIT: f64 = (1u64 << 26) as f64;
const UNIT_BESIDE_CONSTANT: f64 = 47_453_132.0;

/// A map to features, as `hdp_fast.learners.FeatureMap` writes it.
#[derive(Clone, Debug)]
pub struct FeatureMap {
    low: Vec<f64>,
    high: Vec<f64>,
    origin: Vec<f64>,
    factor: Vec<f64>,
    matrix: Option<(Vec<Vec<f64>>, Vec<f64>)>,
    waves: bool,
    constant: bool,
}

impl FeatureMap {
    /// Reads what FeatureMap.to_json wrote.
    pub(crate) fn read(object: &Object<'_>) -> Result<FeatureMap> {
        const NAMES: [&str; 9] =
            ["format", "version", "origin", "factor", "bounds", "matrix", "offset", "waves", "constant"];
        object.check_names("features", &NAMES, &[])?;
        let form = object.text("format")? == "hdp_fast.feature_map" && object.integer("version")? == 1;
        require(form, "features", "they must have format hdp_fast.feature_map, version 1")?;
        let (origin, factor) = (object.numbers("origin")?, object.numbers("factor")?);
        let d = origin.len();
        require(d > 0 && factor.len() == d, "factor", "there must be one for each entry of origin")?;
        within("origin", &origin)?;
        within("factor", &factor)?;
        require(factor.iter().all(|&factor| factor >= 0.0), "factor", "each must be at least 0")?;
        let (low, high) = bounds(object, d)?;
        let matrix = matrix(object, d)?;
        let (waves, constant) = (object.flag("waves")?, object.flag("constant")?);
        Ok(FeatureMap { low, high, origin, factor, matrix, waves, constant })
    }

    /// The number of entries of a record.
    pub(crate) fn inputs(&self) -> usize {
        self.origin.len()
    }

    /// The number of features.
    pub(crate) fn columns(&self) -> usize {
        let outputs = self.matrix.as_ref().map_or(self.origin.len(), |(_, offset)| offset.len());
        outputs * if self.waves { 2 } else { 1 } + usize::from(self.constant)
    }

    /// The features of a record of finite entries, of which there are as many as inputs.
    pub(crate) fn features(&self, record: &[f64]) -> Vec<f64> {
        let mut row = self.scaled(record);
        if let Some((matrix, offset)) = &self.matrix {
            let scaled = core::mem::replace(&mut row, offset.clone());
            for (x, weights) in scaled.iter().zip(matrix) {
                row.iter_mut().zip(weights).for_each(|(sum, weight)| *sum += x * weight);
            }
        }
        if self.waves {
            let sines = row.iter().map(|turns| cosine(turns - 0.25));
            row = row.iter().map(|&turns| cosine(turns)).chain(sines).collect();
        }
        self.cut(&mut row);
        row
    }

    fn scaled(&self, record: &[f64]) -> Vec<f64> {
        let bounds = self.low.iter().zip(&self.high);
        let places = self.origin.iter().zip(&self.factor);
        let mut row = Vec::with_capacity(record.len());
        for ((&x, (&low, &high)), (origin, factor)) in record.iter().zip(bounds).zip(places) {
            let x = if x >= low { x } else { low };
            let x = if x > high { high } else { x };
            row.push((x - origin) * factor);
        }
        row
    }

    /// Shrinks a row to norm 1 and cuts it towards zero to multiples of 2^-26; one that is no number, or still too long,
    /// becomes 0.
    fn cut(&self, row: &mut Vec<f64>) {
        let unit = if self.constant { UNIT_BESIDE_CONSTANT } else { UNIT };
        let squared = products(row, row).0;
        let norm = libm::sqrt(squared);
        let factor = if norm <= LONGEST { unit } else { unit * (LONGEST / norm) };
        row.iter_mut().for_each(|x| *x = libm::trunc(*x * factor));
        let fits = products(row, row).0 <= unit * unit && squared < f64::INFINITY;
        row.iter_mut().for_each(|x| *x = if fits { *x / UNIT + 0.0 } else { 0.0 });
        if self.constant {
            row.push(if fits { unit / UNIT } else { 0.0 });
        }
    }
}

fn within(name: &str, numbers: &[f64]) -> Result<()> {
    require(numbers.iter().all(|x| x.abs() <= MOST), name, "each must lie in [-1e30, 1e30]")
}

fn bounds(object: &Object<'_>, d: usize) -> Result<(Vec<f64>, Vec<f64>)> {
    let Some(pairs) = object.some("bounds") else { return Ok((vec![f64::NEG_INFINITY; d], vec![f64::INFINITY; d])) };
    let pairs = pairs.list("bounds")?;
    let end = |end: &Json<'_>, none: f64| if matches!(end, Json::Null) { Ok(none) } else { end.number("bounds") };
    let rule = "there must be a low and a high one for each entry of origin";
    require(pairs.len() == d, "bounds", rule)?;
    let (mut lows, mut highs) = (Vec::new(), Vec::new());
    for pair in pairs {
        let [low, high] = pair.list("bounds")? else { return Err(Refusal::new("bounds", rule)) };
        let (low, high) = (end(low, f64::NEG_INFINITY)?, end(high, f64::INFINITY)?);
        require(low <= high, "bounds", "no low may be above its high")?;
        lows.push(low);
        highs.push(high);
    }
    Ok((lows, highs))
}

type Matrix = (Vec<Vec<f64>>, Vec<f64>);

fn matrix(object: &Object<'_>, d: usize) -> Result<Option<Matrix>> {
    let Some(rows) = object.some("matrix") else {
        require(object.some("offset").is_none(), "offset", "without a matrix it must be null")?;
        return Ok(None);
    };
    let rows: Vec<Vec<f64>> = rows.each("matrix", &mut |row| row.numbers("matrix"))?;
    let outputs = rows.first().map_or(0, Vec::len);
    let even = rows.len() == d && outputs > 0 && rows.iter().all(|row| row.len() == outputs);
    require(even, "matrix", "there must be a row for each entry of origin, all of one length")?;
    rows.iter().try_for_each(|row| within("matrix", row))?;
    let offset = object.some("offset").map(|offset| offset.numbers("offset")).transpose()?;
    let offset = offset.unwrap_or_else(|| vec![0.0; outputs]);
    require(offset.len() == outputs, "offset", "there must be one for each column of the matrix")?;
    within("offset", &offset)?;
    Ok(Some((rows, offset)))
}

/// The inner product of a row with w and with itself, in eight sums.
fn products(row: &[f64], w: &[f64]) -> (f64, f64) {
    let (mut inner, mut squared) = ([0.0; LANES], [0.0; LANES]);
    for (row, w) in row.chunks(LANES).zip(w.chunks(LANES)) {
        for ((x, w), (inner, squared)) in row.iter().zip(w).zip(inner.iter_mut().zip(&mut squared)) {
            *inner += x * w;
            *squared += x * x;
        }
    }
    (folded(inner), folded(squared))
}

fn folded([a, b, c, d, e, f, g, h]: [f64; LANES]) -> f64 {
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// Weights times a row that is shrunk to a norm; 0 where it underflows or overflows.
pub(crate) fn shrunk_product(row: &[f64], weights: &[f64], bound: f64) -> f64 {
    let (inner, squared) = products(row, weights);
    let score = inner * (bound / libm::sqrt(squared)).min(1.0);
    if squared >= f64::MIN_POSITIVE && score.is_finite() { score } else { 0.0 }
}

/// The Taylor coefficients of sin(2 pi t) at odd powers of t from 1 to 21; the rest is below 2e-18 for |t| <= 1/4.
pub const SINE: [f64; 11] = [
    core::f64::consts::TAU,
    -41.34170224039976,
    81.60524927607506,
    -76.70585975306139,
    42.058693944897655,
    -15.09464257682299,
    3.819952584848282,
    -0.7181223017785006,
    0.10422916220813984,
    -0.012031585942120627,
    0.0011309237482517963,
];

/// The cosine of an angle in turns.
fn cosine(turns: f64) -> f64 {
    let t = 0.25 - (turns - libm::rint(turns)).abs();
    let square = t * t;
    SINE.iter().rev().skip(1).fold(SINE[10], |value, coefficient| value * square + coefficient) * t
}
