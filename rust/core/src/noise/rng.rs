//! The random stream: AES-256 in counter mode, keyed by the operating system, or by a caller for tests.
//!
//! It is the output of CTR_DRBG (NIST SP 800-90A) for one key, without a new key within a call. The counter block is the
//! name of a stream (its purpose and index, 64 bits) and the number of a block in it (64 bits), both with the highest
//! byte first; a word is eight bytes with the lowest first. So a stream is the same on every processor.

use std::sync::Arc;

use aes::Aes256Enc;
use aes::cipher::{Array, InnerIvInit, KeyInit, StreamCipherCore, StreamCipherSeekCore};
use bytemuck::cast_slice_mut;
use ctr::CtrCore;
use ctr::flavors::Ctr64BE;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::error::{Error, Result};

/// The purpose of a stream. Streams of one key with different purposes or indices are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// Which records a mechanism samples.
    Sampling = 1,
    /// Whether a mechanism answers at all.
    Answer = 2,
    /// A uniform choice among solutions.
    Solution = 3,
    /// Randomized responses.
    Response = 4,
    /// Arrays of Bernoulli draws.
    Bernoulli = 5,
    /// Additive noise.
    Noise = 6,
    /// Choices that only affect running time.
    Speed = 7,
    /// The choice of one candidate among many.
    Selection = 8,
    /// Uniform and weighted integers.
    Integers = 9,
}

/// The key from which a call derives all its streams, expanded once.
///
/// A key from the operating system is drawn anew for every call, so that neither a fork nor a copy of the process can
/// ever repeat a draw: there is no state to copy.
#[derive(Clone)]
pub struct Seed(Arc<Aes256Enc>);

impl Seed {
    /// A key of 256 bits of entropy from the operating system.
    pub fn from_os() -> Result<Seed> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|cause| Error::System(format!("no entropy from the system: {cause}")))?;
        let seed = Seed::reproducible(key);
        key.zeroize();
        Ok(seed)
    }

    /// A reproducible key, for tests only: whoever knows it can undo every guarantee.
    pub fn reproducible(key: [u8; 32]) -> Seed {
        Seed(Arc::new(Aes256Enc::new(&key.into())))
    }

    /// The stream of this key for one purpose and index; of the index the lower 56 bits count.
    pub fn stream(&self, purpose: Stream, index: u64) -> Rng {
        Rng::new(self.0.clone(), (purpose as u64) << 56 | (index & (u64::MAX >> 8)))
    }
}

/// The words that are made at a time: 64 blocks, which the widest instructions encrypt side by side.
const BUFFER: usize = 128;

/// The words that are made first, so that a few draws do not wait for many.
const FIRST: usize = 16;

/// Two words a block, and eight bytes a word.
const BLOCK: usize = 2;
const WORD: usize = size_of::<u64>();

/// A stream of uniform words. What was not used of it is erased when it is dropped.
pub struct Rng {
    cipher: Arc<Aes256Enc>,
    name: u64,
    /// The next block that is made.
    block: u64,
    /// Those words are drawn next that stand from `next` on; each with its lowest byte first.
    words: [u64; BUFFER],
    next: usize,
    /// How many words are made next.
    refill: usize,
}

impl Rng {
    fn new(cipher: Arc<Aes256Enc>, name: u64) -> Rng {
        Rng { cipher, name, block: 0, words: [0; BUFFER], next: BUFFER, refill: FIRST }
    }

    /// A stream with a fixed key, for choices that cannot affect a result.
    pub fn for_speed_only() -> Rng {
        Seed::reproducible([0; 32]).stream(Stream::Speed, 0)
    }

    /// Draws 64 uniform bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        if self.next >= BUFFER {
            self.refill();
        }
        let word = u64::from_le(self.words[self.next]);
        self.next += 1;
        word
    }

    /// Fills an array with uniform words, the same as if drawn one by one.
    pub fn words(&mut self, out: &mut [u64]) {
        self.fill(cast_slice_mut(out));
        // Nothing to do where the lowest byte of a word comes first.
        out.iter_mut().for_each(|word| *word = u64::from_le(*word));
    }

    /// Fills a buffer with uniform bytes, those of the next words. A word of which only some bytes are needed is used
    /// up.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let bytes = self.take(bytes);
        // Whole buffers go to the caller's memory at once.
        let direct = bytes.len() - bytes.len() % (BUFFER * WORD);
        let (direct, mut bytes) = bytes.split_at_mut(direct);
        encrypt(&self.cipher, self.name, self.block, direct);
        self.block = self.block.wrapping_add((direct.len() / (BLOCK * WORD)) as u64);
        while !bytes.is_empty() {
            self.refill();
            bytes = self.take(bytes);
        }
    }

    /// Fills the beginning of a buffer with what words there are, and returns the rest of it.
    fn take<'a>(&mut self, bytes: &'a mut [u8]) -> &'a mut [u8] {
        let ready: &[u8] = bytemuck::cast_slice(&self.words[self.next..]);
        let (taken, rest) = bytes.split_at_mut(ready.len().min(bytes.len()));
        taken.copy_from_slice(&ready[..taken.len()]);
        self.next += taken.len().div_ceil(WORD);
        rest
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        self.next = BUFFER - self.refill;
        encrypt(&self.cipher, self.name, self.block, cast_slice_mut(&mut self.words[self.next..]));
        self.block = self.block.wrapping_add((self.refill / BLOCK) as u64);
        self.refill = BUFFER;
    }

    /// How many words were drawn.
    pub fn position(&self) -> u64 {
        self.block.wrapping_mul(BLOCK as u64).wrapping_sub((BUFFER - self.next) as u64)
    }

    /// Goes to a place in the stream: what is drawn next is the word that comes after `position` others.
    pub fn seek(&mut self, position: u64) {
        self.block = position / BLOCK as u64;
        (self.next, self.refill) = (BUFFER, FIRST);
        if !position.is_multiple_of(BLOCK as u64) {
            self.next_u64();
        }
    }

    /// Draws a uniform integer below `bound`, which must be positive. It is the integer part of bound times a uniform
    /// word divided by 2^64, where the words that would favor some integers are rejected (Lemire 2019).
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let word = self.next_u64();
        self.below_from(word, bound)
    }

    /// The same with a first word that is drawn already.
    #[inline]
    pub fn below_from(&mut self, word: u64, bound: u64) -> u64 {
        let product = u128::from(word) * u128::from(bound);
        let low = product as u64;
        if low >= bound { (product >> 64) as u64 } else { self.below_again(product, bound) }
    }

    /// The same with the number of lower halves that are drawn again: 2^64 modulo the bound, a division that is spared.
    #[inline]
    pub fn below_even(&mut self, bound: u64, uneven: u64) -> u64 {
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            if product as u64 >= uneven {
                return (product >> 64) as u64;
            }
        }
    }

    #[cold]
    fn below_again(&mut self, mut product: u128, bound: u64) -> u64 {
        while (product as u64) < bound.wrapping_neg() % bound {
            product = u128::from(self.next_u64()) * u128::from(bound);
        }
        (product >> 64) as u64
    }
}

impl Drop for Rng {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

impl ZeroizeOnDrop for Rng {}

/// The blocks of a stream from `block` on; `out` holds a whole number of them.
fn encrypt(cipher: &Aes256Enc, name: u64, block: u64, out: &mut [u8]) {
    let mut first = [0; BLOCK * WORD];
    first[..WORD].copy_from_slice(&name.to_be_bytes());
    let mut counter = CtrCore::<&Aes256Enc, Ctr64BE>::inner_iv_init(cipher, &first.into());
    counter.set_block_pos(block);
    counter.write_keystream_blocks(Array::slice_as_chunks_mut(out).0);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<u8> = hexadecimal.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn keyed(key: &str, name: u64) -> Rng {
        Rng::new(Seed::reproducible(bytes(key).try_into().unwrap()).0, name)
    }

    fn drawn(rng: &mut Rng, count: usize) -> Vec<u64> {
        (0..count).map(|_| rng.next_u64()).collect()
    }

    /// NIST SP 800-38A, F.5.5 (CTR-AES256.Encrypt): the output blocks for an initial counter block.
    #[test]
    fn blocks_are_those_of_the_standard_for_counter_mode() {
        let key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
        let expected = [
            "0bdf7df1591716335e9a8b15c860c502",
            "5a6e699d536119065433863c8f657b94",
            "1bc12c9c01610d5d0d8bd6a3378eca62",
            "2956e1c8693536b1bee99c73a31576b6",
        ];
        let mut rng = keyed(key, 0xf0f1_f2f3_f4f5_f6f7);
        rng.block = 0xf8f9_fafb_fcfd_feff;
        for block in expected {
            let words: Vec<u64> =
                bytes(block).chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            assert_eq!(drawn(&mut rng, BLOCK), words);
        }
        let mut filled = vec![0; 64];
        rng.block = 0xf8f9_fafb_fcfd_feff;
        rng.next = BUFFER;
        rng.fill(&mut filled);
        assert_eq!(filled, bytes(&expected.concat()));
    }

    /// NIST FIPS 197, appendix C.3: a block under AES-256.
    #[test]
    fn a_block_is_that_of_the_standard_for_the_cipher() {
        let mut rng = keyed("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", 0x0011_2233_4455_6677);
        rng.block = 0x8899_aabb_ccdd_eeff;
        let mut block = [0; 16];
        rng.fill(&mut block);
        assert_eq!(block[..], bytes("8ea2b7ca516745bfeafc49904b496089"));
    }

    #[test]
    fn a_stream_is_named_by_its_purpose_and_index() {
        let seed = Seed::reproducible([7; 32]);
        assert_eq!(seed.stream(Stream::Noise, 5).name, 6 << 56 | 5);
        assert_eq!(seed.stream(Stream::Sampling, u64::MAX).name, 1 << 56 | u64::MAX >> 8);
    }

    /// However it is asked for: words one by one, in blocks and as bytes of every awkward length, and from any place.
    #[test]
    fn a_stream_is_one_sequence_of_words() {
        let seed = Seed::reproducible([3; 32]);
        let stream = || seed.stream(Stream::Noise, 1);
        let all = drawn(&mut stream(), 3000);
        for length in [0, 1, 2, 3, 15, 16, 17, 127, 128, 129, 255, 256, 257, 1024, 2000] {
            for start in [0, 1, 15, 16, 17, 143, 144, 145, 300] {
                let (mut rng, mut words) = (stream(), vec![0; length]);
                drawn(&mut rng, start);
                rng.words(&mut words);
                assert_eq!(words, all[start..start + length]);
                assert_eq!(rng.position(), (start + length) as u64);
                assert_eq!(rng.next_u64(), all[start + length], "{length} from {start}");
                for odd in 0..8 {
                    let mut filled = vec![0; 8 * length + odd];
                    rng.seek(start as u64);
                    rng.fill(&mut filled);
                    let used = length + usize::from(odd > 0);
                    let expected: Vec<u8> =
                        all[start..start + used].iter().flat_map(|word| word.to_le_bytes()).collect();
                    assert_eq!(filled, expected[..filled.len()]);
                    assert_eq!(rng.position(), (start + used) as u64);
                    assert_eq!(rng.next_u64(), all[start + used], "{length} and {odd} bytes from {start}");
                }
            }
        }
    }

    /// Bytes of a long stretch, and of the first words of many streams, by chi-square with 255 degrees of freedom: the
    /// limit is six deviations and more.
    #[test]
    fn bytes_are_equally_frequent() {
        let seed = Seed::reproducible([9; 32]);
        let mut long = vec![0; 1 << 20];
        seed.stream(Stream::Noise, 0).fill(&mut long);
        let starts: Vec<u8> = (0..1 << 14)
            .flat_map(|index| drawn(&mut seed.stream(Stream::Noise, index), 8))
            .flat_map(u64::to_le_bytes)
            .collect();
        for bytes in [long, starts] {
            let mut counts = [0.0; 256];
            bytes.iter().for_each(|&byte| counts[usize::from(byte)] += 1.0);
            let expected = bytes.len() as f64 / 256.0;
            let misfit: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
            assert!((120.0..400.0).contains(&misfit), "{misfit}");
        }
    }
}
