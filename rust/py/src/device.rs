//! Glue of `hdp_fast.collection`: the device's code as every host runs it.

use hdp_fast_core::memory::collected;
use hdp_fast_core::noise::{Seed, Stream};
use hdp_fast_device::query::Record;
use hdp_fast_device::stage::{MOST_QUERIES, Shares};
use hdp_fast_device::{Refusal, device, signature};
use pyo3::prelude::*;

use crate::array::{Vector, returned};
use crate::error::{parameter, raise, raise_refusal};
use crate::seed::Key;

/// Number of people whose places one call may ask for.
const MOST_PEOPLE: usize = 1 << 32;

/// The place of the query of each of the people first, ..., first + count - 1: uint32 (count,).
#[pyfunction]
pub fn stage_places<'py>(
    py: Python<'py>,
    key: &[u8],
    first: u64,
    count: usize,
    shares: Vec<u64>,
) -> PyResult<Vector<'py, u32>> {
    if count > MOST_PEOPLE || first.checked_add(count as u64).is_none() {
        return Err(parameter("count", count, "it must be at most 2**32"));
    }
    if shares.len() > MOST_QUERIES {
        return Err(parameter("shares", format!("a list of {}", shares.len()), "there must be at most 10,000"));
    }
    let shares = Shares::new(bytes("key", key)?, &shares).map_err(raise_refusal)?;
    let people = (0..count).map(|person| shares.place(first + person as u64) as u32);
    let places = py.detach(|| collected(people)).map_err(raise)?;
    Ok(returned(py, places))
}

/// The public Ed25519 key of a secret of 32 bytes.
#[pyfunction]
pub fn ed25519_public(secret: &[u8]) -> PyResult<[u8; 32]> {
    Ok(signature::public(&bytes("secret", secret)?))
}

/// The Ed25519 signature of a message.
#[pyfunction]
pub fn ed25519_sign(secret: &[u8], message: &[u8]) -> PyResult<[u8; 64]> {
    Ok(signature::sign(&bytes("secret", secret)?, message))
}

/// Whether the owner of a public key signed a message.
#[pyfunction]
pub fn ed25519_verify(public: &[u8], message: &[u8], signature: &[u8]) -> PyResult<bool> {
    let (public, signature) = (bytes("public", public)?, bytes("signature", signature)?);
    Ok(signature::verify(&public, message, &signature))
}

/// Describes a signed question to the person who was invited; JSON in, JSON out.
#[pyfunction]
pub fn device_describe(py: Python<'_>, input: &str) -> String {
    py.detach(|| device::describe(input))
}

/// Answers a signed question; JSON in, JSON out.
#[pyfunction]
#[pyo3(signature = (input, seed=None))]
pub fn device_answer(py: Python<'_>, input: &str, seed: Option<Key>) -> PyResult<String> {
    let seed = seed.map_or_else(Key::from_os, Ok)?;
    Ok(py.detach(|| device::answer(input, &mut filler(&seed))))
}

/// The line that answers a question about a record. The features and the label are NaN where one is missing; a stage needs
/// the number of the person's invitation.
#[pyfunction]
pub fn device_line(
    py: Python<'_>,
    question: &str,
    number: Option<u64>,
    features: Vec<f64>,
    label: f64,
    seed: Key,
) -> PyResult<String> {
    let record = Record { features, label };
    py.detach(|| device::line(question, number, &record, &mut filler(&seed))).map_err(raise_refusal)
}

/// What fills bytes from a stream of the seed.
fn filler(seed: &Seed) -> impl FnMut(&mut [u8]) -> Result<(), Refusal> {
    let mut rng = seed.stream(Stream::Response, 0);
    move |bytes| {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&rng.next_u64().to_be_bytes()[..part.len()]);
        }
        Ok(())
    }
}

/// Exactly so many bytes. The bytes themselves may be a secret, and are not shown.
fn bytes<const N: usize>(name: &str, value: &[u8]) -> PyResult<[u8; N]> {
    value.try_into().map_err(|_| parameter(name, format!("{} bytes", value.len()), &format!("it must have {N}")))
}
