//! Hypotheses and scores as questions carry them, evaluated for one record.
//!
//! They are those of `hdp_fast.learners`, with the same sums in the same order. A record that a model does not take has
//! no prediction, and no score.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, require};
use crate::features::{FeatureMap, LEAST, MOST, shrunk_product};
use crate::json::{Json, Object};

/// Calibrations of calibrations; no one makes so many.
const DEEPEST: usize = 10;

/// A function from records to labels.
#[derive(Clone, Debug)]
pub enum Hypothesis {
    /// Whether some bits have their values, or the opposite.
    Conjunction(Literals, bool),
    /// The sum of some bits over GF(2), plus a constant.
    Parity(Vec<u64>, bool),
    /// Whether so many literals hold.
    AtLeast(u64, Literals),
    /// Whether weights times the record plus a bias is at least 0.
    Halfspace(Vec<f64>, f64),
    /// Whether an additive score is at least 0.
    Additive(Additive),
    /// The class with the largest score.
    Softmax(Vec<Vec<f64>>),
    /// Whether more than half of its hypotheses say 1.
    Vote(Vec<Hypothesis>),
    /// Whether a score is at least 0.
    Calibrated(Box<Score>),
    /// Whether a score is above 0: statistics, where a query asks whether they are wrong.
    Statistics(Box<Score>),
}

/// Bits and the values that they must have.
type Literals = Vec<(u64, bool)>;

/// A bias, and for each feature cuts in their order with the sums of their weights.
#[derive(Clone, Debug)]
pub struct Additive {
    columns: Vec<(Vec<f64>, Vec<f64>)>,
    bias: f64,
}

/// A function from records to numbers that grow with the probability of the label 1.
#[derive(Clone, Debug)]
pub enum Score {
    /// Weights times the record, shrunk to a norm, plus a bias.
    Linear(Vec<f64>, f64, f64),
    /// Additive.
    Additive(Additive),
    /// Weights times the features that a map makes of the record.
    Statistics(FeatureMap, Vec<f64>),
    /// The log-odds of votes.
    Vote(Vec<Hypothesis>),
    /// A score plus a shift.
    Calibrated(Box<Score>, Shift),
}

/// What is added to a score: linear between the knots, constant beyond them.
#[derive(Clone, Debug)]
pub struct Shift {
    knots: Vec<f64>,
    shifts: Vec<f64>,
}

// Reading -----------------------------------------------------------------------------------------

const FEATURES: &str = "features";

fn columns(object: &Object<'_>) -> Result<Vec<u64>> {
    object.each(FEATURES, &mut |entry| entry.integer(FEATURES))
}

fn literals(object: &Object<'_>) -> Result<Literals> {
    let mut bit = |value: &Json<'_>| match value.integer("values") {
        Ok(bit @ 0..=1) => Ok(bit == 1),
        _ => Err(Refusal::new("values", "each must be 0 or 1")),
    };
    let (features, values) = (columns(object)?, object.each("values", &mut bit)?);
    require(features.len() == values.len(), "values", "there must be one for each of the features")?;
    Ok(features.into_iter().zip(values).collect())
}

fn some_numbers(name: &str, value: &Json<'_>) -> Result<Vec<f64>> {
    let numbers = value.numbers(name)?;
    require(!numbers.is_empty(), name, "there must be one for each feature")?;
    Ok(numbers)
}

impl Shift {
    /// Reads the knots and shifts of an object.
    pub(crate) fn read(object: &Object<'_>) -> Result<Shift> {
        let (knots, shifts) = (object.numbers("knots")?, object.numbers("shifts")?);
        require(knots.windows(2).all(|pair| pair[0] < pair[1]), "knots", "they must increase")?;
        require(knots.len() == shifts.len(), "shifts", "there must be one for each of the knots")?;
        Ok(Shift { knots, shifts })
    }
}

impl Additive {
    fn read(object: &Object<'_>) -> Result<Additive> {
        let cuts = object.each("cuts", &mut |cuts| cuts.numbers("cuts"))?;
        let weights = object.each("weights", &mut |weights| weights.numbers("weights"))?;
        require(!cuts.is_empty() && cuts.len() == weights.len(), "cuts", "there must be a list for each feature")?;
        let mut columns = Vec::new();
        for (cuts, weights) in cuts.into_iter().zip(weights) {
            require(cuts.windows(2).all(|pair| pair[0] <= pair[1]), "cuts", "those of a feature must not fall")?;
            require(cuts.len() == weights.len(), "weights", "there must be one for each cut of each feature")?;
            let mut sum = 0.0;
            let mut sums = vec![sum];
            for weight in weights {
                sum += weight;
                sums.push(sum);
            }
            columns.push((cuts, sums));
        }
        Ok(Additive { columns, bias: object.number("bias")? })
    }
}

impl Hypothesis {
    /// Reads a description as `hdp_fast.learners.predictor` does.
    pub(crate) fn read(object: &Object<'_>) -> Result<Hypothesis> {
        Hypothesis::read_kind(object, false)
    }

    /// The same for a query, which may ask about statistics, too.
    pub(crate) fn read_in_query(value: &Json<'_>) -> Result<Hypothesis> {
        let object = value.object("model")?;
        match object.text("kind")? {
            "statistics" => Ok(Hypothesis::Statistics(Box::new(Score::read(value, 0)?))),
            _ => Hypothesis::read(object),
        }
    }

    fn read_kind(object: &Object<'_>, votes: bool) -> Result<Hypothesis> {
        let kind = object.text("kind")?;
        let names = |names: &[&str]| object.check_names(kind, names, &["kind"]);
        require(!votes || !matches!(kind, "vote" | "softmax" | "calibrated"), kind, "it cannot vote")?;
        match kind {
            "conjunction" => {
                names(&["features", "values", "complement"])?;
                Ok(Hypothesis::Conjunction(literals(object)?, object.flag("complement")?))
            }
            "parity" => {
                names(&["features", "complement"])?;
                Ok(Hypothesis::Parity(columns(object)?, object.flag("complement")?))
            }
            "at_least" => {
                names(&["threshold", "features", "values"])?;
                Ok(Hypothesis::AtLeast(object.integer("threshold")?, literals(object)?))
            }
            "halfspace" | "linear" => {
                names(&["weights", "bias"])?;
                Ok(Hypothesis::Halfspace(some_numbers("weights", object.need("weights")?)?, object.number("bias")?))
            }
            "additive" => {
                names(&["cuts", "weights", "bias"])?;
                Ok(Hypothesis::Additive(Additive::read(object)?))
            }
            "softmax" => {
                names(&["weights"])?;
                let rows = object.each("weights", &mut |row| some_numbers("weights", row))?;
                let even = rows.windows(2).all(|pair| pair[0].len() == pair[1].len());
                require(rows.len() >= 2 && even, "weights", "there must be as many for each of two classes or more")?;
                Ok(Hypothesis::Softmax(rows))
            }
            "vote" => {
                names(&["hypotheses"])?;
                let mut read = |voter: &Json<'_>| Hypothesis::read_kind(voter.object("hypotheses")?, true);
                let voters = object.each("hypotheses", &mut read)?;
                require(!voters.is_empty(), "hypotheses", "there must be one")?;
                Ok(Hypothesis::Vote(voters))
            }
            "calibrated" => Ok(Hypothesis::Calibrated(Box::new(Score::read_kind(object, 0)?))),
            _ => Err(Refusal::new("kind", &format!("this device does not know the hypothesis {kind}"))),
        }
    }
}

impl Score {
    /// Reads a description as `hdp_fast.learners.score_of` does, so many calibrations deep.
    pub(crate) fn read(value: &Json<'_>, depth: usize) -> Result<Score> {
        Score::read_kind(value.object("model")?, depth)
    }

    fn read_kind(object: &Object<'_>, depth: usize) -> Result<Score> {
        let kind = object.text("kind")?;
        match kind {
            "linear" | "halfspace" => {
                object.check_names(kind, &["kind", "weights", "bias"], &["norm_bound"])?;
                let bound = object.some("norm_bound").map(|bound| bound.number("norm_bound")).transpose()?;
                let bound = bound.unwrap_or(MOST);
                require((LEAST..=MOST).contains(&bound), "norm_bound", "it must lie in [1e-30, 1e30]")?;
                let weights = some_numbers("weights", object.need("weights")?)?;
                Ok(Score::Linear(weights, object.number("bias")?, bound))
            }
            "statistics" => {
                object.check_names(kind, &["kind", "features", "weights"], &[])?;
                let map = FeatureMap::read(object.need("features")?.object("features")?)?;
                let weights = some_numbers("weights", object.need("weights")?)?;
                require(weights.len() == map.columns(), "weights", "there must be one for each feature of the map")?;
                Ok(Score::Statistics(map, weights))
            }
            "calibrated" => {
                object.check_names(kind, &["kind", "model", "knots", "shifts"], &[])?;
                require(depth + 1 < DEEPEST + 1, "model", "it must be the description of a score, at most 10 deep")?;
                let inner = Score::read(object.need("model")?, depth + 1)?;
                Ok(Score::Calibrated(Box::new(inner), Shift::read(object)?))
            }
            _ => match Hypothesis::read_kind(object, false)? {
                Hypothesis::Softmax(rows) => match rows.as_slice() {
                    [zero, one] => {
                        let weights = one.iter().zip(zero).map(|(one, zero)| one - zero).collect();
                        Ok(Score::Linear(weights, 0.0, MOST))
                    }
                    _ => Err(Refusal::new("softmax", "a score needs two classes")),
                },
                Hypothesis::Additive(additive) => Ok(Score::Additive(additive)),
                Hypothesis::Vote(voters) => Ok(Score::Vote(voters)),
                single => Ok(Score::Vote(vec![single])),
            },
        }
    }
}

// Evaluating --------------------------------------------------------------------------------------

fn all_finite(record: &[f64]) -> bool {
    record.iter().all(|x| x.is_finite())
}

/// Whether all entries are 0 or 1, as hypotheses of bits need them.
fn all_bits(record: &[f64]) -> bool {
    record.iter().all(|&x| x == 0.0 || x == 1.0)
}

fn bit(record: &[f64], column: u64) -> Option<bool> {
    record.get(usize::try_from(column).ok()?).map(|&x| x == 1.0)
}

fn holds(record: &[f64], &(column, value): &(u64, bool)) -> bool {
    bit(record, column) == Some(value)
}

impl Hypothesis {
    /// Whether it takes records of so many features, whatever they are.
    pub(crate) fn fits(&self, d: usize) -> bool {
        let inside = |column: u64| column < d as u64;
        match self {
            Hypothesis::Conjunction(literals, _) | Hypothesis::AtLeast(_, literals) => {
                literals.iter().all(|&(column, _)| inside(column))
            }
            Hypothesis::Parity(columns, _) => columns.iter().all(|&column| inside(column)),
            Hypothesis::Halfspace(weights, _) => weights.len() == d,
            Hypothesis::Additive(additive) => additive.columns.len() == d,
            Hypothesis::Softmax(rows) => rows.iter().all(|row| row.len() == d),
            Hypothesis::Vote(voters) => voters.iter().all(|voter| voter.fits(d)),
            Hypothesis::Calibrated(score) | Hypothesis::Statistics(score) => score.fits(d),
        }
    }

    /// The label of a record, if it fits and all its entries are finite, and bits where bits are needed.
    pub(crate) fn predict(&self, record: &[f64]) -> Option<f64> {
        if !self.fits(record.len()) || !all_finite(record) {
            return None;
        }
        let label = match self {
            Hypothesis::Conjunction(literals, complement) => {
                bits(record)?;
                literals.iter().all(|literal| holds(record, literal)) != *complement
            }
            Hypothesis::Parity(columns, complement) => {
                bits(record)?;
                // A bit that is named twice counts once.
                let mut named = vec![false; record.len()];
                columns.iter().for_each(|&column| mark(column, &mut named));
                record.iter().zip(named).fold(*complement, |sum, (&x, named)| sum != (named && x == 1.0))
            }
            Hypothesis::AtLeast(threshold, literals) => {
                bits(record)?;
                literals.iter().filter(|literal| holds(record, literal)).count() as u64 >= *threshold
            }
            Hypothesis::Halfspace(weights, bias) => {
                let sum = weights.iter().zip(record).fold(0.0, |sum, (weight, x)| sum + weight * x);
                sum + bias >= 0.0
            }
            Hypothesis::Additive(additive) => additive.score(record) >= 0.0,
            Hypothesis::Softmax(rows) => return Some(largest_class(rows, record) as f64),
            Hypothesis::Vote(voters) => 2 * count_votes(voters, record)? > voters.len(),
            Hypothesis::Calibrated(score) => score.value(record)? >= 0.0,
            Hypothesis::Statistics(score) => score.value(record)? > 0.0,
        };
        Some(f64::from(u8::from(label)))
    }

    /// Marks the columns that it reads.
    pub(crate) fn mark(&self, needed: &mut [bool]) {
        match self {
            Hypothesis::Conjunction(literals, _) | Hypothesis::AtLeast(_, literals) => {
                literals.iter().for_each(|&(column, _)| mark(column, needed));
            }
            Hypothesis::Parity(columns, _) => columns.iter().for_each(|&column| mark(column, needed)),
            Hypothesis::Vote(voters) => voters.iter().for_each(|voter| voter.mark(needed)),
            Hypothesis::Calibrated(score) | Hypothesis::Statistics(score) => score.mark(needed),
            Hypothesis::Halfspace(..) | Hypothesis::Additive(_) | Hypothesis::Softmax(_) => needed.fill(true),
        }
    }
}

/// Marks one column.
pub(crate) fn mark(column: u64, needed: &mut [bool]) {
    if let Some(needed) = usize::try_from(column).ok().and_then(|column| needed.get_mut(column)) {
        *needed = true;
    }
}

fn bits(record: &[f64]) -> Option<()> {
    all_bits(record).then_some(())
}

fn count_votes(voters: &[Hypothesis], record: &[f64]) -> Option<usize> {
    voters.iter().try_fold(0, |votes, voter| Some(votes + usize::from(voter.predict(record)? == 1.0)))
}

/// The first class of the largest score, of a record whose largest entry becomes 1 so that no sum overflows; a score that
/// is no number counts as the largest.
fn largest_class(rows: &[Vec<f64>], record: &[f64]) -> usize {
    let largest = record.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let scale = if largest > 0.0 { largest } else { 1.0 };
    let score = |row: &Vec<f64>| row.iter().zip(record).fold(0.0, |sum, (weight, x)| sum + weight * (x / scale));
    let mut best = (0, f64::NEG_INFINITY);
    for (class, score) in rows.iter().map(score).enumerate() {
        if score.is_nan() {
            return class;
        }
        if score > best.1 {
            best = (class, score);
        }
    }
    best.0
}

impl Additive {
    fn score(&self, record: &[f64]) -> f64 {
        self.columns
            .iter()
            .zip(record)
            .filter(|((cuts, _), _)| !cuts.is_empty())
            .fold(self.bias, |score, ((cuts, sums), x)| {
                score + sums.get(cuts.partition_point(|cut| cut <= x)).copied().unwrap_or(0.0)
            })
    }
}

impl Score {
    /// Whether it takes records of so many features, whatever they are.
    pub(crate) fn fits(&self, d: usize) -> bool {
        match self {
            Score::Linear(weights, ..) => weights.len() == d,
            Score::Additive(additive) => additive.columns.len() == d,
            Score::Statistics(map, _) => map.inputs() == d,
            Score::Vote(voters) => voters.iter().all(|voter| voter.fits(d)),
            Score::Calibrated(score, _) => score.fits(d),
        }
    }

    /// The score of a record, if it fits and all its entries are finite, and bits where bits are needed.
    pub(crate) fn value(&self, record: &[f64]) -> Option<f64> {
        if !self.fits(record.len()) || !all_finite(record) {
            return None;
        }
        Some(match self {
            Score::Linear(weights, bias, bound) => shrunk_product(record, weights, *bound) + bias,
            Score::Additive(additive) => additive.score(record),
            Score::Statistics(map, weights) => shrunk_product(&map.features(record), weights, MOST) + 0.0,
            Score::Vote(voters) => {
                let votes = count_votes(voters, record)? as f64;
                libm::log((votes + 0.5) / (voters.len() as f64 - votes + 0.5))
            }
            Score::Calibrated(score, shift) => {
                let score = score.value(record)?;
                score + shift.at(score)
            }
        })
    }

    /// Marks the columns that it reads.
    pub(crate) fn mark(&self, needed: &mut [bool]) {
        match self {
            Score::Vote(voters) => voters.iter().for_each(|voter| voter.mark(needed)),
            Score::Calibrated(score, _) => score.mark(needed),
            Score::Linear(..) | Score::Additive(_) | Score::Statistics(..) => needed.fill(true),
        }
    }
}

impl Shift {
    /// The shift of a score that is a number: numpy's interpolation.
    pub(crate) fn at(&self, score: f64) -> f64 {
        let (knots, shifts) = (self.knots.as_slice(), self.shifts.as_slice());
        let after = knots.partition_point(|&knot| knot <= score);
        let get = |numbers: &[f64], i: usize| numbers.get(i).copied().unwrap_or(0.0);
        let Some(before) = after.checked_sub(1) else { return get(shifts, 0) };
        if after == knots.len() || get(knots, before) == score {
            return get(shifts, before);
        }
        let (from, to) = ((get(knots, before), get(shifts, before)), (get(knots, after), get(shifts, after)));
        let slope = (to.1 - from.1) / (to.0 - from.0);
        let shift = slope * (score - from.0) + from.1;
        if !shift.is_nan() {
            return shift;
        }
        let shift = slope * (score - to.0) + to.1;
        if shift.is_nan() && from.1 == to.1 { from.1 } else { shift }
    }
}
