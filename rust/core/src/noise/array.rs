//! Arrays of independent draws that do not depend on the number of threads.

use super::bernoulli::Bernoulli;
use super::rng::{Rng, Seed, Stream};
use crate::error::Result;
use crate::run::Run;

/// The number of draws from one stream. It is fixed, so that results do not depend on the number of threads.
pub const CHUNK: usize = 1 << 14;

/// Fills an array with independent draws: `draw` makes one from a stream of the seed.
pub fn draws<T: Send>(
    out: &mut [T],
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
    draw: impl Fn(&mut Rng) -> T + Sync + Send,
) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(purpose, chunk as u64);
        out.iter_mut().for_each(|value| *value = draw(&mut rng));
        Ok(())
    })
}

/// A law of integers that is drawn in blocks, faster than one by one.
pub trait IntegerNoise: Send + Sync {
    /// Fills an array with independent draws.
    fn fill(&self, out: &mut [i64], rng: &mut Rng);
}

/// Fills an array with independent draws of a law.
pub fn noise(out: &mut [i64], law: &dyn IntegerNoise, purpose: Stream, seed: &Seed, run: Run<'_>) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        law.fill(out, &mut seed.stream(purpose, chunk as u64));
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
    change_for(inputs, out, purpose, seed, run, |_, _| (), |input, value, words, rng| *value = draw(input, words, rng))
}

/// The same for values that `begin` prepares in chunks, from the same stream, and `change` changes, each by its input.
pub fn change_for<const WORDS: usize, I: Copy + Sync, T: Send>(
    inputs: &[I],
    out: &mut [T],
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
    begin: impl Fn(&mut [T], &mut Rng) + Sync + Send,
    change: impl Fn(I, &mut T, [u64; WORDS], &mut Rng) + Sync + Send,
) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(purpose, chunk as u64);
        begin(out, &mut rng);
        let (inputs, mut words) = (&inputs[chunk * CHUNK..], [[0; WORDS]; BLOCK]);
        for (inputs, out) in inputs.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            rng.words(words[..out.len()].as_flattened_mut());
            let values = out.iter_mut().zip(inputs).zip(&words);
            values.for_each(|((value, &input), &words)| change(input, value, words, &mut rng));
        }
        Ok(())
    })
}

/// Calls `act(chunk, coins)` for every chunk of `data`, with one independent coin of 0 or 1 for each element of the
/// chunk.
pub fn coins<T: Send>(
    data: &mut [T],
    coin: &Bernoulli,
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
    act: impl Fn(&mut [T], &[u8]) + Sync + Send,
) -> Result<()> {
    run.try_for_each_chunk(data, CHUNK, |chunk, data| {
        let mut coins = [0; CHUNK];
        let coins = &mut coins[..data.len()];
        coin.fill(coins, run.isa, &mut seed.stream(purpose, chunk as u64));
        act(data, coins);
        Ok(())
    })
}
