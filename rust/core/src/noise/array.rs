//! Arrays of independent draws that do not depend on the number of threads.

use super::bernoulli::Bernoulli;
use super::rng::{Rng, Seed, Stream};
use super::round::round;
use crate::error::Result;
use crate::run::Run;

/// The number of draws from one stream. It is fixed, so that results do not depend on the number of threads.
pub(super) const CHUNK: usize = 1 << 14;

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

/// Fills an array with one independent draw for each input; `inputs` and `out` have the same length.
pub fn draws_for<I: Copy + Sync, T: Send>(
    inputs: &[I],
    out: &mut [T],
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
    draw: impl Fn(I, &mut Rng) -> T + Sync + Send,
) -> Result<()> {
    run.try_for_each_chunk(out, CHUNK, |chunk, out| {
        let mut rng = seed.stream(purpose, chunk as u64);
        let inputs = &inputs[chunk * CHUNK..];
        out.iter_mut().zip(inputs).for_each(|(value, &input)| *value = draw(input, &mut rng));
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
        coin.fill(coins, &mut seed.stream(purpose, chunk as u64));
        act(data, coins);
        Ok(())
    })
}

/// Rounds numbers to bits at random: bit i becomes 1 with probability exactly `position(numbers[i])`, which lies in [0,
/// 1].
pub fn rounded(
    numbers: &[f64],
    position: impl Fn(f64) -> f64 + Sync + Send,
    bits: &mut [u8],
    purpose: Stream,
    seed: &Seed,
    run: Run<'_>,
) -> Result<()> {
    run.try_for_each_chunk(bits, CHUNK, |chunk, bits| {
        round(&numbers[chunk * CHUNK..], &position, bits, &mut seed.stream(purpose, chunk as u64));
        Ok(())
    })
}
