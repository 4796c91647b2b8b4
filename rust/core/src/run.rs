//! What a kernel is told about the operation that it is part of: instruction set, parallelism and cancellation.
//!
//! # Examples
//!
//! A loop over chunks that another thread may cancel. Kernels take a `Run` by value and pass it on.
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering};
//!
//! use hdp_fast_core::Error;
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//!
//! let canceled = AtomicBool::new(false);
//! let run = Run::new(Isa::detect()?, true, &canceled);
//! let mut values = [1, 2, 3, 4, 5];
//! let mut square = || {
//!     run.try_for_each_chunk(&mut values, 2, |_, chunk| {
//!         chunk.iter_mut().for_each(|value| *value *= *value);
//!         Ok(())
//!     })
//! };
//! square()?;
//! canceled.store(true, Ordering::Relaxed);
//! assert_eq!(square(), Err(Error::Canceled));
//! assert_eq!(values, [1, 4, 9, 16, 25]);
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::simd::Isa;

/// The instruction set, the parallelism and the cancel flag of one operation.
#[derive(Clone, Copy)]
pub struct Run<'a> {
    /// The instruction set whose kernels are used, chosen once per operation.
    pub isa: Isa,
    parallel: bool,
    canceled: &'a AtomicBool,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Run<'a> {
    /// A run that stops soon after `canceled` becomes true. If `parallel`, the rayon pool of the caller shares the
    /// work; otherwise everything happens on the calling thread.
    pub fn new(isa: Isa, parallel: bool, canceled: &'a AtomicBool) -> Run<'a> {
        Run { isa, parallel, canceled }
    }

    /// A run on the calling thread that cannot be canceled.
    pub fn alone(isa: Isa) -> Run<'static> {
        Run { isa, parallel: false, canceled: &NEVER }
    }

    /// Whether several threads share the work.
    pub fn parallel(&self) -> bool {
        self.parallel
    }

    /// Returns [`Error::Canceled`] if the caller asked to stop. Kernels call it at least every 100 ms.
    pub fn check(&self) -> Result<()> {
        if self.canceled.load(Ordering::Relaxed) { Err(Error::Canceled) } else { Ok(()) }
    }

    /// Whether the caller asked to stop.
    pub fn canceled(&self) -> bool {
        self.canceled.load(Ordering::Relaxed)
    }

    /// Calls `act(state, i, chunk)` for the i-th chunk of `size` elements, for every i, with one `state` for each
    /// thread.
    pub fn for_each_chunk<T: Send, S>(
        &self,
        data: &mut [T],
        size: usize,
        state: impl Fn() -> S + Sync + Send,
        act: impl Fn(&mut S, usize, &mut [T]) + Sync + Send,
    ) {
        if self.parallel {
            let chunks = data.par_chunks_mut(size).enumerate();
            chunks.for_each_init(state, |state, (i, chunk)| act(state, i, chunk));
        } else {
            let mut state = state();
            data.chunks_mut(size).enumerate().for_each(|(i, chunk)| act(&mut state, i, chunk));
        }
    }

    /// Calls `act(i, chunk)` for the i-th chunk of `size` elements, for every i, until a call fails or the caller asks
    /// to stop.
    pub fn try_for_each_chunk<T: Send>(
        &self,
        data: &mut [T],
        size: usize,
        act: impl Fn(usize, &mut [T]) -> Result<()> + Sync + Send,
    ) -> Result<()> {
        let checked = |(i, chunk): (usize, &mut [T])| self.check().and_then(|()| act(i, chunk));
        if self.parallel {
            data.par_chunks_mut(size).enumerate().try_for_each(checked)
        } else {
            data.chunks_mut(size).enumerate().try_for_each(checked)
        }
    }

    /// Calls both functions, at the same time where the run is parallel.
    pub fn join<A: Send, B: Send>(&self, a: impl FnOnce() -> A + Send, b: impl FnOnce() -> B + Send) -> (A, B) {
        if self.parallel { rayon::join(a, b) } else { (a(), b()) }
    }

    /// The same run, confined to the calling thread.
    pub fn sequential(self) -> Run<'a> {
        Run { parallel: false, ..self }
    }
}
