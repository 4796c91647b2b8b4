//! Who of a stage is asked which of its queries: a public rule of the invitation's number and the stage's key.

use sha2::{Digest, Sha256};

use crate::error::{Refusal, Result};

/// The most queries that a stage may have.
pub const MOST_QUERIES: usize = 10_000;

/// The sum of the shares lies below this, so that every reader of JSON has them exactly.
const MOST_SHARES: u64 = 1 << 53;

const DOMAIN: &[u8] = b"hdp_fast.stage";

/// The shares of a stage's queries, as the sums that the draw is compared with.
#[derive(Clone, Debug)]
pub struct Shares {
    key: [u8; 16],
    sums: alloc::vec::Vec<u64>,
}

impl Shares {
    /// One positive share for each query.
    pub fn new(key: [u8; 16], shares: &[u64]) -> Result<Shares> {
        let refusal = |rule| Err(Refusal::new("shares", rule));
        if shares.is_empty() || shares.len() > MOST_QUERIES {
            return refusal("there must be from 1 to 10,000");
        }
        let (mut sums, mut sum) = (alloc::vec::Vec::with_capacity(shares.len()), 0u64);
        for &share in shares {
            if share == 0 {
                return refusal("each must be at least 1");
            }
            sum = sum.saturating_add(share);
            sums.push(sum);
        }
        if sum < MOST_SHARES { Ok(Shares { key, sums }) } else { refusal("their sum must be below 2**53") }
    }

    /// The place of the query that the person of this invitation number is asked.
    pub fn place(&self, number: u64) -> usize {
        let hash =
            Sha256::new().chain_update(DOMAIN).chain_update(self.key).chain_update(number.to_be_bytes()).finalize();
        let draw = hash.iter().take(8).fold(0u64, |draw, &byte| (draw << 8) | u64::from(byte));
        let sum = self.sums.last().copied().unwrap_or(1);
        let mark = ((u128::from(draw) * u128::from(sum)) >> 64) as u64;
        self.sums.partition_point(|&sum| sum <= mark)
    }
}
