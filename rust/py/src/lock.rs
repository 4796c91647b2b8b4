//! State that one call at a time may use, whichever thread it comes from.

use std::process;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use hdp_fast_core::Error;
use pyo3::prelude::*;

use crate::error::raise;

/// How long a thread sleeps before it tries again. No thread waits in the mutex itself: Ctrl-C would not end that, and
/// a forked child whose parent held it would never wake.
const SLICE: Duration = Duration::from_millis(1);

/// State behind a lock that is taken on the calling thread before any kernel begins, and never inside one: a thread of
/// the pool that waits for a part of one kernel takes up another kernel, which would wait for the same lock for ever.
pub struct Locked<T> {
    state: Mutex<T>,
    /// The process and the thread of the call that uses it, 0 for none; changes only while the interpreter is held, hence
    /// not while Python forks.
    user: AtomicU64,
    waiting: AtomicUsize,
}

impl<T> Locked<T> {
    pub fn new(state: T) -> Locked<T> {
        Locked { state: Mutex::new(state), user: AtomicU64::new(0), waiting: AtomicUsize::new(0) }
    }

    /// Waits for the state with the interpreter released, asking for signals, and calls `work` with it.
    pub fn with<R>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> PyResult<R>) -> PyResult<R> {
        let mut held = self.held(py)?;
        work(&mut held.state)
    }

    fn held(&self, py: Python<'_>) -> PyResult<Held<'_, T>> {
        // Those who wait already go first: a thread that calls again and again would leave them no gap.
        if self.waiting.load(Ordering::Relaxed) == 0
            && let Some(held) = self.tried()
        {
            return Ok(held);
        }
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let held = self.awaited(py);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        held
    }

    fn awaited(&self, py: Python<'_>) -> PyResult<Held<'_, T>> {
        loop {
            self.check_user()?;
            py.detach(|| std::thread::sleep(SLICE));
            py.check_signals()?;
            if let Some(held) = self.tried() {
                return Ok(held);
            }
        }
    }

    fn tried(&self) -> Option<Held<'_, T>> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            // A panic elsewhere leaves a whole state behind.
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.user.store(caller(), Ordering::Relaxed);
        Some(Held { state, user: &self.user })
    }

    /// Refuses a wait that would never end.
    fn check_user(&self) -> PyResult<()> {
        let (user, caller) = (self.user.load(Ordering::Relaxed), caller());
        let rule = if user == caller {
            "it is in use by this very thread, whose call a signal handler interrupts"
        } else if user != 0 && user >> 32 != caller >> 32 {
            "it was in use when this process was forked: make a new one"
        } else {
            return Ok(());
        };
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        Err(raise(Error::Parameter(format!("{name} can't be used here, since {rule}"))))
    }
}

/// The state, until it is dropped.
struct Held<'a, T> {
    state: MutexGuard<'a, T>,
    user: &'a AtomicU64,
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.user.store(0, Ordering::Relaxed);
    }
}

/// The process and a number of the thread in it.
fn caller() -> u64 {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static THREAD: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
    }
    u64::from(process::id()) << 32 | u64::from(THREAD.with(|number| *number))
}
