//! What holds for any bytes: of the code of devices, of matrices over GF(2) and of kernels in all their arms.
//!
//! Here the stored corpus is tried; `make fuzz` looks for bytes that break a property (rust/fuzz).
#![allow(clippy::unwrap_used, clippy::panic, dead_code, missing_docs)]

use hdp_fast_core::gf2::{BitMatrix, RowSpace, System, echelon_form, inverse, parity_bits, ple, row_basis, solve};
use hdp_fast_core::run::Run;
use hdp_fast_core::simd::{self, Isa, Matrix};
use hdp_fast_device::query::Record;
use hdp_fast_device::{device as code, signature};

fn arms() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

/// Bytes that are taken from the front, and 0 where none are left.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % bound
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn floats(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| f64::from_bits(self.word())).collect()
    }
}

// Devices -----------------------------------------------------------------------------------------

const SECRET: [u8; 32] = [7; 32];

/// A question that its owner has signed, whatever is in it: a device answers, or says in one object what is wrong, and
/// asks for random bytes only once it is sure. The bytes are the question, 0, and what else stands in the input.
pub fn device(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (question, rest) = text.split_once('\0').unwrap_or((&text, ""));
    // No input leads to a panic, signed or not.
    assert!(is_reply(&code::describe(question)));
    let signature = signature::to_hex(&signature::sign(&SECRET, &signature::message(question)));
    let form = "\"format\":\"hdp_fast.signed\",\"version\":1";
    let envelope = format!("{{{form},\"question\":{},\"signature\":\"{signature}\"}}", quoted(question));
    let key = signature::to_hex(&signature::public(&SECRET));
    let comma = if rest.is_empty() { "" } else { "," };
    let input = format!("{{\"signed\":{},\"key\":\"{key}\"{comma}{rest}}}", quoted(&envelope));
    assert!(is_reply(&code::describe(&input)));
    let mut drawn = 0;
    let reply = code::answer(&input, &mut |bytes| {
        bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (91 * (drawn + i) % 256) as u8);
        drawn += bytes.len();
        Ok(())
    });
    assert!(is_reply(&reply));
    if reply.starts_with("{\"error\"") {
        assert_eq!(drawn, 0, "random bytes for no line");
    } else {
        assert!(reply.starts_with("{\"line\":\"{") && drawn >= 24 && drawn % 8 == 0, "{reply}");
    }
    let record = Record { features: vec![0.5, f64::NAN, -1.0, 1.0], label: 1.0 };
    let line = code::line(question, Some(3), &record, &mut |bytes| {
        bytes.fill(0x5a);
        Ok(())
    });
    match line {
        Ok(line) => assert!(is_reply(&line) && line.starts_with("{\"format\":\"hdp_fast.report\"")),
        Err(refusal) => assert!(!refusal.name.is_empty() && !refusal.rule.is_empty()),
    }
}

/// Whether a text is an object that a device reads; what is in it, no invitation has.
fn is_reply(text: &str) -> bool {
    let told = code::describe(text);
    told.starts_with("{\"error\":{\"name\":") && told.ends_with("}}") && !told.contains("it must be JSON")
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", letter as u32)),
            _ => out.push(letter),
        }
    }
    out + "\""
}

// Matrices ----------------------------------------------------------------------------------------

/// Sizes reach beyond two blocks of 64.
const LARGEST: usize = 150;

type Dense = Vec<Vec<u8>>;

/// A matrix of these bits; beyond them one repeats, so that a few bytes are a large matrix.
fn dense(bytes: &mut Bytes<'_>, rows: usize, columns: usize) -> Dense {
    let style = bytes.byte() % 4;
    let seed: Vec<u8> = (0..32).map(|_| bytes.byte()).collect();
    let bit = |i: usize, j: usize| match style {
        0 => seed[(i * columns + j) / 8 % 32] >> ((i * columns + j) % 8) & 1,
        1 => u8::from(i == j) ^ (seed[i % 32] >> (j % 8) & seed[j % 32] & 1),
        2 => (seed[i % 32] & seed[j % 32]).count_ones() as u8 & 1,
        _ => u8::from(seed[(7 * i + 13 * j) % 32] % 8 == 1),
    };
    (0..rows).map(|i| (0..columns).map(|j| bit(i, j)).collect()).collect()
}

fn matrix(dense: &Dense, columns: usize) -> BitMatrix {
    let words = dense.iter().flat_map(|row| parity_bits(row).unwrap()).collect();
    BitMatrix::from_words(dense.len(), columns, words).unwrap()
}

fn entries(matrix: &BitMatrix) -> Dense {
    (0..matrix.rows()).map(|i| (0..matrix.columns()).map(|j| matrix.bit(i, j)).collect()).collect()
}

fn product(a: &Dense, b: &Dense, columns: usize) -> Dense {
    let row = |row: &Vec<u8>| {
        let mut sum = vec![0; columns];
        for (_, other) in row.iter().zip(b).filter(|(bit, _)| **bit == 1) {
            sum.iter_mut().zip(other).for_each(|(sum, bit)| *sum ^= bit);
        }
        sum
    };
    a.iter().map(row).collect()
}

/// The reduced row echelon form by the schoolbook method.
fn schoolbook(mut rows: Dense, columns: usize) -> Dense {
    let mut top = 0;
    for column in 0..columns {
        let Some(found) = (top..rows.len()).find(|&i| rows[i][column] == 1) else { continue };
        rows.swap(top, found);
        let pivot = rows[top].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, row)| *i != top && row[column] == 1) {
            row.iter_mut().zip(&pivot).for_each(|(a, b)| *a ^= b);
        }
        top += 1;
    }
    rows.truncate(top);
    rows
}

/// Forms, products, inverses, solutions and spaces of a matrix, on every instruction set as by the schoolbook; a form
/// from elsewhere becomes a space if and only if it is one.
pub fn matrices(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (rows, columns) = (bytes.below(LARGEST), 1 + bytes.below(LARGEST));
    let (a, b) = (dense(&mut bytes, rows, columns), dense(&mut bytes, rows, 1));
    let rhs: Vec<u8> = b.iter().map(|row| row[0]).collect();
    let system: Dense = a.iter().zip(&rhs).map(|(row, &bit)| [row.as_slice(), &[bit]].concat()).collect();
    let form = schoolbook(system.clone(), columns + 1);
    let consistent = form.last().is_none_or(|row| row[..columns].contains(&1));
    let given = matrix(&system, columns + 1);
    let alone = Run::alone(Isa::Portable);
    assert_eq!(RowSpace::from_basis(&given, alone).is_ok(), system == form);
    if let Ok(space) = RowSpace::from_bytes(data) {
        assert_eq!(space.to_bytes().unwrap(), data);
    }
    let (packed, packed_rhs) = (matrix(&a, columns), parity_bits(&rhs).unwrap());
    for isa in arms() {
        let run = Run::alone(isa);
        let reduced = schoolbook(a.clone(), columns);
        assert_eq!(entries(&row_basis(&packed, run).unwrap().0), reduced);
        assert_eq!(schoolbook(entries(&echelon_form(&packed, run).unwrap()), columns), reduced);
        let wanted = System { matrix: &packed, rows: None, ones: false, rhs: Some(&packed_rhs) };
        let solution = solve(&wanted, run).unwrap();
        let space = solution.row_space(run).unwrap();
        assert_eq!(entries(&space.basis(run).unwrap()), form);
        assert_eq!((space.consistent(), space.unknowns()), (consistent, columns));
        check_parts(&space, &system, columns, run);
        match solution.particular(run).unwrap() {
            None => assert!(!consistent),
            Some(x) => assert_eq!(packed.dot(&parity_bits(&x).unwrap(), run).unwrap(), rhs),
        }
        let null = solution.null_space(run).unwrap();
        assert_eq!(null.rows(), columns - solution.rank());
        let image = packed.multiply(&null.transposed(run).unwrap(), run).unwrap();
        assert_eq!(entries(&image), vec![vec![0; null.rows()]; rows]);
        check_factors(&packed, &a, run);
    }
}

/// A space is what its form makes, and what the spaces of two parts have in common.
fn check_parts(space: &RowSpace, system: &Dense, columns: usize, run: Run<'_>) {
    assert!(RowSpace::from_basis(&space.basis(run).unwrap(), run).unwrap() == *space);
    assert!(RowSpace::from_bytes(&space.to_bytes().unwrap()).unwrap() == *space);
    let middle = system.len() / 3;
    let part = |rows: &[Vec<u8>]| {
        let form = schoolbook(rows.to_vec(), columns + 1);
        RowSpace::from_basis(&matrix(&form, columns + 1), run).unwrap()
    };
    assert!(part(&system[..middle]).join(&part(&system[middle..]), run).unwrap() == *space);
}

fn check_factors(packed: &BitMatrix, a: &Dense, run: Run<'_>) {
    let (rows, columns) = (packed.rows(), packed.columns());
    let factors = ple(packed, run).unwrap();
    let permuted: Dense = factors.rows.iter().map(|&row| a[row].clone()).collect();
    assert_eq!(product(&entries(&factors.lower), &entries(&factors.echelon), columns), permuted);
    let transposed = packed.transposed(run).unwrap();
    let square = packed.multiply(&transposed, run).unwrap();
    assert_eq!(entries(&square), product(a, &entries(&transposed), rows));
    if let Some(inverse) = (rows == columns).then(|| inverse(packed, run).unwrap()).flatten() {
        let whole = packed.multiply(&inverse, run).unwrap();
        assert_eq!(entries(&whole), entries(&BitMatrix::identity(rows).unwrap()));
    }
}

// Kernels -----------------------------------------------------------------------------------------

/// Kernels of any numbers, of any length: each arm writes the bits of the portable one.
pub fn kernels(data: &[u8]) {
    let mut bytes = Bytes(data);
    let count = bytes.below(200);
    let columns = 1 + bytes.below(40);
    let numbers = bytes.floats(count);
    let small: Vec<u8> = (0..count).map(|_| bytes.byte()).collect();
    let step = (bytes.word() >> 14) as i64;
    let bits: Vec<u8> = small.iter().map(|byte| byte & 1).collect();
    let first = bytes.byte();
    // Sums of these are exact, in whatever order.
    let whole: Vec<f64> = small.iter().map(|&byte| f64::from(byte) - 128.0).collect();
    let rows: Vec<usize> = (0..count / columns).rev().collect();
    let w: Vec<f64> = (0..=columns).map(|j| f64::from(first >> (j % 8) & 1)).collect();
    let outcome = |isa: Isa| {
        let mut exponentials = numbers.clone();
        simd::exponentials(isa, &mut exponentials);
        let (mut logs, mut outside) = (vec![0; count], 0);
        simd::find_outside(isa, &numbers, &mut outside);
        simd::take_losses(isa, &mut logs, &numbers, step);
        simd::take_bits(isa, &mut logs, &small, step);
        let (mut capped, mut past) = (vec![0.0; count], vec![0.0; count]);
        simd::cap(isa, &numbers, 0.75, &mut capped);
        simd::cap_past_caches(isa, &numbers, 0.75, &mut past);
        let (mut coins, mut open) = (small.clone(), vec![0; count.div_ceil(simd::COINS)]);
        let seen = simd::keep_or_flip(isa, &mut coins, &bits, first, &mut open);
        let matrix = Matrix { entries: &whole, columns, constant: 1.0 };
        let (mut products, mut sum) = (vec![0.0; rows.len()], vec![0.0; columns + 1]);
        simd::inner_products(isa, matrix, &rows, &w, &mut products);
        let matrix = Matrix { entries: &whole, columns, constant: 1.0 };
        simd::add_rows(isa, matrix, &rows, &products, &mut sum);
        let reals = [exponentials, capped, past, products, sum];
        // What is no number has many forms.
        let forms = reals.map(|some| some.iter().map(|x| if x.is_nan() { None } else { Some(x.to_bits()) }).collect());
        let forms: [Vec<Option<u64>>; 5] = forms;
        (forms, outside, logs, coins, open, seen)
    };
    let portable = outcome(Isa::Portable);
    for isa in arms() {
        assert_eq!(outcome(isa), portable, "{isa:?}");
    }
}

// The stored corpus -------------------------------------------------------------------------------

/// Tries every stored file; libFuzzer's process is ended by a file that breaks a property, and so is this test.
fn replay(name: &str, property: fn(&[u8])) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus").join(name);
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 10);
    files.iter().for_each(|file| property(&std::fs::read(file).unwrap()));
}

#[test]
fn devices_answer_or_say_what_is_wrong() {
    replay("device", device);
}

#[test]
fn matrices_are_those_of_the_schoolbook_on_every_arm() {
    replay("matrices", matrices);
}

#[test]
fn kernels_write_the_same_bits_on_every_arm() {
    replay("kernels", kernels);
}
