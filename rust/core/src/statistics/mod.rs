//! Sums of features of records, exact in integers: the statistics of linear models; and numbers as points of a grid.
//!
//! # Examples
//!
//! The sum of the features of each class, and the sum of their products. The features are the entries themselves, in
//! units of 1/16, cut towards zero; the second record is shrunk to norm 1.
//!
//! ```
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::{Isa, Scaling};
//! use hdp_fast_core::statistics::{FeatureMap, Labels, Records, add_up};
//!
//! let (unbounded, none) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
//! let scaling = Scaling { low: &none, high: &unbounded, origin: &[0.0; 2], factor: &[1.0; 2] };
//! let map = FeatureMap::new(scaling, None, false, false)?;
//! let records = Records::new(&[0.5, -0.26, 3.0, 4.0], 2)?;
//! let labels = Labels::Classes { codes: &[0, 1], classes: 2 };
//! let sums = add_up(records, &map, labels, 4, true, Run::alone(Isa::detect()?))?;
//! assert_eq!(sums.first, [8, -4, 9, 12]);
//! assert_eq!(sums.second, Some(vec![145, 76, 76, 160]));
//! assert_eq!(sums.counts, [1, 1]);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod map;
mod points;
mod sums;

pub use map::{FeatureMap, Linear, Records, write_features};
pub use points::write_points;
pub use sums::{Labels, MOST_BITS, Sums, add_up};
