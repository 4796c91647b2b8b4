//! Places among cumulative sums, found by the leading digits of those in a part of their range.
//!
//! A binary search waits for the memory at each of its steps. Here the range of the sums is cut into parts of a few
//! sums each, and a part holds the leading digits of its sums: one wait, in half a line of the cache, and comparisons
//! of all of them at once tell the place, unless the digits tie or the part has more sums than room.
//!
//! ```text
//! for each target:
//!     part  = table[target >> shift];  digits = the leading 16 digits of what is left of the target
//!     place = sums before the part + how many of its digits are below `digits`
//!     open  = some digits are equal to it, or all of them are at most that
//! ```

/// Sums of which a part has leading digits.
pub const SUMS: usize = 14;

/// Entries of a part: 16 leading digits of each sum in it, from its beginning on, and the number of sums up to its
/// beginning as two more. The largest possible digits stand for sums that there are not. It takes half a line of the
/// caches.
pub const PART: usize = SUMS + 2;

/// Targets that are located at a time.
pub const TARGETS: usize = 64;

/// The range of cumulative sums, cut into parts of 2 to the power of `shift` targets.
#[derive(Clone, Copy)]
pub struct Parts<'a> {
    /// The entries of all parts.
    pub table: &'a [u16],
    /// Binary digits of a target inside its part.
    pub shift: u32,
}

impl Parts<'_> {
    /// The part of a target.
    #[inline(always)]
    pub fn of(&self, target: u64) -> &[u16; PART] {
        // Not reached for targets below the last sum: the default.
        self.table.as_chunks().0.get((target >> self.shift) as usize).unwrap_or(&[u16::MAX; PART])
    }

    /// The leading digits of a place in its part.
    #[inline(always)]
    pub fn digits(&self, place: u64) -> u16 {
        if self.shift >= u16::BITS {
            (place >> (self.shift - u16::BITS)) as u16
        } else {
            ((place & ((1 << self.shift) - 1)) << (u16::BITS - self.shift)) as u16
        }
    }
}

dispatched! {
    /// Writes the number of sums that the leading digits show to be at most the target, for every target. A bit of `open`
    /// is set where the digits beyond decide, or sums that are not in the part.
    locate(parts: Parts<'_>, targets: &[u64; TARGETS], places: &mut [u64; TARGETS], open: &mut u64) = located
}

#[inline(always)]
fn located(parts: Parts<'_>, targets: &[u64; TARGETS], places: &mut [u64; TARGETS], open: &mut u64) {
    *open = 0;
    for (i, (&target, place)) in targets.iter().zip(places).enumerate() {
        let (part, digits) = (parts.of(target), parts.digits(target));
        // Both counts in one sum over lanes: of sums below, and of those that are not above.
        let counts: [u16; PART] = std::array::from_fn(|lane| {
            let counts = u16::from(part[lane] < digits) + (u16::from(part[lane] <= digits) << 8);
            if lane < SUMS { counts } else { 0 }
        });
        let count = counts.iter().fold(0u16, |sum, count| sum.wrapping_add(*count));
        let (below, up_to) = (count & 0xff, count >> 8);
        *place = u64::from(part[SUMS]) + (u64::from(part[SUMS + 1]) << 16) + u64::from(below);
        *open |= u64::from(up_to != below || up_to == SUMS as u16) << i;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Seed, Stream};
    use crate::simd::Isa;

    #[test]
    fn all_arms_locate_alike() {
        let mut rng = Seed::reproducible([13; 32]).stream(Stream::Speed, 0);
        for shift in [0, 1, 15, 16, 17, 40] {
            let count = 100;
            // Few digits, so that some are equal.
            let mut table: Vec<u16> = (0..count * PART).map(|_| rng.below(1 << 16) as u16 & 0xf00f).collect();
            for part in table.chunks_exact_mut(PART) {
                part[..SUMS].sort_unstable();
            }
            let parts = Parts { table: &table, shift };
            let targets: [u64; TARGETS] = std::array::from_fn(|_| rng.below((count as u64) << shift));
            for isa in Isa::ALL {
                let (mut places, mut open) = ([0; TARGETS], 0);
                locate(isa, parts, &targets, &mut places, &mut open);
                for (i, &target) in targets.iter().enumerate() {
                    let (part, digits) = (parts.of(target), parts.digits(target));
                    let below = part[..SUMS].iter().filter(|&&sum| sum < digits).count();
                    let first = u64::from(part[SUMS]) + 65_536 * u64::from(part[SUMS + 1]);
                    assert_eq!(places[i], first + below as u64, "{}", isa.name());
                    let is_open = part[..SUMS].contains(&digits) || below == SUMS;
                    assert_eq!(open >> i & 1 == 1, is_open, "{}", isa.name());
                }
            }
        }
    }
}
