//! Every arm of the elimination against the schoolbook method, at sizes that straddle the block.
#![allow(clippy::unwrap_used, missing_docs)]

use hdp_fast_core::gf2::{BitMatrix, Equations, RowSpace, System, parity_bits, rank, solve};
use hdp_fast_core::noise::{Rng, Seed, Stream};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::Isa;

const SIZES: [usize; 9] = [0, 1, 2, 63, 64, 65, 127, 128, 129];

type Dense = Vec<Vec<u8>>;

fn arms() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

fn matrix(dense: &Dense, columns: usize) -> BitMatrix {
    let words = dense.iter().flat_map(|row| parity_bits(row).unwrap()).collect();
    BitMatrix::from_words(dense.len(), columns, words).unwrap()
}

/// Reduced row echelon form of [dense | rhs] by the schoolbook method: its rows with a pivot, and consistency.
fn schoolbook(dense: &Dense, columns: usize, rhs: &[u8]) -> (Vec<usize>, Dense, bool) {
    let mut rows: Dense = dense.iter().zip(rhs).map(|(row, &b)| [row.as_slice(), &[b]].concat()).collect();
    let mut pivots = Vec::new();
    for column in 0..columns {
        let top = pivots.len();
        let Some(found) = (top..rows.len()).find(|&i| rows[i][column] == 1) else { continue };
        rows.swap(top, found);
        let pivot = rows[top].clone();
        for (i, row) in rows.iter_mut().enumerate() {
            if i != top && row[column] == 1 {
                row.iter_mut().zip(&pivot).for_each(|(a, b)| *a ^= b);
            }
        }
        pivots.push(column);
    }
    let consistent = rows[pivots.len()..].iter().all(|row| row[columns] == 0);
    rows.truncate(pivots.len());
    (pivots, rows, consistent)
}

fn bits(rng: &mut Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| (rng.next_u64() & 1) as u8).collect()
}

fn combine(rows: &Dense, coefficients: &[u8], columns: usize) -> Vec<u8> {
    let mut sum = vec![0; columns];
    for (row, _) in rows.iter().zip(coefficients).filter(|(_, c)| **c == 1) {
        sum.iter_mut().zip(row).for_each(|(a, b)| *a ^= b);
    }
    sum
}

/// `count` random rows inside a random space of the given dimension; `repeat` of each row follow one another.
fn low_rank(rng: &mut Rng, count: usize, columns: usize, dimension: usize, repeat: usize) -> Dense {
    let basis: Dense = (0..dimension).map(|_| bits(rng, columns)).collect();
    let mut rows: Dense = Vec::new();
    while rows.len() < count {
        let coefficients = bits(rng, dimension);
        let row = combine(&basis, &coefficients, columns);
        rows.extend(std::iter::repeat_n(row, repeat.min(count - rows.len())));
    }
    rows
}

fn apply(dense: &Dense, x: &[u8]) -> Vec<u8> {
    dense.iter().map(|row| row.iter().zip(x).fold(0, |sum, (a, b)| sum ^ (a & b))).collect()
}

fn check(dense: &Dense, columns: usize, rhs: &[u8], isa: Isa) {
    let run = Run::alone(isa);
    let packed = matrix(dense, columns);
    let (pivots, rows, consistent) = schoolbook(dense, columns, rhs);
    let system = System { matrix: &packed, rows: None, ones: false, rhs: Some(&parity_bits(rhs).unwrap()) };
    let solution = solve(&system, run).unwrap();
    let label = format!("{} x {columns}, {isa:?}", dense.len());
    assert_eq!(solution.rank(), pivots.len(), "rank of {label}");
    assert_eq!(solution.consistent, consistent, "consistency of {label}");
    assert_eq!(rank(&packed, run).unwrap(), pivots.len(), "{label}");
    let particular = solution.particular(run).unwrap();
    assert_eq!(particular.is_some(), consistent);
    if let Some(x) = particular {
        let mut expected = vec![0; columns];
        pivots.iter().zip(&rows).for_each(|(&column, row)| expected[column] = row[columns]);
        assert_eq!(x, expected, "solution of {label}");
        let drawn =
            solution.sample(&mut Seed::reproducible([1; 32]).stream(Stream::Solution, 0), run).unwrap().unwrap();
        assert_eq!(apply(dense, &drawn), rhs, "sample of {label}");
    }
    let free: Vec<usize> = (0..columns).filter(|column| !pivots.contains(column)).collect();
    let basis = solution.null_space(run).unwrap();
    assert_eq!(basis.rows(), free.len());
    for (v, &column) in free.iter().enumerate() {
        let vector: Vec<u8> = (0..columns).map(|i| (basis.row(v)[i / 64] >> (i % 64) & 1) as u8).collect();
        assert!(free.iter().all(|&other| vector[other] == u8::from(other == column)), "null space of {label}");
        assert!(apply(dense, &vector).iter().all(|&bit| bit == 0), "null space of {label}");
    }
}

#[test]
fn every_arm_agrees_with_the_schoolbook_at_awkward_sizes() {
    let mut rng = Seed::reproducible([7; 32]).stream(Stream::Speed, 1);
    for isa in arms() {
        for rows in SIZES {
            for columns in SIZES {
                for dimension in [0, 1, columns / 2, columns] {
                    let dense = low_rank(&mut rng, rows, columns, dimension, 1);
                    let x = bits(&mut rng, columns);
                    check(&dense, columns, &apply(&dense, &x), isa);
                    let noise = bits(&mut rng, rows);
                    check(&dense, columns, &noise, isa);
                }
            }
        }
    }
}

#[test]
fn structured_matrices_agree_with_the_schoolbook() {
    let mut rng = Seed::reproducible([8; 32]).stream(Stream::Speed, 2);
    for isa in arms() {
        for (rows, columns) in [(300, 300), (700, 330), (330, 700), (520, 257)] {
            let identity = |i: usize, j: usize| u8::from(i == j);
            let reversed = |i: usize, j: usize| u8::from(i + j == columns - 1);
            let late = |i: usize, j: usize| u8::from(i + 1 > rows / 2 && (i + 1 - rows / 2) == j);
            let lower = |i: usize, j: usize| u8::from(j <= i);
            let entries: [&dyn Fn(usize, usize) -> u8; 4] = [&identity, &reversed, &late, &lower];
            for entry in entries {
                let dense: Dense = (0..rows).map(|i| (0..columns).map(|j| entry(i, j)).collect()).collect();
                let noise = bits(&mut rng, rows);
                check(&dense, columns, &noise, isa);
            }
            for repeat in [1, 7, 200] {
                let dense = low_rank(&mut rng, rows, columns, columns / 3, repeat);
                let x = bits(&mut rng, columns);
                check(&dense, columns, &apply(&dense, &x), isa);
            }
        }
    }
}

#[test]
fn many_more_rows_than_columns() {
    let mut rng = Seed::reproducible([9; 32]).stream(Stream::Speed, 3);
    for isa in arms() {
        for (columns, dimension, repeat) in [(70, 70, 1), (70, 40, 1), (200, 199, 300), (200, 20, 50), (130, 129, 2000)]
        {
            let mut dense = low_rank(&mut rng, 5000, columns, dimension, repeat);
            let x = bits(&mut rng, columns);
            check(&dense, columns, &apply(&dense, &x), isa);
            // One row far down that nothing else implies: a new dimension, or a contradiction.
            dense[4321] = bits(&mut rng, columns);
            let mut rhs = apply(&dense, &x);
            check(&dense, columns, &rhs, isa);
            rhs[4444] ^= 1;
            check(&dense, columns, &rhs, isa);
        }
    }
}

/// The rows that are eliminated first may contradict each other, and yet leave unknowns to those that are verified.
#[test]
fn a_contradiction_is_kept_whichever_row_has_it() {
    for (columns, isa) in [66, 128].into_iter().flat_map(|columns| arms().map(move |isa| (columns, isa))) {
        let unit = |i: usize| (0..columns).map(|j| u8::from(i % columns == j)).collect();
        let dense: Dense = (0..2 * columns).map(unit).collect();
        let packed = matrix(&dense, columns);
        for wrong in (0..dense.len()).step_by(13) {
            let mut rhs = vec![0; dense.len()];
            rhs[wrong] = 1;
            let system = System { matrix: &packed, rows: None, ones: false, rhs: Some(&parity_bits(&rhs).unwrap()) };
            let solution = solve(&system, Run::alone(isa)).unwrap();
            assert_eq!((solution.rank(), solution.consistent), (columns, false), "row {wrong} of {columns}, {isa:?}");
        }
    }
}

/// The span of some rows of a system.
fn span(dense: &[Vec<u8>], columns: usize, rhs: &[u8], isa: Isa) -> RowSpace {
    let (packed, rhs) = (matrix(&dense.to_vec(), columns), parity_bits(rhs).unwrap());
    let system = System { matrix: &packed, rows: None, ones: false, rhs: Some(&rhs) };
    solve(&system, Run::alone(isa)).unwrap().row_space(Run::alone(isa)).unwrap()
}

fn basis(space: &RowSpace) -> BitMatrix {
    space.basis(Run::alone(Isa::Portable)).unwrap()
}

/// The span of the same rows, added so many at a time.
fn added(dense: &[Vec<u8>], columns: usize, rhs: &[u8], at_once: usize, isa: Isa) -> RowSpace {
    let run = Run::alone(isa);
    let mut equations = Equations::new(columns).unwrap();
    let packed = matrix(&dense.to_vec(), columns);
    let rhs = parity_bits(rhs).unwrap();
    let all: Vec<u32> = (0..dense.len() as u32).collect();
    for rows in all.chunks(at_once) {
        let system = System { matrix: &packed, rows: Some(rows), ones: false, rhs: Some(&rhs) };
        equations.add(&system, run).unwrap();
    }
    equations.into_space(run).unwrap()
}

#[test]
fn spans_of_parts_join_to_the_one_form_of_the_span_of_all() {
    let mut rng = Seed::reproducible([11; 32]).stream(Stream::Speed, 6);
    for columns in [1, 2, 63, 64, 65, 127, 128, 129] {
        for (rows, dimension, noisy) in [(0, 1, 0), (5, 2, 0), (40, 40, 1), (260, 3, 0), (260, 300, 0), (300, 128, 1)] {
            let dense = low_rank(&mut rng, rows, columns, dimension.min(columns), 1);
            let mut rhs = apply(&dense, &bits(&mut rng, columns));
            rhs.iter_mut().take(noisy).for_each(|bit| *bit ^= 1);
            let whole = span(&dense, columns, &rhs, Isa::Portable);
            let (pivots, reduced, consistent) = schoolbook(&dense, columns, &rhs);
            assert_eq!((whole.rank(), whole.consistent()), (pivots.len(), consistent));
            assert_eq!(basis(&whole).rows(), pivots.len() + usize::from(!consistent));
            if consistent {
                let form: Dense = reduced[..pivots.len()].to_vec();
                assert!(basis(&whole) == matrix(&form, columns + 1));
            }
            for isa in arms() {
                let run = Run::alone(isa);
                let parts: Vec<RowSpace> = [(0, rows / 3), (rows / 3, rows / 2), (rows / 2, rows)]
                    .iter()
                    .map(|&(from, to)| span(&dense[from..to], columns, &rhs[from..to], isa))
                    .collect();
                for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
                    let [a, b, c] = order.map(|i| &parts[i]);
                    assert!(a.join(b, run).unwrap().join(c, run).unwrap() == whole, "{rows} x {columns}");
                    assert!(a.join(&b.join(c, run).unwrap(), run).unwrap() == whole);
                }
            }
            assert!(RowSpace::from_basis(&basis(&whole), Run::alone(Isa::Portable)).unwrap() == whole);
            for (isa, at_once) in arms().zip([1, 64, 129, 200]) {
                assert!(added(&dense, columns, &rhs, at_once, isa) == whole, "{rows} x {columns}, {at_once} at a time");
            }
            check_members(&whole, &dense, &rhs, &mut rng);
            check_bytes(&whole);
            let solution = whole.solution(Run::alone(Isa::Portable)).unwrap();
            assert_eq!((solution.rank(), solution.consistent), (whole.rank(), whole.consistent()));
            assert!(solution.row_space(Run::alone(Isa::Portable)).unwrap() == whole);
        }
    }
}

/// A row follows exactly if it adds nothing to the span.
fn check_members(space: &RowSpace, dense: &[Vec<u8>], rhs: &[u8], rng: &mut Rng) {
    let run = Run::alone(Isa::Portable);
    let mut rows: Dense = dense.iter().take(3).cloned().collect();
    rows.extend((0..4).map(|_| bits(rng, space.unknowns())));
    rows.push(vec![0; space.unknowns()]);
    let mut sides = rhs[..rhs.len().min(3)].to_vec();
    sides.extend(bits(rng, rows.len() - sides.len()));
    let (packed, sides) = (matrix(&rows, space.unknowns()), parity_bits(&sides).unwrap());
    let system = System { matrix: &packed, rows: None, ones: false, rhs: Some(&sides) };
    let follows = space.contains(&system, run).unwrap();
    for (i, &follows) in follows.iter().enumerate() {
        let one = System { rows: Some(&[i as u32]), ..system };
        assert_eq!(follows == 1, space.add(&one, run).unwrap() == *space);
    }
    assert!(follows[..dense.len().min(3)].iter().all(|&follows| follows == 1));
}

/// There is one way to write a space: whatever byte is changed, the bytes are refused or are those of another space.
fn check_bytes(space: &RowSpace) {
    let bytes = space.to_bytes().unwrap();
    assert!(RowSpace::from_bytes(&bytes).unwrap() == *space);
    for place in (0..bytes.len()).step_by(1 + bytes.len() / 40) {
        assert!(RowSpace::from_bytes(&bytes[..place]).is_err());
        for flip in [1, 0x10, 0x80] {
            let mut broken = bytes.clone();
            broken[place] ^= flip;
            if let Ok(other) = RowSpace::from_bytes(&broken) {
                assert!(other != *space && other.to_bytes().unwrap() == broken);
                let basis = basis(&other);
                assert!(RowSpace::from_basis(&basis, Run::alone(Isa::Portable)).unwrap() == other);
            }
        }
    }
    assert!(RowSpace::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_err());
    let hostile = [&bytes[..23], &u64::MAX.to_le_bytes(), &[1]].concat();
    assert!(RowSpace::from_bytes(&hostile).is_err());
}

/// Affine systems, contradictions among the first rows and the later ones, and ranks that stay low.
#[test]
fn equations_that_come_in_parts_have_the_span_of_all() {
    let mut rng = Seed::reproducible([12; 32]).stream(Stream::Speed, 7);
    for (columns, dimension) in [(63, 20), (64, 64), (100, 97), (128, 3), (130, 130)] {
        let dense = low_rank(&mut rng, 700, columns, dimension, 1);
        let packed = matrix(&dense, columns);
        let fitting = apply(&dense, &bits(&mut rng, columns));
        for wrong in [None, Some(0), Some(columns / 2), Some(300), Some(699)] {
            let mut rhs = fitting.clone();
            wrong.into_iter().for_each(|i| rhs[i] ^= 1);
            let rhs = parity_bits(&rhs).unwrap();
            let whole = System { matrix: &packed, rows: None, ones: true, rhs: Some(&rhs) };
            for isa in arms() {
                let run = Run::alone(isa);
                let expected = solve(&whole, run).unwrap().row_space(run).unwrap();
                for at_once in [50usize, 192, 699] {
                    let mut equations = Equations::new(columns + 1).unwrap();
                    let rows: Vec<u32> = (0..700).collect();
                    for rows in rows.chunks(at_once) {
                        equations.add(&System { rows: Some(rows), ..whole }, run).unwrap();
                    }
                    assert!(equations.into_space(run).unwrap() == expected, "{columns}, {wrong:?}, {at_once}");
                }
            }
        }
    }
    let run = Run::alone(Isa::Portable);
    let matrix = BitMatrix::zeros(3, 5).unwrap();
    let system = System { matrix: &matrix, rows: None, ones: false, rhs: None };
    assert!(Equations::new(4).unwrap().add(&system, run).is_err());
}

#[test]
fn only_a_reduced_form_is_a_basis() {
    let run = Run::alone(Isa::Portable);
    for rows in [&[0b11u64, 0b10][..], &[0b10, 0b01], &[0b01, 0], &[0b01, 0b01]] {
        assert!(RowSpace::from_basis(&BitMatrix::from_words(2, 2, rows.to_vec()).unwrap(), run).is_err());
    }
    assert!(RowSpace::from_basis(&BitMatrix::from_words(2, 0, Vec::new()).unwrap(), run).is_err());
    let (one, other) = (span(&[vec![1]], 1, &[0], Isa::Portable), span(&[vec![1, 0]], 2, &[0], Isa::Portable));
    assert!(one.join(&other, Run::alone(Isa::Portable)).is_err());
}

#[test]
fn null_spaces_of_several_passes_are_verified_whole() {
    let mut rng = Seed::reproducible([9; 32]).stream(Stream::Speed, 5);
    // All rows but one lie in a small space; the odd one has its bit where only one pass looks.
    for last in [40, 1100, 2100, 2199] {
        let mut dense: Dense = low_rank(&mut rng, 2500, 30, 20, 1);
        dense.iter_mut().for_each(|row| row.resize(2200, 0));
        dense[2003][last] = 1;
        for (isa, value) in arms().flat_map(|isa| [(isa, 0), (isa, 1)]) {
            let mut rhs = apply(&dense, &bits(&mut rng, 2200));
            rhs[77] ^= value;
            let packed = matrix(&dense, 2200);
            let system = System { matrix: &packed, rows: None, ones: false, rhs: Some(&parity_bits(&rhs).unwrap()) };
            let solution = solve(&system, Run::alone(isa)).unwrap();
            assert_eq!((solution.rank(), solution.consistent), (21, value == 0), "{last}, {isa:?}");
        }
    }
}

#[test]
fn affine_systems_and_chosen_rows() {
    let mut rng = Seed::reproducible([10; 32]).stream(Stream::Speed, 4);
    for columns in [1, 62, 63, 64, 65, 130] {
        let dense: Dense = (0..400).map(|_| bits(&mut rng, columns)).collect();
        let x = bits(&mut rng, columns);
        let rhs: Vec<u8> = apply(&dense, &x).iter().map(|bit| bit ^ 1).collect();
        let packed = matrix(&dense, columns);
        let rows: Vec<u32> = (0..400).step_by(2).collect();
        let labels = parity_bits(&rhs).unwrap();
        let system = System { matrix: &packed, rows: Some(&rows), ones: true, rhs: Some(&labels) };
        let solution = solve(&system, Run::alone(Isa::detect().unwrap())).unwrap();
        let chosen: Dense = rows.iter().map(|&i| [dense[i as usize].as_slice(), &[1]].concat()).collect();
        let chosen_rhs: Vec<u8> = rows.iter().map(|&i| rhs[i as usize]).collect();
        let bits = solution.particular(Run::alone(Isa::Portable)).unwrap().unwrap();
        assert_eq!(apply(&chosen, &bits), chosen_rhs);
        assert_eq!(bits.len(), columns + 1);
    }
}
