//! Tilted laws composed by Fourier transforms.

use realfft::RealFftPlanner;
use realfft::num_complex::Complex;

use super::U;
use super::moments::Composition;
use super::plan::{Plan, TRANSFORM};
use crate::error::{Error, Result};
use crate::run::Run;
use crate::simd::multiply_powers;

/// The transforms of one grid after another, which share their memory and what is computed beforehand for a size.
pub struct Transforms {
    planner: RealFftPlanner<f64>,
    values: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    product: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Transforms {
    /// Nothing is computed yet.
    pub fn new() -> Transforms {
        Transforms {
            planner: RealFftPlanner::new(),
            values: Vec::new(),
            spectrum: Vec::new(),
            product: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The tilted law of the composed loss, cyclic, and a bound on the 2-norm of its error.
    ///
    /// A transform of 2^k points has a relative error in the 2-norm of at most k [`TRANSFORM`]. The mass at 0, nearly all
    /// of a thin subsample's, is not transformed: it is the same number at every frequency, and adding it costs one
    /// rounding. The power multiplies the error by the number of rounds, since no transform of a law exceeds 1 (by more
    /// than its error, and what raised its masses: `growth`), and adds 8 U a round of its own, relative to the norm of
    /// the composed law, which is at most that of each.
    pub fn compose(&mut self, plan: &Plan, laws: &Composition, run: Run<'_>) -> Result<(&[f64], f64)> {
        let failed = |cause: realfft::FftError| Error::System(format!("a Fourier transform failed: {cause}"));
        let Transforms { planner, values, spectrum, product, scratch } = self;
        let (forward, inverse) = (planner.plan_fft_forward(plan.points), planner.plan_fft_inverse(plan.points));
        let (zero, one) = (Complex::new(0.0, 0.0), Complex::new(1.0, 0.0));
        values.resize(plan.points, 0.0);
        spectrum.resize(plan.points / 2 + 1, zero);
        scratch.resize(forward.get_scratch_len().max(inverse.get_scratch_len()), zero);
        product.clear();
        product.resize(spectrum.len(), one);
        let once = TRANSFORM * ((plan.points as f64).log2() + 1.0);
        let (mut error, mut growth) = (once, 0.0);
        for (moments, rounds) in &laws.0 {
            run.check()?;
            let raised = moments.law().map_or(0.0, |law| law.tilt(plan.order, values));
            let still = std::mem::take(&mut values[0]);
            let others = values.iter().map(|value| value * value).sum::<f64>().sqrt();
            error += rounds * (once * others + 8.0 * U * still.hypot(others));
            growth += rounds * (once * (plan.points as f64).sqrt() * others + 2.0 * U + raised);
            forward
                .process_with_scratch(values, spectrum, &mut scratch[..forward.get_scratch_len()])
                .map_err(failed)?;
            spectrum.iter_mut().for_each(|value| value.re += still);
            // Rounds up to 2^53 are whole numbers.
            multiply_powers(run.isa, product, spectrum, *rounds as u64);
        }
        run.check()?;
        // Real for a real law; the inverse insists on it.
        let last = product.len() - 1;
        [0, last].into_iter().for_each(|i| product[i].im = 0.0);
        inverse.process_with_scratch(product, values, &mut scratch[..inverse.get_scratch_len()]).map_err(failed)?;
        let points = plan.points as f64;
        values.iter_mut().for_each(|value| *value /= points);
        Ok((values, error * growth.exp()))
    }
}
