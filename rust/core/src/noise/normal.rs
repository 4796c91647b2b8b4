//! The continuous Gaussian distribution, in floats: idealized, since floats have gaps that real numbers have not.

use super::rng::Rng;

/// Layers of equal area under the density; the lowest holds the tail.
const LAYERS: usize = 256;

/// Where the tail begins, and the area of every layer (Marsaglia and Tsang 2000).
const TAIL: f64 = 3.654_152_885_361_009;
const AREA: f64 = 0.004_928_673_233_99;

/// The standard normal distribution in floats, drawn by the ziggurat method: nearly always one word of the stream and
/// one multiplication for each draw.
///
/// It must not serve mechanisms that are called exact: which floats can come out depends on the number to which they
/// are added.
pub struct ContinuousGaussian {
    /// Widths of the layers, from the lowest, which is wider by its tail, to 0; and the density there.
    widths: [f64; LAYERS + 1],
    heights: [f64; LAYERS + 1],
}

impl ContinuousGaussian {
    /// Builds the tables of the method.
    pub fn new() -> ContinuousGaussian {
        let mut widths = [0.0; LAYERS + 1];
        widths[0] = AREA / density(TAIL);
        widths[1] = TAIL;
        for i in 2..LAYERS {
            let height = density(widths[i - 1]) + AREA / widths[i - 1];
            widths[i] = (-2.0 * height.ln()).sqrt();
        }
        ContinuousGaussian { heights: widths.map(density), widths }
    }

    /// Draws one number.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> f64 {
        loop {
            let word = rng.next_u64();
            let layer = (word & 0xff) as usize;
            let value = signed_uniform(word) * self.widths[layer];
            if value.abs() < self.widths[layer + 1] || self.accepts(layer, value, rng) {
                return if layer == 0 && value.abs() >= TAIL { tail(rng).copysign(value) } else { value };
            }
        }
    }

    #[cold]
    fn accepts(&self, layer: usize, value: f64, rng: &mut Rng) -> bool {
        let (low, high) = (self.heights[layer], self.heights[layer + 1]);
        layer == 0 || high + (low - high) * uniform(rng) < density(value)
    }
}

impl Default for ContinuousGaussian {
    fn default() -> ContinuousGaussian {
        ContinuousGaussian::new()
    }
}

fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp()
}

/// Uniform in [-1, 1), from the upper 53 bits.
#[inline]
fn signed_uniform(word: u64) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 52) as f64;
    ((word as i64) >> 11) as f64 * UNIT
}

/// Uniform in (0, 1].
fn uniform(rng: &mut Rng) -> f64 {
    const UNIT: f64 = 1.0 / (1u64 << 53) as f64;
    ((rng.next_u64() >> 11) + 1) as f64 * UNIT
}

/// A normal number given that it is at least `TAIL` (Marsaglia 1964).
#[cold]
fn tail(rng: &mut Rng) -> f64 {
    loop {
        let over = -uniform(rng).ln() / TAIL;
        if -2.0 * uniform(rng).ln() >= over * over {
            return TAIL + over;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rng::{Seed, Stream};
    use super::*;

    /// Counts below thresholds within 6 standard deviations of the normal law's: false alarms below 1e-7.
    #[test]
    fn draws_follow_the_normal_law() {
        let normal = ContinuousGaussian::new();
        let mut rng = Seed::reproducible([8; 32]).stream(Stream::Noise, 0);
        let count = 4_000_000;
        let draws: Vec<f64> = (0..count).map(|_| normal.draw(&mut rng)).collect();
        for threshold in [-4.5, -3.7, -3.6, -2.0, -1.0, -0.3, -0.01, 0.0, 0.2, 0.7, 1.5, 2.5, 3.5, 3.654, 3.8, 4.2] {
            let below = draws.iter().filter(|&&x| x < threshold).count() as f64;
            let expected = libm::erfc(-threshold / std::f64::consts::SQRT_2) / 2.0;
            let deviation = (f64::from(count) * expected * (1.0 - expected)).sqrt();
            assert!((below - f64::from(count) * expected).abs() < 6.0 * deviation, "{threshold}: {below}");
        }
        let fourth = draws.iter().map(|x| x.powi(4)).sum::<f64>() / f64::from(count);
        assert!((fourth - 3.0).abs() < 6.0 * (96.0 / f64::from(count)).sqrt(), "{fourth}");
    }
}
