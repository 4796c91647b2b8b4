//! Subset selection: a report is a set of values, which a number stands for.

use super::category::{Categories, MOST_REPORTS};
use super::{is_prime, keep_probability};
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::noise::Rng;
use crate::params::Epsilon;
use crate::run::Run;
use crate::simd::{Below, Keep};

/// Moduli are smaller.
const MOST_ITEMS: u32 = 1 << 15;

/// Sets of `width` items, numbered. Each item is in as many of them, and so is each pair of items.
#[derive(Clone, Debug)]
pub struct Subsets {
    items: u64,
    width: u64,
    family: Family,
}

/// Which sets there are.
#[derive(Clone, Debug)]
enum Family {
    /// All sets, in the order of their largest items: items c_1 < ... < c_w have the number C(c_1, 1) + ... + C(c_w, w).
    /// Row n holds C(n, 0), ..., C(n, w).
    All(Vec<Vec<u64>>),
    /// For a prime number p of items, each a in 1, ..., (p - 1)/2 and each b in 0, ..., p - 1, the items x with
    /// (a x + b) mod p < w. Their number is (a - 1) p + b. The maps x -> a x + b for all a but 0 take each pair of
    /// items to each other pair once, and -a with w - 1 - b gives the set of a with b again.
    Progressions,
}

impl Subsets {
    /// All sets of so many of the items.
    pub fn all(items: u32, width: u32) -> Result<Subsets> {
        let (n, w) = (items as usize, width as usize);
        if !(1..MOST_ITEMS).contains(&items) || !(1..=items).contains(&width) {
            return Err(refused(items, width));
        }
        let mut rows: Vec<Vec<u64>> = Vec::with_capacity(n + 1);
        for row in 0..=n {
            let mut numbers = vec![0; w + 1];
            numbers[0] = 1;
            for i in 1..=w.min(row) {
                // What is too large is refused below, so that it may be cut here.
                numbers[i] = (rows[row - 1][i - 1] + rows[row - 1][i]).min(u64::from(MOST_REPORTS) + 1);
            }
            rows.push(numbers);
        }
        if rows[n][w] > u64::from(MOST_REPORTS) {
            return Err(refused(items, width));
        }
        Ok(Subsets { items: n as u64, width: w as u64, family: Family::All(rows) })
    }

    /// The progressions of so many items, for a prime number of items above 2.
    pub fn progressions(items: u32, width: u32) -> Result<Subsets> {
        let is_field = (3..MOST_ITEMS).contains(&items) && is_prime(items);
        if !is_field || !(1..items).contains(&width) {
            return Err(refused(items, width));
        }
        Ok(Subsets { items: u64::from(items), width: u64::from(width), family: Family::Progressions })
    }

    /// How many sets there are, and how many hold an item.
    fn sizes(&self) -> (u64, u64) {
        let (n, w) = (self.items as usize, self.width as usize);
        match &self.family {
            Family::All(rows) => (rows[n][w], rows[n - 1][w - 1]),
            Family::Progressions => ((self.items - 1) / 2 * self.items, (self.items - 1) / 2 * self.width),
        }
    }

    /// The set that holds an item and has that number among those that do.
    #[inline]
    fn holding(&self, item: u64, number: u64) -> u64 {
        match &self.family {
            Family::All(rows) => insert(rows, self.width as usize, item, number),
            Family::Progressions => {
                let (factor, place) = (number / self.width, number % self.width);
                let shift = (place + self.items - (factor + 1) * item % self.items) % self.items;
                factor * self.items + shift
            }
        }
    }

    /// How many reports hold each of the first k items, from how often each set is reported.
    ///
    /// Cost: O(sets) for progressions. O(sets of other counts than 0, times items) for all sets, which are few.
    pub fn add_up(&self, counts: &[i64], k: usize, run: Run<'_>) -> Result<Vec<i64>> {
        if counts.len() as u64 != self.sizes().0 || !(1..=self.items as usize).contains(&k) {
            return Err(Error::parameter(
                "counts",
                counts.len(),
                "there must be one for each set, and an item or more",
            ));
        }
        match &self.family {
            Family::All(rows) => add_sets(rows, self.width as usize, counts, k, run),
            Family::Progressions => add_progressions(self.items as usize, self.width as usize, counts, k, run),
        }
    }
}

/// The number of the set of an item and of the others, which have that number among the sets of all items but this one.
#[inline]
fn insert(rows: &[Vec<u64>], width: usize, item: u64, mut others: u64) -> u64 {
    let (mut number, mut place, mut below) = (0, width, rows.len() - 2);
    for left in (1..width).rev() {
        below = largest(rows, below, left, others);
        others -= rows[below][left];
        let other = below as u64 + u64::from(below as u64 >= item);
        if place == left + 1 && other < item {
            number += rows[item as usize][place];
            place -= 1;
        }
        number += rows[other as usize][place];
        place -= 1;
    }
    if place == 1 { number + rows[item as usize][1] } else { number }
}

/// The largest item below another for which the sets of smaller largest items are no more than the number.
#[inline]
fn largest(rows: &[Vec<u64>], below: usize, size: usize, number: u64) -> usize {
    (0..below).rev().find(|&item| rows[item][size] <= number).unwrap_or(0)
}

fn add_sets(rows: &[Vec<u64>], width: usize, counts: &[i64], k: usize, run: Run<'_>) -> Result<Vec<i64>> {
    let mut held = zeros(Some(rows.len() - 1))?;
    for (number, &count) in counts.iter().enumerate().filter(|&(_, &count)| count != 0) {
        run.check()?;
        let (mut number, mut below) = (number as u64, rows.len() - 1);
        for size in (1..=width).rev() {
            below = largest(rows, below, size, number);
            number -= rows[below][size];
            held[below] += count;
        }
    }
    held.truncate(k);
    Ok(held)
}

fn add_progressions(items: usize, width: usize, counts: &[i64], k: usize, run: Run<'_>) -> Result<Vec<i64>> {
    let (mut held, mut inside) = (zeros(Some(k))?, vec![0; items]);
    for (factor, shifts) in (1..).zip(counts.chunks_exact(items)) {
        run.check()?;
        // An item that goes to z is in the sets of the shifts from -z on, as many as a set has items.
        let mut sum: i64 = shifts[..width].iter().sum();
        for z in 0..items {
            inside[z] = sum;
            sum += shifts[items - 1 - z] - shifts[(items - 1 - z + width) % items];
        }
        let mut place = 0;
        for held in &mut held {
            *held += inside[place];
            place += factor;
            place -= if place >= items { items } else { 0 };
        }
    }
    Ok(held)
}

fn refused(items: u32, width: u32) -> Error {
    let rule = "a set needs an item, and there may be 2^31 sets, and for progressions an odd prime number of items";
    Error::parameter("sizes", format!("{items} and {width}"), rule)
}

/// Subset selection for one of k values (Ye and Barg 2018): a set of which those with the value are up to e^epsilon
/// times as likely as all others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: a word of the stream for each draw, and rarely more.
#[derive(Clone, Debug)]
pub struct Selection {
    subsets: Subsets,
    k: i64,
    any: Below,
    own: Below,
    keep: Keep,
}

impl Selection {
    /// Randomizes `k` values, at most as many as there are items.
    pub fn new(k: u64, subsets: Subsets, epsilon: Epsilon) -> Result<Selection> {
        if !(2..=subsets.items).contains(&k) {
            return Err(Error::parameter("k", k, "there must be 2 values, and no more than items"));
        }
        let (all, own) = subsets.sizes();
        let keep = Keep::new(keep_probability(epsilon, own, all).0);
        Ok(Selection { subsets, k: k as i64, any: Below(all as u32), own: Below(own as u32), keep })
    }
}

impl Categories for Selection {
    #[inline]
    fn draw(&self, value: i64, word: u64, rng: &mut Rng) -> i64 {
        if self.keep.is_told(word, || rng.next_u64()) {
            let number = self.own.draw(word, || rng.next_u64());
            self.subsets.holding(value.clamp(0, self.k - 1) as u64, number) as i64
        } else {
            self.any.draw(word, || rng.next_u64()) as i64
        }
    }
}
