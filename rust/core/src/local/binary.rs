//! Binary randomized response.

use hdp_fast_device::probability;

use super::Range;
use crate::error::{Error, Result};
use crate::noise::{Bernoulli, CHUNK, Fixed, Seed, Stream, round};
use crate::params::Epsilon;
use crate::run::Run;
use crate::simd::{Isa, find_outside};

/// The probability with which binary randomized response keeps a bit: e^epsilon / (1 + e^epsilon), rounded towards 1/2
/// to a multiple of 2^-64: that of the device's crate, since what estimates divide by is what devices did.
pub fn truth_probability(epsilon: Epsilon) -> Fixed {
    Fixed(probability::truth_probability(epsilon.get()))
}

/// Binary randomized response to chunks of [`CHUNK`] bits.
pub struct BinaryResponse(Bernoulli);

impl BinaryResponse {
    /// Keeps each bit with probability [`truth_probability`].
    pub fn new(epsilon: Epsilon) -> BinaryResponse {
        BinaryResponse(Bernoulli::fixed(truth_probability(epsilon)))
    }

    /// Answers with the bits of a chunk and random bits of the chunk's own. Returns false if any of the bits is neither
    /// 0 nor 1; what is in `answers` means nothing then.
    #[must_use]
    pub fn answer(&self, chunk: usize, bits: &[u8], answers: &mut [u8], seed: &Seed, isa: Isa) -> bool {
        self.0.keep(bits, answers, isa, &mut seed.stream(Stream::Response, chunk as u64))
    }
}

/// Binary randomized response to as many bits as there are `answers`: each bit is kept with probability
/// [`truth_probability`] and flipped otherwise. Refuses bits that are neither 0 nor 1.
///
/// Guarantee: pure epsilon-DP for each bit on its own, whatever the other bits are.
///
/// Cost: one byte of the stream for each bit, and rarely more.
pub fn randomized_response(bits: &[u8], answers: &mut [u8], epsilon: Epsilon, seed: &Seed, run: Run<'_>) -> Result<()> {
    let response = BinaryResponse::new(epsilon);
    run.try_for_each_chunk(answers, CHUNK, |chunk, answers| {
        let bits = &bits[chunk * CHUNK..][..answers.len()];
        if response.answer(chunk, bits, answers, seed, run.isa) { Ok(()) } else { Err(Error::not_bits("bits")) }
    })
}

/// Randomized response to numbers in a range: a number's position in [0, 1] is rounded to 1 with exactly that
/// probability, else to 0, and [`randomized_response`] answers with the bit. The mean of the numbers follows from the
/// answers as that of bits does.
///
/// Guarantee: pure epsilon-DP for each number on its own, whatever the other numbers are.
///
/// Cost: two bytes of the stream for each number, and rarely more.
pub fn rounded_response(
    numbers: &[f64],
    range: Range,
    answers: &mut [u8],
    epsilon: Epsilon,
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    respond_rounded(numbers, range, |_| Ok(()), answers, epsilon, seed, run)
}

/// The same for fractions, and refuses what lies outside \[0, 1\] or is NaN.
pub fn fraction_response(
    fractions: &[f64],
    answers: &mut [u8],
    epsilon: Epsilon,
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    // A chunk that was looked at is in a fast cache when it is rounded.
    let check = |fractions: &[f64]| check_fractions("bits", fractions, run);
    respond_rounded(fractions, Range::UNIT, check, answers, epsilon, seed, run)
}

/// Refuses what lies outside \[0, 1\] or is NaN. The array may be private: neither place nor value is told.
pub fn check_fractions(name: &str, fractions: &[f64], run: Run<'_>) -> Result<()> {
    let mut outside = 0;
    for part in fractions.chunks(CHUNK) {
        run.check()?;
        find_outside(run.isa, part, &mut outside);
    }
    if outside == 0 {
        return Ok(());
    }
    Err(Error::Parameter(format!("{name} holds something else, but every entry must lie in [0, 1]")))
}

fn respond_rounded(
    numbers: &[f64],
    range: Range,
    check: impl Fn(&[f64]) -> Result<()> + Sync + Send,
    answers: &mut [u8],
    epsilon: Epsilon,
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    let response = BinaryResponse::new(epsilon);
    run.try_for_each_chunk(answers, CHUNK, |chunk, answers| {
        let (numbers, mut bits) = (&numbers[chunk * CHUNK..][..answers.len()], [0; CHUNK]);
        check(numbers)?;
        let bits = &mut bits[..answers.len()];
        round(numbers, range.ends(), bits, run.isa, &mut seed.stream(Stream::Bernoulli, chunk as u64));
        if response.answer(chunk, bits, answers, seed, run.isa) { Ok(()) } else { Err(Error::not_bits("bits")) }
    })
}
