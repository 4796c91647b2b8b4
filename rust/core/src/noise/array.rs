//! Arrays of independent draws that do not depend on the number of threads.

use bytemuck::cast_slice_mut;

use super::bernoulli::Bernoulli;
use super::rng::{Rng, Seed, Stream};
use crate::error::Result;
use crate::run::Run;
use crate::simd::Isa;

/// The number of draws from one stream. It is fixed, so that results do not depend on the number of threads.
pub const CHUNK: usize = 1 << 14;

/// Fills an array with independent uniform integers below a positive bound of at most 2^63.
pub fn uniform_integers(out: &mut [i64], bound: u64, purpose: Stream, seed: &Seed, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(purpose, chunk as u64);
        for out in out.chunks_mut(BLOCK) {
            let out: &mut [u64] = cast_slice_mut(out);
            rng.words(out);
            if bound.is_power_of_two() {
                // The leading digits, which is what the product means there; no word is rejected.
                out.iter_mut().for_each(|value| *value = *value >> 1 >> (63 - bound.trailing_zeros()));
            } else {
                out.iter_mut().for_each(|value| *value = rng.below_from(*value, bound));
            }
        }
        Ok(())
    })
}

/// A law of integers that is drawn in blocks, faster than one by one.
pub trait IntegerNoise: Send + Sync {
    /// Fills an array with independent draws.
    fn fill(&self, out: &mut [i64], isa: Isa, rng: &mut Rng);
}

/// Fills an array with independent draws of a law.
pub fn noise(out: &mut [i64], law: &dyn IntegerNoise, purpose: Stream, seed: &Seed, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        law.fill(out, run.isa, &mut seed.stream(purpose, chunk as u64));
        Ok(())
    })
}

/// Inputs whose words are drawn at a time.
const BLOCK: usize = 256;

/// Fills an array with one independent draw for each input; `inputs` and `out` have the same length. A draw is made of
/// so many words, and rarely of more from the stream.
pub fn draws_for<const WORDS: usize, I: Copy + Sync, T: Send>(
    inputs: &[I],
    out: &mut [T],
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
    draw: impl Fn(I, [u64; WORDS], &mut Rng) -> T + Sync + Send,
) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(purpose, chunk as u64);
        let (inputs, mut words) = (&inputs[chunk * CHUNK..], [[0; WORDS]; BLOCK]);
        for (inputs, out) in inputs.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            rng.words(words[..out.len()].as_flattened_mut());
            let values = out.iter_mut().zip(inputs).zip(&words);
            values.for_each(|((value, &input), &words)| *value = draw(input, words, &mut rng));
        }
        Ok(())
    })
}

/// Fills an array with independent coins of 0 or 1.
pub fn coins(out: &mut [u8], coin: &Bernoulli, purpose: Stream, seed: &Seed, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        coin.fill(out, run.isa, &mut seed.stream(purpose, chunk as u64));
        Ok(())
    })
}
