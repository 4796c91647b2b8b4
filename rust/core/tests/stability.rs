//! Votes, tables and answers of the core crate, used as from Rust.

#![allow(clippy::unwrap_used)]

use hdp_fast_core::noise::Seed;
use hdp_fast_core::params::Epsilon;
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::{Isa, LANE, VOTES, add_votes};
use hdp_fast_core::stability::{Plurality, Promise, Remaining, TableKind, plurality, respond_to_counts, respond_twice};

fn arms() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

fn alone() -> Run<'static> {
    Run::alone(Isa::Portable)
}

fn promise(kind: TableKind) -> Promise {
    Promise::new(kind, 40, Epsilon::new(1.0).unwrap(), 1e-6, 0.05).unwrap()
}

#[test]
fn votes_are_counted_on_every_arm_and_at_every_awkward_width() {
    for width in [1, 31, 32, 63, 64, 65, 127, 300] {
        for members in [1, 14, 15, 16, 31, VOTES] {
            for labels in [1, 2, 5, 9, 10, 11, 21, 245, 255] {
                let vote = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
                let votes: Vec<u8> = (0..members * width).map(vote).collect();
                let rows: Vec<&[u8]> = votes.chunks(width).collect();
                let mut expected = vec![[0; LANE]; width.div_ceil(LANE) * labels];
                for (query, &said) in rows.iter().flat_map(|row| row.iter().enumerate()) {
                    if (1..=labels).contains(&usize::from(said)) {
                        expected[query / LANE * labels + usize::from(said) - 1][query % LANE] += 1;
                    }
                }
                for isa in arms() {
                    let mut tile = vec![[0; LANE]; expected.len()];
                    add_votes(isa, &rows, labels, &mut tile);
                    assert!(tile == expected, "{members} members, {width} queries, {labels} labels, {isa:?}");
                }
            }
        }
    }
}

#[test]
fn the_distance_counts_every_label() {
    for (counts, winner, distance) in [
        (vec![3, 3], 0, 0),
        (vec![3, 4], 1, 0),
        (vec![4, 3], 0, 0),
        (vec![5, 3], 0, 1),
        (vec![3, 6], 1, 1),
        (vec![0, 9, 4, 4], 1, 2),
        (vec![4, 9, 4, 0], 1, 2),
        (vec![0, 0, 0], 0, 0),
        (vec![7], 0, u32::MAX),
    ] {
        assert_eq!(plurality(&counts), Plurality { winner, distance }, "{counts:?}");
    }
}

#[test]
fn a_table_is_refused_once_a_step_is_longer() {
    for kind in [TableKind::Hazard(2), TableKind::Vote] {
        let promise = promise(kind);
        let words = promise.design(alone()).unwrap();
        assert!(promise.verify(&words, alone()).unwrap() <= 1.0);
        for level in 0..words.len() - 1 {
            let mut longer = words.clone();
            longer.remove(level);
            assert!(promise.verify(&longer, alone()).is_err(), "{kind:?}, level {level}");
        }
        assert!(promise.verify(&[], alone()).is_err());
        assert!(promise.verify(&words[..words.len() - 1], alone()).is_err());
    }
}

#[test]
fn answers_end_at_the_last_bottom() {
    // The last level's coin may fail four answers, each with probability beta / queries.
    let surely = Promise::new(TableKind::Hazard(2), 40, Epsilon::new(1.0).unwrap(), 1e-6, 1e-9).unwrap();
    let words = surely.design(alone()).unwrap();
    let counts = [[9_000, 0], [5, 5], [0, 9_000], [5, 5], [9_000, 0]].concat();
    let (seed, run) = (Seed::from_os().unwrap(), alone());
    assert_eq!(respond_to_counts(&words, &counts, 2, 2, &seed, run).unwrap(), (vec![0, -1, 1, -1], 2));
    let near = Plurality { winner: 3, distance: 0 };
    let far = Plurality { winner: 4, distance: u32::MAX };
    let mut left = Remaining { bottoms: 3, queries: 9 };
    let pairs = [[far, near], [near, far], [near, near], [far, far]];
    assert_eq!(respond_twice(&words, &pairs, &mut left, &seed, run).unwrap(), [8, 9, -1]);
    assert_eq!(left, Remaining { bottoms: 0, queries: 4 });
}
