//! Products of integer powers of complex numbers, many at a time.
//!
//! Transforms of composed privacy losses are such powers, of exponents up to 2^53. Repeated squaring takes the same
//! steps for all numbers, so that sixteen are raised side by side, in registers; most of those of a large power vanish,
//! and are left out.
//!
//! ```text
//! for each 16 numbers:
//!     if |value|^exponent < e^-800 for all of them: product = 0
//!     else: while exponent > 0: result *= base if the lowest bit is set;  base *= base;  exponent >>= 1
//! ```

use realfft::num_complex::Complex;

/// Numbers that are raised together, in registers.
const LANES: usize = 16;

dispatched! {
    /// Multiplies each entry of `product` by the `exponent`-th power of that of `values`, by repeated squaring.
    multiply_powers(product: &mut [Complex<f64>], values: &[Complex<f64>], exponent: u64) = multiply
}

/// Powers whose magnitude is below e to the minus this are 0 in any case.
const VANISHING: f64 = 800.0;

/// The square of the largest magnitude of a product that a vanishing factor makes 0 in any case.
const LARGEST: f64 = 4.0;

/// Complex numbers by their parts.
#[derive(Clone, Copy)]
struct Parts {
    re: [f64; LANES],
    im: [f64; LANES],
}

impl Parts {
    /// As many ones as there are lanes, the first of them replaced by `values`.
    #[inline(always)]
    fn load(values: &[Complex<f64>]) -> Parts {
        let mut parts = Parts { re: [1.0; LANES], im: [0.0; LANES] };
        for (i, value) in values.iter().enumerate() {
            (parts.re[i], parts.im[i]) = (value.re, value.im);
        }
        parts
    }

    /// Whether all squares of magnitudes are at most `limit`; what is no number is not.
    #[inline(always)]
    fn are_within(&self, limit: f64) -> bool {
        (0..LANES).all(|i| self.re[i] * self.re[i] + self.im[i] * self.im[i] <= limit)
    }

    #[inline(always)]
    fn times(self, other: Parts) -> Parts {
        let mut product = self;
        for i in 0..LANES {
            product.re[i] = self.re[i] * other.re[i] - self.im[i] * other.im[i];
            product.im[i] = self.re[i] * other.im[i] + self.im[i] * other.re[i];
        }
        product
    }
}

#[inline(always)]
fn multiply(product: &mut [Complex<f64>], values: &[Complex<f64>], exponent: u64) {
    let limit = (-2.0 * VANISHING / exponent as f64).exp();
    for (product, values) in product.chunks_mut(LANES).zip(values.chunks(LANES)) {
        let (mut base, mut left, mut result) = (Parts::load(values), exponent, Parts::load(product));
        if base.are_within(limit) && result.are_within(LARGEST) {
            product.fill(Complex::new(0.0, 0.0));
            continue;
        }
        while left > 0 {
            if left & 1 == 1 {
                result = result.times(base);
            }
            left >>= 1;
            if left > 0 {
                base = base.times(base);
            }
        }
        for (i, product) in product.iter_mut().enumerate() {
            *product = Complex::new(result.re[i], result.im[i]);
        }
    }
}
