//! Binary randomized response.

use super::Range;
use crate::error::Result;
use crate::noise::{Bernoulli, CHUNK, Fixed, Seed, Stream, round};
use crate::params::Epsilon;
use crate::run::Run;
use crate::simd::Isa;

/// The probability with which binary randomized response keeps a bit: e^epsilon / (1 + e^epsilon), rounded towards 1/2
/// to a multiple of 2^-64.
pub fn truth_probability(epsilon: Epsilon) -> Fixed {
    let advantage = (epsilon.capped() / 2.0).tanh() / 2.0;
    Fixed((1 << 63) + Fixed::certainly_below(advantage).0.min((1 << 63) - 1))
}

/// Binary randomized response to chunks of [`CHUNK`] bits.
pub struct BinaryResponse(Bernoulli);

impl BinaryResponse {
    /// Keeps each bit with probability [`truth_probability`].
    pub fn new(epsilon: Epsilon) -> BinaryResponse {
        BinaryResponse(Bernoulli::fixed(truth_probability(epsilon)))
    }

    /// Answers with the bits of a chunk, in place, and coins of the chunk's own.
    pub fn answer(&self, chunk: usize, bits: &mut [u8], seed: &Seed, isa: Isa) {
        let mut truths = [0; CHUNK];
        let truths = &mut truths[..bits.len()];
        self.0.fill(truths, isa, &mut seed.stream(Stream::Response, chunk as u64));
        bits.iter_mut().zip(truths).for_each(|(bit, truth)| *bit ^= *truth ^ 1);
    }
}

/// Binary randomized response, in place: each bit is kept with probability [`truth_probability`] and flipped otherwise.
///
/// Guarantee: pure epsilon-DP for each bit on its own, whatever the other bits are.
///
/// Cost: one byte of the stream for each bit, and rarely more.
pub fn randomized_response(bits: &mut [u8], epsilon: Epsilon, seed: &Seed, run: Run<'_>) -> Result<()> {
    let response = BinaryResponse::new(epsilon);
    run.try_for_each_chunk(bits, CHUNK, |chunk, bits| {
        response.answer(chunk, bits, seed, run.isa);
        Ok(())
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
    let response = BinaryResponse::new(epsilon);
    run.try_for_each_chunk(bits, CHUNK, |chunk, bits| {
        let numbers = &numbers[chunk * CHUNK..][..bits.len()];
        round(numbers, range.ends(), bits, run.isa, &mut seed.stream(Stream::Bernoulli, chunk as u64));
        response.answer(chunk, bits, seed, run.isa);
        Ok(())
    })
}
