//! Multiplicative weights whose projection onto kappa-dense distributions is drawn from exactly.

use std::sync::atomic::{AtomicBool, Ordering};

use super::losses::Losses;
use super::power::POINT;
use super::scale::{CHUNK, DEEPEST, WINDOW, running_sums};
use crate::error::{Error, Result};
use crate::memory::{collected, zeros};
use crate::noise::Weighted;
use crate::params::share;
use crate::run::Run;

/// The largest number of binary digits of integer weights; they have fewer where the sum would not fit into a word.
const MOST_DIGITS: u32 = 52;

/// The sum of step sizes that no weights reach: below the depth at which logarithms end, in units of 1 and not of
/// 2^-48.
const DEEPEST_SUM: f64 = 5600.0;

/// Refuses what [`DenseWeights`] refuse, without the records: their number, density and step size, and `rounds` loss
/// vectors, whose steps together must stay below 5,600. So a plan can be made of it before any record is read.
pub fn check_weights(n: usize, kappa: f64, eta: f64, rounds: u64) -> Result<()> {
    share("kappa", kappa)?;
    if !(eta > 0.0 && eta <= 4.0) {
        return Err(Error::parameter("eta", eta, "it must lie in (0, 4]"));
    }
    let mass = kappa * n as f64;
    if !(mass >= 1.0 && mass * n as f64 <= (1u64 << 49) as f64 && n < 1 << 32) {
        let rule = "kappa n must be at least 1, kappa n**2 at most 2**49, and n below 2**32";
        return Err(Error::Parameter(format!("kappa = {kappa:?} with n = {n}, but {rule}")));
    }
    let sum = rounds as f64 * eta;
    if sum < DEEPEST_SUM {
        return Ok(());
    }
    Err(Error::parameter("rounds", rounds, &format!("rounds * eta = {sum} must stay below 5,600")))
}

/// The weights of n records, kept as logarithms to base 2 in units of 2^-48, so that updates are exact sums. Draws are
/// from their projection onto kappa-dense weights.
pub struct DenseWeights {
    logs: Vec<i64>,
    kappa: f64,
    /// What a loss of 0 takes from a logarithm.
    step: i64,
    /// The most that any logarithm has lost.
    depth: i64,
    /// Loss vectors taken in, those of the weights continued from not counted.
    updates: u64,
    digits: u32,
}

impl DenseWeights {
    /// Equal weights of `n` records. `kappa` must lie in (0, 1], with kappa n at least 1 and kappa n^2 at most 2^49,
    /// and the step size `eta` in (0, 4].
    pub fn new(n: usize, kappa: f64, eta: f64) -> Result<DenseWeights> {
        check_weights(n, kappa, eta, 1)?;
        let digits = MOST_DIGITS.min(62 - (kappa * n as f64).log2() as u32);
        let step = (eta / std::f64::consts::LN_2 * (1u64 << POINT) as f64) as i64;
        let logs = zeros(Some(n))?;
        Ok(DenseWeights { logs, kappa, step: step.max(1), depth: 0, updates: 0, digits })
    }

    /// A copy of the weights as they are now, to be continued with another density and step size.
    pub fn continued(&self, kappa: f64, eta: f64) -> Result<DenseWeights> {
        let mut made = DenseWeights::new(self.n(), kappa, eta)?;
        made.logs.copy_from_slice(&self.logs);
        made.depth = self.depth;
        Ok(made)
    }

    /// The number of records.
    pub fn n(&self) -> usize {
        self.logs.len()
    }

    /// The number of loss vectors of all updates so far, without those before [`Self::continued`].
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The number of loss vectors that further updates may hold in all.
    pub fn room(&self) -> u64 {
        ((DEEPEST - 1 - self.depth) / self.step) as u64
    }

    /// The largest probability that any record has in a draw. It is public, since it is the same for all data.
    pub fn rate(&self) -> f64 {
        (1.0 / (self.kappa * (1.0 - WINDOW) * self.n() as f64) * (1.0 + 4.0 * f64::EPSILON)).min(1.0)
    }

    /// Multiplies each weight by exp(-eta (1 - loss)), for each of one or several vectors of n losses.
    ///
    /// A loss outside \[0, 1\] is refused, and the weights are as before. Should another thread change losses between
    /// their check and their use, such a loss counts as the nearest one inside: whatever happens, no logarithm loses
    /// more than one step for each vector.
    ///
    /// Cost: one pass over losses and weights.
    pub fn update(&mut self, losses: Losses<'_>, run: Run<'_>) -> Result<()> {
        let length = match losses {
            Losses::Floats(losses) => losses.len(),
            Losses::Bits(losses) => losses.len(),
        };
        if !length.is_multiple_of(self.n()) {
            return Err(Error::Shape(format!("losses has {length} entries, but there are {} records", self.n())));
        }
        let vectors = (length / self.n()) as u64;
        if vectors > self.room() {
            let rule = "the sum of eta over all of them and those before must stay below 5,600";
            return Err(Error::parameter("losses", format!("{vectors} vectors"), rule));
        }
        self.shift(losses, run)?;
        self.depth += vectors as i64 * self.step;
        self.updates += vectors;
        Ok(())
    }

    /// Moves every logarithm by what its losses take, and back if some loss turns out to be wrong or the caller asks to
    /// stop: to check all losses first would be another pass over them.
    fn shift(&mut self, losses: Losses<'_>, run: Run<'_>) -> Result<()> {
        let (n, step, depth) = (self.n(), self.step, self.depth);
        let moved = collected((0..n.div_ceil(CHUNK)).map(|_| AtomicBool::new(false)))?;
        let wrong = AtomicBool::new(false);
        let act = |_: &mut (), chunk: usize, logs: &mut [i64]| {
            let part = chunk * CHUNK..chunk * CHUNK + logs.len();
            if wrong.load(Ordering::Relaxed) || run.canceled() {
                wrong.store(true, Ordering::Relaxed);
            } else if losses.fit(n, part.clone(), run.isa) {
                losses.take(n, part, logs, step, run.isa);
                moved[chunk].store(true, Ordering::Relaxed);
            } else {
                wrong.store(true, Ordering::Relaxed);
            }
        };
        run.for_each_chunk(&mut self.logs, CHUNK, || (), act);
        if !wrong.load(Ordering::Relaxed) {
            return Ok(());
        }
        let back = |_: &mut (), chunk: usize, logs: &mut [i64]| {
            if moved[chunk].load(Ordering::Relaxed) {
                // What is taken from a negative is given back. The bounds hold unless losses have changed meanwhile.
                logs.iter_mut().for_each(|log| *log = -*log);
                losses.take(n, chunk * CHUNK..chunk * CHUNK + logs.len(), logs, step, run.isa);
                logs.iter_mut().for_each(|log| *log = log.wrapping_neg().clamp(-depth, 0));
            }
        };
        run.for_each_chunk(&mut self.logs, CHUNK, || (), back);
        run.check()?;
        Err(Error::Parameter("losses has an entry outside [0, 1], but each must lie in it".into()))
    }

    /// The distribution of one draw: integer weights whose sum lies in a public window, whatever the data.
    ///
    /// Record i has weight floor(2^b min(c w_i, 1)), which never falls as c grows. So between neighbors, the data set
    /// with the larger c has no smaller weights except for the record that differs. Both sums lie between K_lo and
    /// K_hi, so that the two distributions differ in at most (K_hi - K_lo + 2^b) / K_hi of their mass, which is at most
    /// [`Self::rate`].
    ///
    /// Cost: a handful of passes.
    pub fn law(&self, run: Run<'_>) -> Result<Weighted> {
        Weighted::of_chunks(running_sums(&self.logs, self.kappa, self.digits, run)?, CHUNK, run)
    }

    /// The probability of every record in the next draw: private, like the weights themselves.
    ///
    /// Cost: as [`Self::law`].
    pub fn probabilities(&self, run: Run<'_>) -> Result<Vec<f64>> {
        let weights = self.integers(run)?;
        let sum = weights.iter().sum::<u64>() as f64;
        collected(weights.iter().map(|&weight| weight as f64 / sum))
    }

    /// The integer weights of the next draw.
    fn integers(&self, run: Run<'_>) -> Result<Vec<u64>> {
        let mut weights = running_sums(&self.logs, self.kappa, self.digits, run)?;
        run.try_for_each_chunk(&mut weights, CHUNK, |_, weights| {
            for i in (1..weights.len()).rev() {
                weights[i] -= weights[i - 1];
            }
            Ok(())
        })?;
        Ok(weights)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::scale::Window;
    use super::*;
    use crate::noise::{Rng, Seed, Stream};
    use crate::simd::Isa;

    fn rng(index: u64) -> Rng {
        Seed::reproducible([11; 32]).stream(Stream::Speed, index)
    }

    fn alone() -> Run<'static> {
        Run::alone(Isa::Portable)
    }

    /// Logarithms of many shapes: equal, a few levels, spread over hundreds of binary digits, one record above all.
    fn shapes(n: usize, rng: &mut Rng) -> Vec<Vec<i64>> {
        let unit = 1i64 << POINT;
        let mut draw = |bound: u64| (0..n).map(|_| -(rng.below(bound) as i64)).collect::<Vec<i64>>();
        let mut dominant = vec![-700 * unit; n];
        dominant[0] = 0;
        let levels = draw(3).into_iter().map(|level| level * 5 * unit / 7).collect();
        vec![vec![0; n], levels, draw(4 << POINT), draw(900 << POINT), draw(1 << 61), dominant]
    }

    fn integer_weights(logs: &[i64], kappa: f64) -> (DenseWeights, Vec<u64>) {
        let mut weights = DenseWeights::new(logs.len(), kappa, 1.0).unwrap();
        weights.logs = logs.to_vec();
        let integers = weights.integers(alone()).unwrap();
        (weights, integers)
    }

    #[test]
    fn sums_meet_the_window_on_every_data_set() {
        let mut rng = rng(1);
        // Above four samples of 2^14 a pass says which scale to expect.
        for n in [1, 2, 3, 10, 1000, 70_001, 300_000] {
            for kappa in [0.003, 0.1, 0.5, 1.0] {
                if kappa * n as f64 >= 1.0 {
                    for logs in shapes(n, &mut rng) {
                        let (weights, integers) = integer_weights(&logs, kappa);
                        let window = Window::new(kappa * n as f64, weights.digits);
                        let sum = integers.iter().sum::<u64>() as f64;
                        assert!((window.low..=window.high).contains(&sum), "n = {n}, kappa = {kappa}");
                        let most = *integers.iter().max().unwrap() as f64;
                        assert!(most / sum <= weights.rate(), "n = {n}, kappa = {kappa}");
                    }
                }
            }
        }
    }

    /// The mass that the laws of two neighbors share, in exact integers over the product of their sums.
    fn shared(one: &[u64], other: &[u64], different: usize) -> f64 {
        let sums = [one, other].map(|weights| weights.iter().map(|&weight| u128::from(weight)).sum::<u128>());
        let pairs = one.iter().zip(other).enumerate().filter(|&(i, _)| i != different);
        let common: f64 = pairs
            .map(|(_, (&a, &b))| (u128::from(a) * sums[1]).min(u128::from(b) * sums[0]) as f64 / sums[1] as f64)
            .sum();
        common / sums[0] as f64
    }

    #[test]
    fn neighbors_share_all_but_the_rate() {
        let mut rng = rng(2);
        let mut worst: f64 = 0.0;
        for (n, kappa) in [(2, 0.5), (5, 0.4), (40, 0.05), (40, 0.3), (300, 0.1)] {
            for _ in 0..30 {
                for logs in shapes(n, &mut rng) {
                    let (weights, one) = integer_weights(&logs, kappa);
                    let different = rng.below(n as u64) as usize;
                    for other in [0, -(40i64 << POINT), -(rng.below(5 << POINT) as i64)] {
                        let mut changed = logs.clone();
                        changed[different] = other;
                        let lost = 1.0 - shared(&one, &integer_weights(&changed, kappa).1, different);
                        assert!(lost <= weights.rate() * (1.0 + 1e-9), "n = {n}, kappa = {kappa}: {lost}");
                        worst = worst.max(lost / weights.rate());
                    }
                }
            }
        }
        assert!(worst > 0.99, "the bound should be sharp: {worst}");
    }

    #[test]
    fn updates_are_sums() {
        let run = alone();
        let mut rng = rng(3);
        let n = 40_000;
        let losses: Vec<f64> = (0..2 * n).map(|_| rng.below(1001) as f64 / 1000.0).collect();
        let bits: Vec<u8> = (0..n).map(|_| rng.below(2) as u8).collect();
        let floats: Vec<f64> = bits.iter().map(|&bit| f64::from(bit)).collect();
        let make = || DenseWeights::new(n, 0.1, 0.3).unwrap();
        let (mut all, mut single) = (make(), make());
        all.update(Losses::Floats(&losses), run).unwrap();
        all.update(Losses::Bits(&bits), run).unwrap();
        single.update(Losses::Floats(&floats), run).unwrap();
        losses.chunks(n).rev().for_each(|losses| single.update(Losses::Floats(losses), run).unwrap());
        assert_eq!(all.logs, single.logs);
        let unit = (1u64 << POINT) as f64;
        let expected = -0.3 * (3.0 - losses[7] - losses[n + 7] - floats[7]) / std::f64::consts::LN_2;
        assert!((all.logs[7] as f64 / unit - expected).abs() < 1e-12);
        for wrong in [1.5, -0.1, f64::NAN, f64::INFINITY, -1e300] {
            let mut losses = losses.clone();
            losses[n + 12_345] = wrong;
            assert!(single.update(Losses::Floats(&losses), run).is_err());
            assert_eq!(all.logs, single.logs, "{wrong} left a trace");
        }
        let mut wrong = bits;
        wrong[3] = 2;
        assert!(single.update(Losses::Bits(&wrong), run).is_err());
        assert_eq!(all.logs, single.logs);
    }

    #[test]
    fn a_refused_or_canceled_update_leaves_no_trace() {
        let (n, mut rng) = (100_000, rng(5));
        let mut weights = DenseWeights::new(n, 0.1, 0.7).unwrap();
        let mut losses: Vec<f64> = (0..3 * n).map(|_| rng.below(1001) as f64 / 1000.0).collect();
        weights.update(Losses::Floats(&losses), alone()).unwrap();
        let (before, room) = (weights.logs.clone(), weights.room());
        let stop = AtomicBool::new(true);
        let canceled = weights.update(Losses::Floats(&losses), Run::new(Isa::Portable, false, &stop));
        assert_eq!((canceled, &weights.logs), (Err(Error::Canceled), &before));
        for place in [0, n / 2, 2 * n - 1, 3 * n - 1] {
            let right = std::mem::replace(&mut losses[place], 1.0 + f64::EPSILON);
            assert!(weights.update(Losses::Floats(&losses), alone()).is_err());
            assert_eq!((&weights.logs, weights.room(), weights.updates()), (&before, room, 3));
            losses[place] = right;
        }
    }

    /// The rule for sums of steps is a round number, a little stricter than what the logarithms allow.
    #[test]
    fn checked_weights_take_the_rounds_that_were_checked() {
        for eta in [4.0, 1.0, 0.37, 1e-3] {
            let most = ((DEEPEST_SUM / eta).ceil() - 1.0) as u64;
            check_weights(1, 1.0, eta, most).unwrap();
            assert!(check_weights(1, 1.0, eta, most + 1).is_err());
            let room = DenseWeights::new(1, 1.0, eta).unwrap().room();
            assert!((most..most + most / 50).contains(&room), "{eta}: {most} {room}");
        }
    }

    #[test]
    fn losses_of_no_whole_vector_are_refused() {
        let mut weights = DenseWeights::new(3, 0.5, 0.3).unwrap();
        assert!(matches!(weights.update(Losses::Floats(&[0.5; 4]), alone()), Err(Error::Shape(_))));
        assert_eq!(weights.logs, [0; 3]);
    }

    #[test]
    fn earlier_draws_leave_no_trace_in_the_law() {
        let mut rng = rng(4);
        let losses: Vec<Vec<u8>> = (0..8).map(|_| (0..50).map(|_| rng.below(2) as u8).collect()).collect();
        let (mut one, mut other) = (DenseWeights::new(50, 0.1, 0.5).unwrap(), DenseWeights::new(50, 0.1, 0.5).unwrap());
        for losses in &losses {
            one.law(alone()).unwrap();
            one.update(Losses::Bits(losses), alone()).unwrap();
            other.update(Losses::Bits(losses), alone()).unwrap();
        }
        assert_eq!(one.integers(alone()).unwrap(), other.integers(alone()).unwrap());
    }

    #[test]
    fn too_many_updates_are_refused() {
        let mut weights = DenseWeights::new(1, 1.0, 4.0).unwrap();
        let zeros = vec![0.0; 1000];
        let mut done = 0;
        while weights.update(Losses::Floats(&zeros), alone()).is_ok() {
            done += 1000;
        }
        assert!((1000..1500).contains(&done), "{done}");
        assert!(weights.logs[0] > -DEEPEST);
        weights.law(alone()).unwrap();
    }
}
