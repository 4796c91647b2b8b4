//! Disagreements of halfspaces with labels that single precision tells for certain.
//!
//! A score in single precision, added up in any order and with fused operations or without, is within a margin of the
//! exact one, and so is the rounded sum in double precision that defines a prediction. Where the score is farther from
//! 0 than both, its sign is that of the definition: arms need not round alike to find the same. Whatever is closer is
//! left to the definition. Records with label 0 are negated, so that a wrong prediction is a negative score.
//!
//! ```text
//! for each six halfspaces, for the 64 records of a tile:
//!     scores = bias sign;  for each feature: scores += weight value
//!     wrong  = score < 0, a bit for each record;  least = the smallest magnitude
//!     count  = ones in wrong & valid if least > margin, else UNSURE
//! ```

use super::Isa;
use super::tile::{ABREAST, Rough, TILE, Tile, UNSURE};
#[cfg(target_arch = "x86_64")]
use super::x86_screen;

/// Scores that the portable body keeps at a time for each halfspace.
const LANES: usize = 16;

/// Writes the number of records that each halfspace gets wrong, or [`UNSURE`] for those of which a score is within its
/// margin. Whatever is no number is within it.
pub fn screen(isa: Isa, tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    let lengths = (tile.columns.len(), rough.weights.len(), rough.biases.len(), rough.margins.len());
    let (features, count) = (rough.features, counts.len());
    assert!(lengths == (features * TILE, features * count, count, count) && count.is_multiple_of(ABREAST));
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Gfni256 if x86_screen::fused() => x86_screen::screen_fused(tile, rough, counts),
        #[cfg(has_gfni_intrinsics)]
        Isa::Gfni if isa.available() => x86_screen::screen_wide(tile, rough, counts),
        _ => screen_portably(tile, rough, counts),
    }
}

fn screen_portably(tile: Tile<'_>, rough: Rough<'_>, counts: &mut [u8]) {
    let groups = rough.weights.chunks_exact(rough.features * ABREAST).zip(counts.chunks_exact_mut(ABREAST));
    for (group, (weights, counts)) in groups.enumerate() {
        let (mut wrong, mut least) = ([0u64; ABREAST], [f32::INFINITY; ABREAST]);
        for part in (0..TILE).step_by(LANES) {
            let scores = few_scores(tile, part, weights, &rough.biases[group * ABREAST..][..ABREAST]);
            for ((wrong, least), scores) in wrong.iter_mut().zip(&mut least).zip(scores) {
                for (lane, score) in scores.into_iter().enumerate() {
                    *wrong |= u64::from(score < 0.0) << (part + lane);
                    *least = least.min(score.abs());
                }
            }
        }
        for (i, count) in counts.iter_mut().enumerate() {
            // No sum of finite numbers has NaN in it, and no score lies above an infinite margin.
            let sure = least[i] > rough.margin(group * ABREAST + i, tile);
            *count = if sure { (wrong[i] & tile.valid).count_ones() as u8 } else { UNSURE };
        }
    }
}

/// Scores of [`LANES`] records, in loops of fixed length, which the compiler turns into vectors.
fn few_scores(tile: Tile<'_>, part: usize, weights: &[f32], biases: &[f32]) -> [[f32; LANES]; ABREAST] {
    let mut scores = [[0.0; LANES]; ABREAST];
    for (scores, bias) in scores.iter_mut().zip(biases) {
        scores.iter_mut().zip(&tile.signs[part..]).for_each(|(score, sign)| *score = bias * sign);
    }
    for (column, weights) in tile.columns.chunks_exact(TILE).zip(weights.chunks_exact(ABREAST)) {
        let values = &column[part..][..LANES];
        for (scores, weight) in scores.iter_mut().zip(weights) {
            scores.iter_mut().zip(values).for_each(|(score, value)| *score += weight * value);
        }
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::{Rng, Seed, Stream};

    #[test]
    fn all_arms_count_what_is_certain_and_leave_the_rest() {
        let mut rng = Seed::reproducible([8; 32]).stream(Stream::Speed, 0);
        let real = |rng: &mut Rng| rng.below(1 << 24) as f32 / (1 << 23) as f32 - 1.0;
        for (features, groups, valid) in [(1, 1, 1), (2, 3, u64::MAX), (8, 2, u64::MAX >> 1), (65, 1, 0xff)] {
            let count = groups * ABREAST;
            let columns: Vec<f32> = (0..features * TILE).map(|_| real(&mut rng)).collect();
            let weights: Vec<f32> = (0..features * count).map(|_| real(&mut rng)).collect();
            let biases: Vec<f32> = (0..count).map(|_| real(&mut rng)).collect();
            let signs = std::array::from_fn(|lane| if lane % 2 == 0 { 1.0 } else { -1.0 });
            // The margin of the last halfspace of each group is wide, and that of its first one has no end.
            let margin = |i: usize| if i.is_multiple_of(ABREAST) { f32::INFINITY } else { 1e-4 };
            let margins: Vec<_> = (0..count).map(|i| [margin(i), if i % ABREAST == 5 { 0.2 } else { 0.0 }]).collect();
            let tile = Tile { columns: &columns, signs: &signs, scale: 1.0, norm: 1.0, valid };
            let rough = Rough { features, weights: &weights, biases: &biases, margins: &margins };
            let scores = |i: usize, lane: usize| {
                let weight =
                    |j: usize| f64::from(weights[i / ABREAST * ABREAST * features + j * ABREAST + i % ABREAST]);
                let products = (0..features).map(|j| weight(j) * f64::from(columns[j * TILE + lane]));
                products.sum::<f64>() + f64::from(biases[i] * signs[lane])
            };
            for isa in Isa::ALL {
                let mut counts = vec![0; count];
                screen(isa, tile, rough, &mut counts);
                for (i, count) in counts.into_iter().enumerate() {
                    let wrong = (0..TILE).filter(|&lane| valid >> lane & 1 == 1 && scores(i, lane) < 0.0).count();
                    let least = (0..TILE).fold(f64::INFINITY, |least, lane| least.min(scores(i, lane).abs()));
                    let margin = f64::from(rough.margin(i, tile));
                    assert!(count == UNSURE || (usize::from(count) == wrong && least > margin / 2.0), "{}", isa.name());
                    assert!(count != UNSURE || least < 2.0 * margin, "{}", isa.name());
                }
            }
        }
    }
}
