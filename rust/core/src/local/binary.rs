//! Binary randomized response.

use super::Range;
use crate::error::Result;
use crate::noise::{Bernoulli, Fixed, Seed, Stream, coins, rounded};
use crate::params::Epsilon;
use crate::run::Run;

/// The probability with which binary randomized response keeps a bit: e^epsilon / (1 + e^epsilon), rounded towards 1/2
/// to a multiple of 2^-64.
pub fn truth_probability(epsilon: Epsilon) -> Fixed {
    let advantage = (epsilon.capped() / 2.0).tanh() / 2.0;
    Fixed((1 << 63) + Fixed::certainly_below(advantage).0.min((1 << 63) - 1))
}

/// Binary randomized response, in place: each bit is kept with probability [`truth_probability`] and flipped otherwise.
///
/// Guarantee: pure epsilon-DP for each bit on its own, whatever the other bits are.
///
/// Cost: one byte of the stream for each bit, and rarely more.
pub fn randomized_response(bits: &mut [u8], epsilon: Epsilon, seed: &Seed, run: Run<'_>) -> Result<()> {
    let truth = Bernoulli::fixed(truth_probability(epsilon));
    coins(bits, &truth, Stream::Response, seed, run, |bits, truths| {
        bits.iter_mut().zip(truths).for_each(|(bit, truth)| *bit ^= truth ^ 1);
    })
}

/// Randomized response to numbers in a range: a number's position in [0, 1] is rounded to 1 with exactly that
/// probability, else to 0, and [`randomized_response`] answers with the bit, which is written to `bits`. The mean of
/// the numbers follows from the answers as that of bits does.
///
/// Guarantee: pure epsilon-DP for each number on its own, whatever the other numbers are.
///
/// Cost: two bytes of the stream for each number, and rarely more.
pub fn rounded_response(
    numbers: &[f64],
    range: Range,
    bits: &mut [u8],
    epsilon: Epsilon,
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    rounded(numbers, |number| range.position(number), bits, Stream::Bernoulli, seed, run)?;
    randomized_response(bits, epsilon, seed, run)
}
