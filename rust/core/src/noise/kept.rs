//! Tables that are kept from call to call, since the scales of noise repeat themselves.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::interval::Rational;

/// How many tables of a kind are kept: the last ones that were made.
const MOST: usize = 8;

type Tables<T> = Vec<(Rational, Arc<T>)>;

/// Tables of one kind, by their scale, which is public. What is drawn does not depend on what is kept.
///
/// Lock-free: a lock that another thread holds during a fork would stay locked in the child for ever.
pub struct Kept<T>(ArcSwapOption<Tables<T>>);

impl<T> Kept<T> {
    /// Nothing kept yet.
    pub const fn new() -> Kept<T> {
        Kept(ArcSwapOption::const_empty())
    }

    /// The table of a scale, made and kept unless it is there.
    pub fn table(&self, scale: &Rational, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.0.load();
        let entries = || known.iter().flat_map(|tables| tables.iter());
        if let Some((_, table)) = entries().find(|(known, _)| is_same(known, scale)) {
            return table.clone();
        }
        let table = Arc::new(make());
        let newest = std::iter::once((scale.clone(), table.clone()));
        self.0.store(Some(Arc::new(newest.chain(entries().take(MOST - 1).cloned()).collect())));
        table
    }
}

/// Whether two fractions in lowest terms are the same: comparing their terms takes no division.
fn is_same(known: &Rational, scale: &Rational) -> bool {
    known.numer() == scale.numer() && known.denom() == scale.denom()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_tables_are_kept_and_no_more() {
        let kept = Kept::new();
        let scale = |i: u32| Rational::from(num_bigint::BigUint::from(i));
        let mut made = 0;
        let mut table = |i: u32| {
            let made = &mut made;
            let table = *kept.table(&scale(i), || {
                *made += 1;
                i
            });
            assert_eq!(table, i);
            *made
        };
        assert_eq!([table(1), table(1), table(2), table(1)], [1, 1, 2, 2]);
        assert_eq!((3..=9).map(&mut table).last(), Some(9));
        assert_eq!([table(2), table(1), table(3)], [9, 10, 10]);
    }

    #[test]
    fn threads_get_their_own_scales() {
        let kept = Kept::new();
        std::thread::scope(|scope| {
            for thread in 0..4u32 {
                let kept = &kept;
                scope.spawn(move || {
                    for i in 0..2000 {
                        let scale = (thread + i) % 11;
                        assert_eq!(*kept.table(&Rational::from(num_bigint::BigUint::from(scale)), || scale), scale);
                    }
                });
            }
        });
    }
}
