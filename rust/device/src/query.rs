//! What a question asks of a record: whether a hypothesis is wrong, or a query, a product of terms in [0, 1].

use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, interval, require};
use crate::json::{Json, Object};
use crate::models::{Hypothesis, Score, Shift, mark};

/// What a person knows: features and a label, NaN where one is missing.
#[derive(Clone, Debug)]
pub struct Record {
    /// The features.
    pub features: Vec<f64>,
    /// The label.
    pub label: f64,
}

/// What is asked of a record. Whatever the record is, there is an answer in [0, 1].
#[derive(Clone, Debug)]
pub enum Inquiry {
    /// Whether a hypothesis is wrong. One that cannot be applied is.
    Wrong(Hypothesis),
    /// A query. One that does not fit the record has the answer 0.
    Query(Query),
}

/// What of a record an answer depends on.
#[derive(Clone, Debug)]
pub struct Needed {
    /// Whether it depends on each column.
    pub columns: Vec<bool>,
    /// Whether it depends on the label.
    pub label: bool,
}

/// A product of terms.
#[derive(Clone, Debug)]
pub struct Query(Vec<Term>);

#[derive(Clone, Debug)]
enum Term {
    Label,
    ScoreAbove(Score, f64),
    LossSaved { score: Score, shift: Shift, low: f64, high: f64 },
    Between { column: u64, low: f64, high: f64 },
    Value { column: u64, low: f64, high: f64 },
    Wrong(Hypothesis),
    Worse(Hypothesis, Hypothesis),
    Weighted(Vec<(Query, f64)>),
}

// Reading -----------------------------------------------------------------------------------------

impl Inquiry {
    /// Reads a query or the description of a hypothesis.
    pub fn read(object: &Object<'_>) -> Result<Inquiry> {
        match object.text("kind")? {
            "query" => Query::read(object).map(Inquiry::Query),
            _ => Hypothesis::read(object).map(Inquiry::Wrong),
        }
    }
}

impl Query {
    fn read(object: &Object<'_>) -> Result<Query> {
        object.check_names("query", &["kind", "terms"], &[])?;
        require(object.text("kind")? == "query", "kind", "it must be query")?;
        let terms = object.list("terms")?;
        require(!terms.is_empty(), "terms", "there must be one")?;
        object.each("terms", &mut |term| Term::read(term.object("terms")?)).map(Query)
    }
}

impl Term {
    fn read(object: &Object<'_>) -> Result<Term> {
        let kind = object.text("kind")?;
        let names = |names: &[&str]| object.check_names(kind, names, &["kind"]);
        let ends = || interval(object.number("low")?, object.number("high")?, kind);
        let model = |name: &str| Hypothesis::read_in_query(object.need(name)?);
        match kind {
            "label" => {
                names(&[])?;
                Ok(Term::Label)
            }
            "score_above" => {
                names(&["model", "threshold"])?;
                Ok(Term::ScoreAbove(Score::read(object.need("model")?, 0)?, object.number("threshold")?))
            }
            "loss_saved" => {
                names(&["model", "knots", "shifts", "low", "high"])?;
                let ((low, high), shift) = (ends()?, Shift::read(object)?);
                Ok(Term::LossSaved { score: Score::read(object.need("model")?, 0)?, shift, low, high })
            }
            "between" => {
                names(&["column", "low", "high"])?;
                let end = |name: &str, none: f64| match object.need(name)? {
                    Json::Null => Ok(none),
                    end => end.number(name),
                };
                let (low, high) = (end("low", f64::NEG_INFINITY)?, end("high", f64::INFINITY)?);
                require(low < high, kind, "low must be below high")?;
                require(low.is_finite() || high.is_finite(), kind, "low or high must be a number")?;
                Ok(Term::Between { column: object.integer("column")?, low, high })
            }
            "value" => {
                names(&["column", "low", "high"])?;
                let (low, high) = ends()?;
                Ok(Term::Value { column: object.integer("column")?, low, high })
            }
            "wrong" => {
                names(&["model"])?;
                model("model").map(Term::Wrong)
            }
            "worse" => {
                names(&["model", "other"])?;
                Ok(Term::Worse(model("model")?, model("other")?))
            }
            "weighted" => {
                names(&["queries"])?;
                let pairs = object.list("queries")?;
                require(!pairs.is_empty(), "queries", "there must be one")?;
                object.each("queries", &mut Term::read_pair).map(Term::Weighted)
            }
            _ => Err(Refusal::new("kind", &alloc::format!("this device does not know the term {kind}"))),
        }
    }

    fn read_pair(pair: &Json<'_>) -> Result<(Query, f64)> {
        let [query, weight] = pair.list("queries")? else {
            return Err(Refusal::new("queries", "each must be a query and its weight"));
        };
        let weight = weight.number("weight")?;
        require((0.0..=1.0).contains(&weight), "weight", "it must lie in [0, 1]")?;
        Ok((Query::read(query.object("queries")?)?, weight))
    }
}

// Answering ---------------------------------------------------------------------------------------

impl Inquiry {
    /// The true answer about a record, in [0, 1].
    pub fn answer(&self, record: &Record) -> f64 {
        match self {
            Inquiry::Wrong(hypothesis) => is_wrong(hypothesis, record),
            Inquiry::Query(query) if query.fits(record.features.len()) => query.answer(record),
            Inquiry::Query(_) => 0.0,
        }
    }

    /// What of a record of so many columns the answer depends on.
    pub fn needed(&self, columns: usize) -> Needed {
        let mut needed = Needed { columns: vec![false; columns], label: false };
        match self {
            Inquiry::Wrong(hypothesis) => needed.add_mistakes(hypothesis),
            Inquiry::Query(query) => query.mark(&mut needed),
        }
        needed
    }
}

impl Needed {
    fn add_mistakes(&mut self, hypothesis: &Hypothesis) {
        hypothesis.mark(&mut self.columns);
        self.label = true;
    }
}

/// 1 unless the prediction is the label; a label that is missing is none.
fn is_wrong(hypothesis: &Hypothesis, record: &Record) -> f64 {
    f64::from(u8::from(hypothesis.predict(&record.features) != Some(record.label)))
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Clips a number to [0, 1]; one that is not finite becomes 0.
fn clip(number: f64) -> f64 {
    if number.is_finite() { number.clamp(0.0, 1.0) } else { 0.0 }
}

impl Query {
    fn fits(&self, d: usize) -> bool {
        self.0.iter().all(|term| term.fits(d))
    }

    fn answer(&self, record: &Record) -> f64 {
        self.0.iter().fold(1.0, |product, term| product * term.answer(record))
    }

    fn mark(&self, needed: &mut Needed) {
        self.0.iter().for_each(|term| term.mark(needed));
    }
}

impl Term {
    fn fits(&self, d: usize) -> bool {
        match self {
            Term::Label => true,
            Term::ScoreAbove(score, _) | Term::LossSaved { score, .. } => score.fits(d),
            Term::Between { column, .. } | Term::Value { column, .. } => *column < d as u64,
            Term::Wrong(hypothesis) => hypothesis.fits(d),
            Term::Worse(one, other) => one.fits(d) && other.fits(d),
            Term::Weighted(parts) => parts.iter().all(|(query, _)| query.fits(d)),
        }
    }

    fn answer(&self, record: &Record) -> f64 {
        let entry = |column: u64| {
            let place = usize::try_from(column).ok();
            place.and_then(|place| record.features.get(place)).copied().unwrap_or(f64::NAN)
        };
        match self {
            Term::Label => clip(record.label),
            Term::ScoreAbove(score, threshold) => {
                truth(score.value(&record.features).is_some_and(|score| score > *threshold))
            }
            Term::LossSaved { score, shift, low, high } => {
                let saved = score.value(&record.features).map(|score| save_loss(score, shift, clip(record.label)));
                let saved = saved.filter(|saved| !saved.is_nan() && record.label.is_finite()).unwrap_or(0.0);
                (saved.clamp(*low, *high) - low) / (high - low)
            }
            Term::Between { column, low, high } => {
                let x = entry(*column);
                truth(x.is_finite() && *low <= x && x < *high)
            }
            Term::Value { column, low, high } => clip((entry(*column).clamp(*low, *high) - low) / (high - low)),
            Term::Wrong(hypothesis) => is_wrong(hypothesis, record),
            Term::Worse(one, other) => (1.0 + is_wrong(one, record) - is_wrong(other, record)) / 2.0,
            Term::Weighted(parts) => {
                clip(parts.iter().fold(0.0, |sum, (query, weight)| sum + weight * query.answer(record)))
            }
        }
    }

    fn mark(&self, needed: &mut Needed) {
        match self {
            Term::Label => needed.label = true,
            Term::ScoreAbove(score, _) => score.mark(&mut needed.columns),
            Term::LossSaved { score, .. } => {
                score.mark(&mut needed.columns);
                needed.label = true;
            }
            Term::Between { column, .. } | Term::Value { column, .. } => mark(*column, &mut needed.columns),
            Term::Wrong(hypothesis) => needed.add_mistakes(hypothesis),
            Term::Worse(one, other) => {
                needed.add_mistakes(one);
                needed.add_mistakes(other);
            }
            Term::Weighted(parts) => parts.iter().for_each(|(query, _)| query.mark(needed)),
        }
    }
}

/// How much log loss, log(1 + exp(s)) - y s, a shift of the score s saves, however large it is.
fn save_loss(score: f64, shift: &Shift, label: f64) -> f64 {
    let shift = shift.at(score);
    let moved = score + shift;
    let rise = if score > 0.0 { larger(shift, -score) } else { larger(moved, 0.0) };
    let tail = |score: f64| libm::log1p(libm::exp(-score.abs()));
    label * shift - (rise + (tail(moved) - tail(score)))
}

/// The larger number, and NaN if one is.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}
