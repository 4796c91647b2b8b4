//! The thread pool: built when first needed, and built anew in a forked child, where the parent's threads are gone.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use crate::error::{Error, Result};

struct Owned {
    process: u32,
    pool: rayon::ThreadPool,
}

// Lock-free: a lock that another thread holds during a fork would stay locked in the child for ever.
static POOL: ArcSwapOption<Owned> = ArcSwapOption::const_empty();

/// Calls `act` inside the pool of the given number of threads.
pub fn install<R: Send>(threads: usize, act: impl FnOnce() -> R + Send) -> Result<R> {
    let owned = match POOL.load_full() {
        Some(owned) if owned.process == std::process::id() && owned.pool.current_num_threads() == threads => owned,
        stale => replace(stale, threads)?,
    };
    Ok(owned.pool.install(act))
}

fn replace(stale: Option<Arc<Owned>>, threads: usize) -> Result<Arc<Owned>> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|i| format!("hdp-fast-{i}"))
        .build()
        .map_err(|cause| Error::System(format!("could not start {threads} threads: {cause}")))?;
    let owned = Arc::new(Owned { process: std::process::id(), pool });
    let previous = POOL.swap(Some(owned.clone()));
    // Dropping a pool of the parent would wait for threads that do not exist here.
    for old in [stale, previous].into_iter().flatten() {
        if old.process != std::process::id() {
            std::mem::forget(old);
        }
    }
    Ok(owned)
}

/// The number of threads to use: the argument, else HDP_FAST_NUM_THREADS, else RAYON_NUM_THREADS, else all cores.
pub fn threads(argument: Option<usize>) -> Result<usize> {
    if let Some(count) = argument {
        return if count > 0 { Ok(count) } else { Err(Error::parameter("threads", 0, "it must be at least 1")) };
    }
    for name in ["HDP_FAST_NUM_THREADS", "RAYON_NUM_THREADS"] {
        if let Ok(text) = std::env::var(name) {
            let count = text.trim().parse::<usize>().ok().filter(|&count| count > 0);
            return count.ok_or_else(|| Error::parameter(name, text, "the variable must be a positive integer"));
        }
    }
    Ok(std::thread::available_parallelism().map_or(1, usize::from))
}
