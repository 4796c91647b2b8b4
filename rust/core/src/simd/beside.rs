//! What weights beside two bounds come to, as all arms fill it.

/// Weights of a step, and running sums, so that no addition waits for the one before it.
pub(super) const STEP: usize = 32;

/// Room for what an arm writes beyond the last open weight: the rest of a register.
pub(super) const SLACK: usize = 8;

/// Added to the bits of a number from 0 on, this sets the highest one if the number is infinite or NaN.
pub(super) const BEYOND: u64 = 1 << 52;

/// Two bounds, and a value between them that many weights may have.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The sum is that of the weights below this bound, which is above 0.
    pub low: f64,
    /// The weights above this bound are counted. It lies above `low`, or just below it so that no float is between.
    pub high: f64,
    /// Weights between the bounds that have this value are counted apart; NaN if there is none.
    pub tie: f64,
}

/// What weights beside bounds come to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Beside {
    pub(super) below: [f64; STEP],
    pub(super) above: u64,
    pub(super) ties: u64,
    pub(super) signs: u64,
}

impl Beside {
    /// The sum of the weights below both bounds.
    pub fn below(&self) -> f64 {
        self.below.iter().sum()
    }

    /// The number of weights above both bounds.
    pub fn above(&self) -> u64 {
        self.above
    }

    /// The number of weights that are the tie.
    pub fn ties(&self) -> u64 {
        self.ties
    }

    /// Whether a weight is negative, -0, infinite or NaN.
    pub fn suspect(&self) -> bool {
        self.signs >> 63 == 1
    }
}
