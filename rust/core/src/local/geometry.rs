//! Projective geometry response: a report of a few bytes about one of many values, and a fast way to add reports up.

use super::category::{Categories, MOST_REPORTS};
use super::{is_prime, keep_probability};
use crate::error::{Error, Result};
use crate::memory::zeros;
use crate::noise::Rng;
use crate::params::Epsilon;
use crate::run::Run;
use crate::simd::{Below, Divisor, Keep};

/// The field has fewer elements.
const MOST_ELEMENTS: u32 = 1 << 15;

/// The points of a projective space over the field of a prime number q of elements.
///
/// A point is a vector of `dimension` coordinates, up to a factor. As a number to the base q, with coordinate 0 as its
/// unit, it has 1 as its leading digit. The points are numbered in the order of these numbers: those with r digits
/// behind the leading one begin at `starts[r]` = (q^r - 1)/(q - 1).
///
/// A value is a point, too, whose digits are the coordinates in the opposite order: its unit is the last coordinate.
/// The points y of value v are those whose inner product with it is 0, a hyperplane.
#[derive(Clone, Debug)]
pub struct Space {
    q: u32,
    by_q: Divisor,
    dimension: usize,
    powers: Vec<u64>,
    starts: Vec<u64>,
}

impl Space {
    /// The space of that dimension, of 2 coordinates or more. There may be 2^31 points.
    pub fn new(q: u32, dimension: u32) -> Result<Space> {
        let is_field = q < MOST_ELEMENTS && is_prime(q);
        let most = u64::from(MOST_REPORTS);
        let (mut powers, mut starts) = (vec![1], vec![0]);
        while is_field && starts.len() <= dimension as usize && starts[starts.len() - 1] <= most {
            starts.push(starts[starts.len() - 1] + powers[powers.len() - 1]);
            powers.push(powers[powers.len() - 1] * u64::from(q));
        }
        if dimension < 2 || starts.len() != dimension as usize + 1 || starts[dimension as usize] > most {
            let rule = "q must be a prime number below 2^15, and there may be 2^31 points of 2 coordinates or more";
            return Err(Error::parameter("sizes", format!("{q} and {dimension}"), rule));
        }
        Ok(Space { q, by_q: Divisor::new(q), dimension: dimension as usize, powers, starts })
    }

    /// The number of points of this space with so many coordinates only.
    fn points(&self, coordinates: usize) -> u64 {
        self.starts[coordinates]
    }

    /// The digits behind the leading one of a point, and how many there are.
    #[inline]
    fn digits(&self, point: u64) -> (u64, usize) {
        let mut count = self.dimension - 1;
        while self.starts[count] > point {
            count -= 1;
        }
        (point - self.starts[count], count)
    }

    /// The point of a value's hyperplane that corresponds to a point of the space of one coordinate less.
    ///
    /// The coordinate where the value has its leading digit is left open, and follows from the others. The value is 0
    /// in all coordinates below it. Where the others above it are 0, it is 0; otherwise a higher one leads, with a 1.
    #[inline]
    fn on_hyperplane(&self, value: u64, point: u64) -> u64 {
        let ((own, own_count), (rest, count)) = (self.digits(value), self.digits(point));
        let open = self.dimension - 1 - own_count;
        let number = self.powers[count] + rest;
        if count < open {
            return point;
        }
        let (high, low) = (number / self.powers[open], number % self.powers[open]);
        let (mut left, mut product) = (high, 0);
        for place in (0..own_count).rev().take(count - open + 1) {
            let (quotient, digit) = self.by_q.divide(left);
            let (_, own_digit) = self.by_q.divide(own / self.powers[place]);
            product += digit * own_digit;
            left = quotient;
        }
        let q = u64::from(self.q);
        let closing = (q - product % q) % q;
        let whole = (high * q + closing) * self.powers[open] + low;
        whole - self.powers[count + 1] + self.starts[count + 1]
    }

    /// How many reports lie on the hyperplane of each of the first k values, from how often each point is reported.
    ///
    /// ```text
    /// One coordinate after the other: for each start v of a value and each end y of a point,
    ///     sums[v][y][s] = reports of the points with that end whose inner product with v, so far, is s
    ///     sums[v, d][y][s] = sum over c of sums[v][c, y][s - d c]
    /// Starts of values and ends of points are normed, so that there are few of them; ends may also be 0.
    /// Starts are visited in depth, so that no more than one table for each coordinate is held.
    /// ```
    ///
    /// Cost: about q t K additions for K points of t coordinates, and memory for twice as many numbers as points.
    pub fn add_up(&self, counts: &[i64], k: usize, run: Run<'_>) -> Result<Vec<i64>> {
        if counts.len() as u64 != self.points(self.dimension) || !(1..=counts.len()).contains(&k) {
            return Err(Error::parameter(
                "counts",
                counts.len(),
                "there must be one for each point, and a value or more",
            ));
        }
        let (q, mut held) = (self.q as usize, zeros(Some(k))?);
        let size = |level: usize| (1 + self.points(self.dimension - level) as usize) * q;
        let mut tables = Vec::new();
        for level in 1..=self.dimension {
            tables.push(zeros(Some(size(level)))?);
        }
        // The sums of a value that has been 0 so far, by the end of the point; the first of them is of the end 0.
        let mut ends = zeros(Some(1 + counts.len()))?;
        ends[1..].copy_from_slice(counts);
        for level in 1..=self.dimension {
            let Some((table, deeper)) = tables[level - 1..].split_first_mut() else { break };
            table[..2].copy_from_slice(&ends[..2]);
            table[2..q].fill(0);
            let (whole, rest) = ends.split_at(2);
            table[q..].copy_from_slice(rest);
            if self.least_value(0, level) < k as u64 {
                self.descend((level, 0), table, deeper, &mut held, run)?;
            }
            let next = 1 + self.points(self.dimension - level) as usize;
            let mut shorter = zeros(Some(next))?;
            shorter[0] = whole[0] + whole[1];
            for (sum, parts) in shorter[1..].iter_mut().zip(rest.chunks_exact(q)) {
                *sum = parts.iter().sum();
            }
            ends = shorter;
        }
        Ok(held)
    }

    /// The least value that begins so.
    fn least_value(&self, start: u64, level: usize) -> u64 {
        (level..self.dimension).fold(start, |start, _| 1 + u64::from(self.q) * start)
    }

    fn descend(
        &self,
        (level, start): (usize, u64),
        table: &[i64],
        deeper: &mut [Vec<i64>],
        held: &mut [i64],
        run: Run<'_>,
    ) -> Result<()> {
        let Some((next, deeper)) = deeper.split_first_mut() else {
            held[start as usize] = table[0];
            return Ok(());
        };
        run.check()?;
        let q = self.q as usize;
        for digit in 0..q {
            let longer = 1 + start * q as u64 + digit as u64;
            if self.least_value(longer, level + 1) >= held.len() as u64 {
                break;
            }
            if deeper.is_empty() {
                held[longer as usize] = table[0] + table[q + (q - digit) % q];
                continue;
            }
            next[..q].copy_from_slice(&table[..q]);
            add_turned(&mut next[..q], &table[q..2 * q], digit);
            for (sums, parts) in next[q..].chunks_exact_mut(q).zip(table[2 * q..].chunks_exact(q * q)) {
                let (mut turn, mut parts) = (0, parts.chunks_exact(q));
                sums.copy_from_slice(parts.next().unwrap_or(&[]));
                for part in parts {
                    turn = (turn + digit) % q;
                    add_turned(sums, part, turn);
                }
            }
            self.descend((level + 1, longer), next, deeper, held, run)?;
        }
        Ok(())
    }
}

/// Adds an array to another of the same length, each number so many places later, beginning again at the end.
#[inline]
fn add_turned(sums: &mut [i64], part: &[i64], places: usize) {
    let (first, last) = part.split_at(part.len() - places);
    let (start, end) = sums.split_at_mut(places);
    end.iter_mut().zip(first).for_each(|(sum, number)| *sum += number);
    start.iter_mut().zip(last).for_each(|(sum, number)| *sum += number);
}

/// Projective geometry response to one of k values (Feldman, Nelson, Nguyen and Talwar 2022): a point of the space, of
/// which those on the value's hyperplane are up to e^epsilon times as likely as all others.
///
/// Guarantee: pure epsilon-DP, whatever the value.
///
/// Cost: a word of the stream for each draw, and rarely more.
#[derive(Clone, Debug)]
pub struct Geometry {
    space: Space,
    k: i64,
    any: Below,
    own: Below,
    keep: Keep,
}

impl Geometry {
    /// Randomizes `k` values, at most as many as there are points in the space.
    pub fn new(k: u64, space: Space, epsilon: Epsilon) -> Result<Geometry> {
        let (all, own) = (space.points(space.dimension), space.points(space.dimension - 1));
        if !(2..=all).contains(&k) {
            return Err(Error::parameter("k", k, "there must be 2 values, and no more than points"));
        }
        let keep = Keep::new(keep_probability(epsilon, own, all).0);
        Ok(Geometry { space, k: k as i64, any: Below(all as u32), own: Below(own as u32), keep })
    }
}

impl Categories for Geometry {
    #[inline]
    fn draw(&self, value: i64, word: u64, rng: &mut Rng) -> i64 {
        if self.keep.is_told(word, || rng.next_u64()) {
            let point = self.own.draw(word, || rng.next_u64());
            self.space.on_hyperplane(value.clamp(0, self.k - 1) as u64, point) as i64
        } else {
            self.any.draw(word, || rng.next_u64()) as i64
        }
    }
}
