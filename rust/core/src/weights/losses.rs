//! Loss vectors, some records at a time.

use std::ops::Range;

use crate::simd::{self, Isa};

/// One or several loss vectors, each with a loss for every record, one vector after the other.
#[derive(Clone, Copy)]
pub enum Losses<'a> {
    /// Losses that are numbers in [0, 1].
    Floats(&'a [f64]),
    /// Losses that are 0 or 1.
    Bits(&'a [u8]),
}

impl Losses<'_> {
    /// Whether the losses of this part of the records lie in \[0, 1\], in each vector of `n`.
    pub(super) fn fit(self, n: usize, part: Range<usize>, isa: Isa) -> bool {
        match self {
            Losses::Floats(losses) => {
                let mut outside = 0;
                losses.chunks(n).for_each(|losses| simd::find_outside(isa, &losses[part.clone()], &mut outside));
                outside == 0
            }
            Losses::Bits(losses) => {
                losses.chunks(n).all(|losses| losses[part.clone()].iter().fold(0, |seen, loss| seen | loss) <= 1)
            }
        }
    }

    /// Takes from the logarithms of this part of the records what each vector of `n` losses takes.
    pub(super) fn take(self, n: usize, part: Range<usize>, logs: &mut [i64], step: i64, isa: Isa) {
        match self {
            Losses::Floats(losses) => {
                losses.chunks(n).for_each(|losses| simd::take_losses(isa, logs, &losses[part.clone()], step))
            }
            Losses::Bits(losses) => {
                losses.chunks(n).for_each(|losses| simd::take_bits(isa, logs, &losses[part.clone()], step))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_that_change_after_their_check_count_as_the_nearest_in_range() {
        let infinity = f64::INFINITY;
        let take = |losses: Losses<'_>| {
            let mut logs = [0; 7];
            losses.take(7, 0..7, &mut logs, 1 << 47, Isa::Portable);
            logs
        };
        let changed = take(Losses::Floats(&[f64::NAN, -infinity, infinity, -1e300, 1e300, 1.5, 0.25]));
        assert_eq!(changed, take(Losses::Floats(&[0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.25])));
        assert_eq!(take(Losses::Bits(&[255; 7])), [0; 7]);
    }
}
