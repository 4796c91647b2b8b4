//! Kernels and mechanisms for learning under differential privacy in the hybrid model, where a curator holds the
//! records of participants who opted in and all others answer one randomized question.
//!
//! This crate holds the loops and the random draws of the Python package `hdp_fast`, knows nothing of Python, and is
//! used from Rust by itself: private learners of parities and of linear models, exact noise, private answers from
//! votes, local randomizers, composition of guarantees, and the fast linear algebra over GF(2) and scoring of
//! hypotheses beneath them.
//!
//! # A first example
//!
//! A curator learns a secret parity from labeled records: [`parity::plan`] says how many records that takes, and
//! [`parity::learn`] is differentially private whatever the records are.
//!
//! ```
//! use hdp_fast_core::gf2::{BitMatrix, parity_bits};
//! use hdp_fast_core::noise::{Seed, Stream};
//! use hdp_fast_core::params::{Epsilon, Neighbors};
//! use hdp_fast_core::parity::{Examples, Mechanism, Method, Target, learn, plan};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let (epsilon, neighbors) = (Epsilon::new(1.0)?, Neighbors::ReplaceOne);
//! let target = Target { unknowns: 20, alpha: 0.1, beta: 1e-9, epsilon, neighbors };
//! let plan = plan(&target, Method::Loop)?;
//!
//! // As many records as planned, of 20 uniform bits each; a label is the parity of bits 0, 3 and 19.
//! let (run, seed) = (Run::alone(Isa::detect()?), Seed::from_os()?);
//! let mut rng = seed.stream(Stream::Integers, 0);
//! let rows = (0..plan.n).map(|_| rng.below(1 << 20)).collect();
//! let matrix = BitMatrix::from_words(plan.n as usize, 20, rows)?;
//! let mut secret = vec![0; 20];
//! for i in [0, 3, 19] {
//!     secret[i] = 1;
//! }
//! let labels = matrix.dot(&parity_bits(&secret)?, run)?;
//!
//! // The hypothesis is epsilon-DP. It is the secret itself except with probability beta: any other parity is wrong on
//! // half of such records, which is more than alpha.
//! let examples = Examples { matrix: &matrix, labels: &parity_bits(&labels)?, affine: false };
//! let mechanism = Mechanism::new(epsilon, neighbors, Method::Loop, &plan)?;
//! assert_eq!(learn(&examples, &mechanism, &seed, run)?, Some(secret));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```
//!
//! # Layers
//!
//! A module imports only from its own line of the table and from those above it.
//!
//! | modules | what they hold |
//! | --- | --- |
//! | [`error`], [`params`], [`memory`], [`golden`] | causes of failure; scalars that are valid by construction; allocations that may fail; the search for a valley |
//! | [`noise`], [`simd`], [`run`], [`pool`] | exact draws; instruction sets, with all of the `unsafe` code; cancellation; threads |
//! | [`gf2`], [`linear`], [`score`], [`sgd`], [`additive`], [`statistics`], [`accounting`], [`weights`] | linear systems over GF(2); halfspaces; errors of many hypotheses; gradient descent; additive models of bins; exact sums of features; guarantees; dense weights |
//! | [`parity`], [`local`], [`stability`], [`adaptation`] | parities; local randomizers; answers from votes; adaptation to private records |
//!
//! # What every module has in common
//!
//! - What other libraries keep global is an argument: a [`run::Run`] brings the instruction set, the threads and the
//!   wish to stop, and a [`noise::Seed`] the random bits. Results depend neither on the instruction set nor on the threads.
//! - A seed from the operating system, [`noise::Seed::from_os`], is what protects people. A reproducible one is for
//!   tests: whoever knows it can undo every guarantee.
//! - What cannot be done is an [`Error`], whose message names the argument, its value and the rule. It never depends on
//!   private values beyond shape, type, domain and number of records.
//! - A paragraph that begins with "Guarantee" states what a mechanism promises, for one call. No budget is kept
//!   here: who calls twice adds the guarantees up with [`accounting`].
//! - Vectors over GF(2) are packed into words of 64 bits, the first entry in the lowest bit.
//! - The environment variable `HDP_FAST_ISA` (`portable`, `avx2`, `gfni256`, `gfni` or `neon`) picks the instruction set where
//!   [`simd::Isa::detect`] is asked, and `HDP_FAST_NUM_THREADS` the threads where [`pool::threads`] is.
//! - This workspace is built for release with `overflow-checks = true`, so that no count wraps silently. Cargo takes
//!   profiles from the workspace that is built: set the same in yours.

pub mod accounting;
pub mod adaptation;
pub mod additive;
pub mod error;
pub mod gf2;
pub mod golden;
pub mod linear;
pub mod local;
pub mod memory;
pub mod noise;
pub mod params;
pub mod parity;
pub mod pool;
pub mod run;
pub mod score;
pub mod sgd;
pub mod simd;
pub mod stability;
pub mod statistics;
pub mod weights;

pub use error::{Error, Result};
