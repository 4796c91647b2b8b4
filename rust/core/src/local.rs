//! Local randomisers: what one person's device answers.

use crate::noise::{Fixed, Seed, Stream};
use crate::params::Epsilon;
use crate::run::Run;

/// Responses drawn from one stream; fixed, so that results do not depend on the number of threads.
const CHUNK: usize = 1 << 14;

/// The probability with which binary randomised response tells the truth: e^epsilon / (1 + e^epsilon), rounded
/// towards 1/2 to a multiple of 2^-64.
pub fn truth_probability(epsilon: Epsilon) -> Fixed {
    let advantage = (epsilon.capped() / 2.0).tanh() / 2.0;
    Fixed((1 << 63) + Fixed::certainly_below(advantage).0.min((1 << 63) - 1))
}

/// Binary randomised response, in place: each bit is kept with [`truth_probability`] and flipped otherwise.
///
/// Guarantee: pure epsilon-DP for each bit on its own, whatever the other bits are. Cost: one word of the stream a bit.
pub fn randomized_response(bits: &mut [u8], epsilon: Epsilon, seed: &Seed, run: Run<'_>) {
    let truth = truth_probability(epsilon);
    run.for_each_chunk(
        bits,
        CHUNK,
        || (),
        |_, chunk, bits| {
            let mut rng = seed.stream(Stream::Response, chunk as u64);
            bits.iter_mut().for_each(|bit| *bit ^= u8::from(!truth.draw(&mut rng)));
        },
    );
}
