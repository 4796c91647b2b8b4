//! Thread pools, one for each number of threads. A pool is built when first needed, and anew in a forked child, where
//! the parent's threads are gone.
//!
//! # Examples
//!
//! The work runs in a pool of two threads. Meanwhile the calling thread asks every 50 ms whether to go on.
//!
//! ```
//! use hdp_fast_core::gf2::{BitMatrix, rank};
//! use hdp_fast_core::run::Run;
//! use hdp_fast_core::simd::Isa;
//! use hdp_fast_core::{Error, pool};
//!
//! let matrix = BitMatrix::from_words(3, 2, vec![0b01, 0b10, 0b11])?;
//! let isa = Isa::detect()?;
//! let answer = pool::supervise(2, |canceled| rank(&matrix, Run::new(isa, true, canceled)), || true)?;
//! assert_eq!(answer, Ok(2));
//!
//! fn run_for_ever(run: Run<'_>) -> Result<(), Error> {
//!     loop {
//!         run.check()?;
//!     }
//! }
//! let stopped = pool::supervise(2, |canceled| run_for_ever(Run::new(isa, true, canceled)), || false)?;
//! assert_eq!(stopped, Err(Error::Canceled));
//! # Ok::<(), hdp_fast_core::Error>(())
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::error::{Error, Result};
use crate::memory::check_room;
use crate::params::count_rule;

/// The largest number of threads. More could not help on any machine, and would only take its memory.
const MOST_THREADS: usize = 1024;

/// The bytes that a thread takes for its stack, and beside it for a second one and its own variables. All of them end
/// the process where they cannot be had.
const STACK: usize = 2 << 20;
const BESIDE: usize = 1 << 16;

/// The most threads that the calling thread wakes; they wake the others.
const MOST_WOKEN: usize = 4;

/// How long the calling thread waits before it asks again whether to go on.
const POLL: Duration = Duration::from_millis(50);

#[derive(Clone)]
struct Pools {
    process: u32,
    pools: Vec<Arc<rayon::ThreadPool>>,
}

// Lock-free: a lock that another thread holds during a fork would stay locked in the child for ever.
static POOLS: ArcSwapOption<Pools> = ArcSwapOption::const_empty();

/// Calls `work` in the pool of `threads` threads, while the calling thread asks `go_on` every 50 ms.
///
/// Once `go_on` returns false, the flag that `work` was given becomes true; the call still waits for `work` to return.
pub fn supervise<R: Send>(
    threads: usize,
    work: impl FnOnce(&AtomicBool) -> R + Send,
    mut go_on: impl FnMut() -> bool,
) -> Result<R> {
    let pool = of_size(threads)?;
    let canceled = AtomicBool::new(false);
    let (sender, receiver) = channel();
    let flag = &canceled;
    let result = pool.in_place_scope(|scope| {
        // Wakes threads beside that of the work. One that is woken by it instead is put behind it on the same core by
        // Linux, and stays there for milliseconds, whatever other cores are idle.
        for _ in 1..threads.min(MOST_WOKEN) {
            scope.spawn(|_| ());
        }
        // The task owns the sender: if it panics, the receiver below learns that there will be no result.
        scope.spawn(move |_| {
            let _ = sender.send(work(flag));
        });
        loop {
            match receiver.recv_timeout(POLL) {
                Ok(result) => return Some(result),
                Err(RecvTimeoutError::Timeout) if !go_on() => flag.store(true, Ordering::Relaxed),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    });
    // Not reached: a task that ends without a result has panicked, and the scope passes that on.
    result.ok_or_else(|| Error::System("a task ended without a result".into()))
}

fn of_size(threads: usize) -> Result<Arc<rayon::ThreadPool>> {
    let process = std::process::id();
    let known = POOLS.load_full();
    let mut pools = match known.as_deref() {
        Some(known) if known.process == process => known.clone(),
        _ => Pools { process, pools: Vec::new() },
    };
    if let Some(pool) = pools.pools.iter().find(|pool| pool.current_num_threads() == threads) {
        return Ok(pool.clone());
    }
    check_room(threads * (STACK + BESIDE))?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .stack_size(STACK)
        .thread_name(|i| format!("hdp-fast-{i}"))
        .build()
        .map_err(|cause| Error::System(format!("could not start {threads} threads: {cause}")))?;
    // Until each has run something, they still take what they need beside their stacks.
    pool.broadcast(|_| ());
    let pool = Arc::new(pool);
    pools.pools.push(pool.clone());
    // Dropping pools of the parent would wait for threads that do not exist here.
    for old in [known, POOLS.swap(Some(Arc::new(pools)))].into_iter().flatten() {
        if old.process != process {
            std::mem::forget(old);
        }
    }
    Ok(pool)
}

/// The number of cores, counted once, since the answer takes longer than many a call; 0 until then. No thread waits for
/// it: a child forked meanwhile would wait for ever.
static CORES: AtomicUsize = AtomicUsize::new(0);

/// The number of threads to use, from 1 to 1024.
///
/// It is the argument; if that is `None`, `HDP_FAST_NUM_THREADS`; without that, `RAYON_NUM_THREADS`; without that, the
/// first number of `OMP_NUM_THREADS`, with which schedulers tell their workers how many cores are theirs; without that,
/// the number of cores.
pub fn threads(argument: Option<usize>) -> Result<usize> {
    let allowed = |count: &usize| (1..=MOST_THREADS).contains(count);
    let rule = || count_rule(MOST_THREADS as u64);
    if let Some(count) = argument {
        return Some(count).filter(allowed).ok_or_else(|| Error::parameter("threads", count, &rule()));
    }
    for name in ["HDP_FAST_NUM_THREADS", "RAYON_NUM_THREADS"] {
        if let Ok(text) = std::env::var(name) {
            let count = text.trim().parse().ok().filter(allowed);
            return count.ok_or_else(|| Error::parameter(name, text, &rule()));
        }
    }
    if let Some(count) = std::env::var("OMP_NUM_THREADS").ok().and_then(|text| outermost(&text)) {
        return Ok(count);
    }
    if CORES.load(Ordering::Relaxed) == 0 {
        CORES.store(std::thread::available_parallelism().map_or(1, usize::from), Ordering::Relaxed);
    }
    Ok(CORES.load(Ordering::Relaxed))
}

/// The first number of a list, as OpenMP has one for each level of nested loops. The variable is not ours: a text that
/// is no number of threads is ignored.
fn outermost(text: &str) -> Option<usize> {
    let count: usize = text.split(',').next()?.trim().parse().ok()?;
    (count > 0).then_some(count.min(MOST_THREADS))
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_of_a_list_counts() {
        for (text, count) in [("3", 3), (" 4 , 2", 4), ("4,2", 4), ("1,", 1), ("2,junk", 2), ("99999", MOST_THREADS)] {
            assert_eq!(outermost(text), Some(count), "{text:?}");
        }
        for text in ["", " ", ",", "0", "-1", "four", "1.5", "4 2", "0,4", "99999999999999999999999"] {
            assert_eq!(outermost(text), None, "{text:?}");
        }
    }

    #[test]
    fn supervise_returns_the_result_of_work_done_in_a_pool_of_that_size() {
        for threads in [1, 2, 3, 2] {
            let result = supervise(threads, |_| (rayon::current_num_threads(), 40 + 2), || true);
            assert_eq!(result, Ok((threads, 42)));
        }
        assert_eq!(supervise(2, |_| Err::<(), _>(Error::Canceled), || true), Ok(Err(Error::Canceled)));
    }

    #[test]
    fn supervise_honors_a_wish_to_stop_and_waits_for_the_work() {
        let asked = AtomicUsize::new(0);
        let work = |canceled: &AtomicBool| {
            while !canceled.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            asked.load(Ordering::Relaxed)
        };
        let result = supervise(2, work, || asked.fetch_add(1, Ordering::Relaxed) < 2);
        assert_eq!(result, Ok(3), "times that it asked before it stopped");
    }

    #[test]
    fn supervise_lets_work_end_that_is_not_asked_to_stop() {
        let work = |canceled: &AtomicBool| {
            std::thread::sleep(Duration::from_millis(180));
            canceled.load(Ordering::Relaxed)
        };
        assert_eq!(supervise(1, work, || true), Ok(false));
    }

    #[test]
    fn supervise_passes_on_a_panic_of_the_work() {
        let (sender, receiver) = channel();
        // On a thread of its own: what is tested is that the call returns at all.
        std::thread::spawn(move || {
            let call = || supervise(2, |_| [0; 2].iter().position(|&x| x == 1).expect("a panic of the test"), || true);
            let _ = sender.send(std::panic::catch_unwind(call).is_err());
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(5)), Ok(true), "the call hangs");
    }

    #[test]
    fn the_number_of_threads_must_be_positive() {
        assert_eq!(threads(Some(3)), Ok(3));
        assert!(threads(Some(0)).is_err());
    }
}
