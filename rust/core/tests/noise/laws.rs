//! The laws of integer noise under a fixed key.

use super::*;

fn laplace_law(scale: f64) -> impl Fn(i64) -> f64 {
    let q = (-1.0 / scale).exp();
    move |x| (1.0 - q) / (1.0 + q) * q.powi(x.unsigned_abs() as i32)
}

fn gaussian_law(sigma: f64) -> impl Fn(i64) -> f64 {
    let mass = move |x: i64| (-(x as f64 / sigma).powi(2) / 2.0).exp();
    let whole: f64 = (-(12.0 * sigma) as i64 - 2..=(12.0 * sigma) as i64 + 2).map(mass).sum();
    move |x| mass(x) / whole
}

/// Both constructions: that for few draws and that for many.
const SIZES: [usize; 2] = [1, 1 << 20];

#[test]
fn discrete_laplace_follows_its_mass_and_no_other() {
    for (index, scale) in (10..).zip([0.05, 0.3, 1.0, 2.5, 4.0, 30.0]) {
        for size in SIZES {
            let noise = DiscreteLaplace::new(&exactly(scale), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(laplace_law(scale), &counts), "scale {scale}, {size} draws");
            assert!(scale < 0.3 || !follows(laplace_law(0.95 * scale), &counts), "scale {scale} passes for another");
        }
    }
}

#[test]
fn geometric_is_the_magnitude_of_a_sign_and_a_laplace_draw() {
    for (index, scale) in (20..).zip([0.3, 2.5, 30.0]) {
        for size in SIZES {
            let noise = Geometric::new(&exactly(scale), size);
            let q = (-1.0 / scale).exp();
            let counts = counts(|rng| noise.draw(rng), index);
            let law = |x: i64| if x < 0 { 0.0 } else { (1.0 - q) * q.powi(x as i32) };
            assert!(follows(law, &counts), "scale {scale}, {size} draws");
        }
    }
}

#[test]
fn discrete_gaussian_follows_its_mass_and_no_other() {
    for (index, sigma) in (30..).zip([0.2, 0.7, 1.0, 3.5, 20.0, 63.9, 70.0, 150.0]) {
        for size in SIZES {
            let noise = DiscreteGaussian::new(&exactly(sigma), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(gaussian_law(sigma), &counts), "sigma {sigma}, {size} draws");
            assert!(sigma < 0.7 || !follows(gaussian_law(0.95 * sigma), &counts), "sigma {sigma} passes for another");
        }
    }
}

#[test]
fn rounded_gaussian_follows_its_mass_and_no_other() {
    let law = |sigma: f64| {
        let tail = move |x: f64| libm::erfc(x / sigma / std::f64::consts::SQRT_2) / 2.0;
        move |x: i64| {
            let (inner, outer) = (x.abs() as f64 - 0.5, x.abs() as f64 + 0.5);
            if x == 0 { 1.0 - 2.0 * tail(outer) } else { tail(inner) - tail(outer) }
        }
    };
    for (index, sigma) in (30..).zip([0.2, 0.7, 1.0, 3.5, 20.0, 63.9, 70.0, 150.0]) {
        for size in [1, 1 << 13, 1 << 20] {
            let noise = RoundedGaussian::new(&exactly(sigma), size);
            let counts = counts(|rng| noise.draw(rng), index);
            assert!(follows(law(sigma), &counts), "sigma {sigma}, {size} draws");
            assert!(sigma < 0.7 || !follows(law(0.95 * sigma), &counts), "sigma {sigma} passes for another");
        }
    }
}

#[test]
fn huge_scales_stay_in_range_and_tiny_ones_give_zero() {
    let huge = Rational::from(BigUint::from((1u64 << 50) - 1));
    let tiny = Rational::new(1u32.into(), BigUint::from(1u32) << 1074u32);
    for size in SIZES {
        for law in 0..4 {
            let draw = |scale: &Rational, rng: &mut Rng| match law {
                0 => DiscreteLaplace::new(scale, size).draw(rng),
                1 => Geometric::new(scale, size).draw(rng),
                2 => RoundedGaussian::new(scale, size).draw(rng),
                _ => DiscreteGaussian::new(scale, size).draw(rng),
            };
            let mut rng = stream(40);
            let mean = (0..40).map(|_| draw(&huge, &mut rng).unsigned_abs() as f64).sum::<f64>() / 40.0;
            assert!((0.4..1.9).contains(&(mean / (1u64 << 50) as f64)), "{mean:e}");
            assert!((0..40).all(|_| draw(&tiny, &mut rng) == 0 && draw(&Rational::default(), &mut rng) == 0));
        }
    }
}

#[test]
fn coins_of_exp_minus_come_at_their_rate() {
    for (index, x) in (50..).zip([1e-9, 0.1, 1.0, 5.0]) {
        let coin = Bernoulli::exp_minus(exactly(x));
        let hits = counts(|rng| i64::from(coin.draw(rng)), index).get(&1).copied().unwrap_or(0) as f64;
        let expected = 200_000.0 * (-x).exp();
        assert!((hits - expected).abs() <= 6.0 * (expected * (1.0 - (-x).exp())).sqrt() + 1.0, "exp(-{x}): {hits}");
    }
    let mut rng = stream(54);
    assert!(Bernoulli::exp_minus(Rational::default()).draw(&mut rng));
    assert!(!Bernoulli::exp_minus(exactly(1e300)).draw(&mut rng));
    assert!(!Bernoulli::exp_minus(exactly(100.0)).draw(&mut rng));
}
