//! What a value becomes before it leaves: local randomizers, from random bytes of the host.

use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, interval, require};
use crate::json::{Json, Object};
use crate::probability::{TWO_64, keep_probability, truth_probability};

/// Below this epsilon nothing but noise is left.
const LEAST_EPSILON: f64 = 1e-9;

/// The most categories, whose number of values half a word can tell apart.
const MOST_CATEGORIES: u64 = 1 << 31;

/// The most texts of categories, each of which is compared with all others.
const MOST_TEXTS: usize = 10_000;

/// What fills bytes at random, independently of everything else.
pub type Entropy<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

/// The next eight bytes as a number, the first byte the highest.
pub(crate) fn word(random: Entropy<'_>) -> Result<u64> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_be_bytes(bytes))
}

/// A randomizer that a device knows.
#[derive(Clone, Debug, PartialEq)]
pub enum Randomizer {
    /// A number rounded to a bit at random, which is kept or flipped.
    Binary {
        /// The privacy parameter of a report.
        epsilon: f64,
        /// The number that becomes 0.
        low: f64,
        /// The number that becomes 1.
        high: f64,
    },
    /// A category that is kept, or replaced by one of all.
    Kary {
        /// The privacy parameter of a report.
        epsilon: f64,
        /// The number of categories.
        k: u64,
    },
}

impl Randomizer {
    /// Reads what a randomizer's to_json wrote.
    pub fn read(object: &Object<'_>) -> Result<Randomizer> {
        let name = object.text("randomizer")?;
        match name {
            "BinaryResponse" => {
                object.check_names(name, &["randomizer", "epsilon", "bounds"], &[])?;
                let [low, high] = object.numbers("bounds")?[..] else {
                    return Err(Refusal::new("bounds", "they must be two numbers"));
                };
                let (low, high) = interval(low, high, "bounds")?;
                Ok(Randomizer::Binary { epsilon: epsilon(object)?, low, high })
            }
            "KaryResponse" => {
                object.check_names(name, &["randomizer", "k", "epsilon"], &[])?;
                let k = object.integer("k")?;
                require((2..=MOST_CATEGORIES).contains(&k), "k", "there must be from 2 to 2**31 categories")?;
                Ok(Randomizer::Kary { epsilon: epsilon(object)?, k })
            }
            _ => Err(Refusal::new("randomizer", &alloc::format!("this device does not know {name}"))),
        }
    }

    /// The privacy parameter of a report.
    pub fn epsilon(&self) -> f64 {
        match self {
            Randomizer::Binary { epsilon, .. } | Randomizer::Kary { epsilon, .. } => *epsilon,
        }
    }

    /// The probability of the step that keeps, times 2^64.
    pub fn keep(&self) -> u64 {
        match *self {
            Randomizer::Binary { epsilon, .. } => truth_probability(epsilon),
            Randomizer::Kary { epsilon, k } => keep_probability(epsilon, 1, k),
        }
    }

    /// A report about a value, which counts as the nearest one that is possible. Each report is at most e^epsilon times as
    /// likely for one value as for another.
    pub fn report(&self, value: f64, random: Entropy<'_>) -> Result<u64> {
        let (first, keep) = (word(random)?, self.keep());
        match *self {
            Randomizer::Binary { low, high, .. } => {
                let position = position((value - low) / (high - low));
                let bit = position >= 1.0 || first < (position * TWO_64) as u64;
                Ok(u64::from(bit == (word(random)? < keep)))
            }
            Randomizer::Kary { k, .. } if first < keep => Ok((value as u64).min(k - 1)),
            Randomizer::Kary { k, .. } => below(k, random),
        }
    }
}

fn epsilon(object: &Object<'_>) -> Result<f64> {
    let epsilon = object.number("epsilon")?;
    require(epsilon >= LEAST_EPSILON, "epsilon", "it must be at least 1e-9")?;
    Ok(epsilon)
}

/// The nearest number in [0, 1], and 0 for NaN.
fn position(number: f64) -> f64 {
    if number > 0.0 { number.min(1.0) } else { 0.0 }
}

/// A uniform integer below a bound: words beyond the last whole multiple of the bound are drawn again.
fn below(bound: u64, random: Entropy<'_>) -> Result<u64> {
    let uneven = (u64::MAX % bound + 1) % bound;
    loop {
        let drawn = word(random)?;
        if drawn <= u64::MAX - uneven {
            return Ok(drawn % bound);
        }
    }
}

/// The categories of a question, each with its text.
pub(crate) fn read_categories(value: &Json<'_>, randomizer: &Randomizer) -> Result<Vec<String>> {
    let mut categories: Vec<String> = Vec::new();
    require(value.list("categories")?.len() <= MOST_TEXTS, "categories", "there must be at most 10,000 texts")?;
    for text in value.list("categories")? {
        let text = text.text("categories")?;
        require(!text.is_empty() && text.trim() == text, "categories", "none may be empty or have spaces around it")?;
        require(categories.iter().all(|other| other != text), "categories", "they must differ")?;
        categories.push(text.into());
    }
    let k = match randomizer {
        Randomizer::Kary { k, .. } => *k,
        Randomizer::Binary { .. } => 0,
    };
    require(categories.len() as u64 == k, "categories", "there must be as many as the randomizer has")?;
    Ok(categories)
}
