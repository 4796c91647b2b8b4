use hdp_fast_core::{gf2::*, noise::*, run::Run, simd::Isa, pool};
use std::time::Instant;
use std::sync::atomic::AtomicBool;
fn main() {
    let f = AtomicBool::new(false);
    let mut rng = Seed::reproducible([3; 32]).stream(Stream::Speed, 3);
    for isa in [Isa::Portable, Isa::Avx2, Isa::Gfni] {
    for n in [256usize, 1024, 4096, 10000, 20000] {
        let w = n.div_ceil(64);
        let m = BitMatrix::from_words(n, n, (0..n*w).map(|_| rng.next_u64()).collect()).unwrap();
        let mut best = [f64::MAX; 2];
        for _ in 0..5 { for t in [1usize,2] {
            let s = Instant::now();
            let r = if t==1 { rank(&m, Run::alone(isa)).unwrap() } else { pool::install(2, || rank(&m, Run::new(isa, true, &f)).unwrap()).unwrap() };
            best[t-1] = best[t-1].min(s.elapsed().as_secs_f64());
            assert!(r + 20 > n);
        }}
        println!("{isa:?} {n}: {:.3} ms, {:.3} ms", best[0]*1e3, best[1]*1e3);
    }}
}
