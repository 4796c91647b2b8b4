//! Signatures of questions: Ed25519 (RFC 8032), over a prefix and the bytes of the question.

use alloc::vec::Vec;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

/// What stands before the bytes of a question when it is signed, so that no other text is taken for one.
pub const PREFIX: &[u8] = b"hdp_fast.question\n";

/// The public key of a secret one.
pub fn public(secret: &[u8; 32]) -> [u8; 32] {
    SigningKey::from_bytes(secret).verifying_key().to_bytes()
}

/// The signature of a message.
pub fn sign(secret: &[u8; 32], message: &[u8]) -> [u8; 64] {
    SigningKey::from_bytes(secret).sign(message).to_bytes()
}

/// Whether the owner of a public key has signed a message. No key of small order counts as anybody's.
pub fn verify(public: &[u8; 32], message: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public)
        .is_ok_and(|key| key.verify_strict(message, &Signature::from_bytes(signature)).is_ok())
}

/// What is signed of a question.
pub fn message(question: &str) -> Vec<u8> {
    [PREFIX, question.as_bytes()].concat()
}

/// The bytes that hexadecimal digits stand for, of which there are exactly as many as needed, in lower case.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (digits, mut bytes) = (text.as_bytes(), [0; N]);
    if digits.len() != 2 * N {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = (digit(high)? << 4) | digit(low)?;
    }
    Some(bytes)
}

/// Bytes as hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> alloc::string::String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
