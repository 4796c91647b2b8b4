//! Bit-packed linear algebra over GF(2): matrices, exact solution spaces of systems, and uniform draws from them.
//!
//! # Examples
//!
//! Two equations in three unknowns: x0 + x1 = 1 and x1 = 1.
//!
//! ```
//! use hdp_fast_core::gf2::{BitMatrix, System, parity_bits, solve};
//! use hdp_fast_core::noise::{Seed, Stream};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let run = Run::alone(Isa::detect()?);
//! let matrix = BitMatrix::from_words(2, 3, vec![0b011, 0b010])?;
//! let rhs = parity_bits(&[1, 1])?;
//! let space = solve(&System { matrix: &matrix, rows: None, ones: false, rhs: Some(&rhs) }, run)?;
//! assert!(space.consistent && space.rank() == 2 && space.nullity() == 1);
//! assert_eq!(space.particular(run)?, Some(vec![0, 1, 0]));
//!
//! // A uniform solution: x2 is 0 or 1, each with probability 1/2.
//! let mut rng = Seed::from_os()?.stream(Stream::Solution, 0);
//! let solution = space.sample(&mut rng, run)?.unwrap();
//! assert_eq!(solution[..2], [0, 1]);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```
//!
//! Matrices are multiplied, inverted and factored by the same kernels.
//!
//! ```
//! use hdp_fast_core::gf2::{BitMatrix, inverse, ple};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let run = Run::alone(Isa::detect()?);
//! let matrix = BitMatrix::from_words(3, 3, vec![0b110, 0b011, 0b100])?;
//! let inverted = inverse(&matrix, run)?.unwrap();
//! assert!(matrix.multiply(&inverted, run)? == BitMatrix::identity(3)?);
//!
//! let factors = ple(&matrix, run)?;
//! assert_eq!(factors.pivots, [0, 1, 2]);
//! assert!(matrix.take_rows(&factors.rows, run)? == factors.lower.multiply(&factors.echelon, run)?);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

mod arithmetic;
mod eliminate;
mod equations;
mod forms;
mod matrix;
mod parts;
mod pivots;
mod ple;
mod row_space;
mod solve;
mod space;
mod strips;

pub use equations::Equations;
pub use forms::{Solutions, echelon_form, inverse, row_basis, solve_many};
pub use matrix::{BitMatrix, parity_bits};
pub use ple::{Ple, ple};
pub use row_space::RowSpace;
pub use solve::{System, rank, solve};
pub use space::Solution;
