//! Questions and the envelopes that they travel in.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::error::{Refusal, Result, require};
use crate::form::Form;
use crate::json::{self, Json, Object};
use crate::query::{Inquiry, Record};
use crate::randomizer::{Randomizer, read_categories};
use crate::signature::{from_hex, message, to_hex, verify};
use crate::stage::Shares;
use crate::text::{PLAIN, PRINTABLE, check_text};

/// The longest text that is read, in bytes.
pub const LONGEST: usize = 1 << 23;

/// The text of the question in an envelope that the owner of a public key has signed.
pub fn open(envelope: &str, key: &str) -> Result<String> {
    require(envelope.len() <= LONGEST, "signed", "it must have at most 8 MiB")?;
    let fields = json::parse_object("signed", envelope)?;
    fields.check_names("signed", &["format", "version", "question", "signature"], &[])?;
    let form = fields.text("format")? == "hdp_fast.signed" && fields.integer("version")? == 1;
    require(form, "signed", "it must have format hdp_fast.signed, version 1")?;
    let key = from_hex(key).ok_or_else(|| Refusal::new("key", "it must have 64 digits 0-9, a-f"))?;
    let signature = from_hex(fields.text("signature")?);
    let signature = signature.ok_or_else(|| Refusal::new("signature", "it must have 128 digits 0-9, a-f"))?;
    let question = fields.text("question")?;
    require(verify(&key, &message(question), &signature), "signature", "it is not that of the invitation's key")?;
    Ok(question.into())
}

/// The digest of a question by which a report names it.
pub fn digest(question: &str) -> String {
    let hash = Sha256::digest(question.as_bytes());
    to_hex(hash.get(..16).unwrap_or_default())
}

/// A question that a device understands. The hypothesis is read by [`Asked::read`].
pub struct Question<'a> {
    /// Its name.
    pub id: &'a str,
    /// "mean", "frequency" or "stage".
    pub kind: &'a str,
    /// The study under which a device accepts one epsilon.
    pub study: Option<&'a str>,
    /// Who asks.
    pub asker: Option<&'a str>,
    /// The question in plain words.
    pub text: Option<&'a str>,
    /// The form, as it is written and as it is read.
    pub form: Option<(&'a str, Form)>,
    /// What is asked of a record, as JSON; without it a value is asked for.
    pub hypothesis: Option<&'a str>,
    /// The texts that stand for the values 0, 1, ..., if there are any.
    pub categories: Option<Vec<String>>,
    /// What randomizes the answer.
    pub randomizer: Randomizer,
    /// The same, as it is written.
    pub parameters: &'a str,
    /// Its epsilon, as it is written.
    pub epsilon: &'a str,
}

impl<'a> Question<'a> {
    /// Reads the fields of a question.
    pub fn read(fields: &'a Object<'a>) -> Result<Question<'a>> {
        const NEEDED: [&str; 5] = ["format", "version", "id", "kind", "randomizer"];
        const ALLOWED: [&str; 6] = ["study", "asker", "text", "form", "categories", "hypothesis"];
        let form = fields.text("format")? == "hdp_fast.question" && fields.integer("version")? == 2;
        require(form, "question", "it must have format hdp_fast.question, version 2")?;
        fields.check_names("question", &NEEDED, &ALLOWED)?;
        let words = |name: &str, longest, lines| match fields.get(name) {
            Some(value) => check_text(name, value.text(name)?, longest, lines).map(Some),
            None => Ok(None),
        };
        let parameters = fields.need("randomizer")?.object("randomizer")?;
        let randomizer = Randomizer::read(parameters)?;
        let categories = fields.get("categories").map(|value| read_categories(value, &randomizer)).transpose()?;
        let form = fields.get("form").map(|form| form.object("form")).transpose()?;
        let question = Question {
            id: check_text("id", fields.text("id")?, 100, PRINTABLE)?,
            kind: fields.text("kind")?,
            study: words("study", 100, PRINTABLE)?,
            asker: words("asker", 200, PRINTABLE)?,
            text: words("text", 2000, PLAIN)?,
            form: form.map(|form| Ok((form.text, Form::read(form)?))).transpose()?,
            hypothesis: fields.get("hypothesis").map(|text| text.text("hypothesis")).transpose()?,
            categories,
            randomizer,
            parameters: parameters.text,
            epsilon: parameters.written("epsilon"),
        };
        question.check_kind()?;
        Ok(question)
    }

    fn check_kind(&self) -> Result<()> {
        let binary = matches!(self.randomizer, Randomizer::Binary { .. });
        match self.kind {
            "mean" | "stage" => require(binary, "kind", "its randomizer must be BinaryResponse")?,
            "frequency" => require(!binary, "kind", "its randomizer must be KaryResponse")?,
            kind => return Err(Refusal::new("kind", &format!("this device does not know a question about a {kind}"))),
        }
        let unit = matches!(self.randomizer, Randomizer::Binary { low: 0.0, high: 1.0, .. });
        require(self.hypothesis.is_none() || unit, "hypothesis", "its randomizer must be BinaryResponse on [0, 1]")?;
        require(self.kind != "stage" || self.hypothesis.is_some(), "hypothesis", "a stage must have one")
    }
}

/// What one person is asked of the record.
pub struct Asked<'a> {
    /// Its place in the stage, if the question is one.
    pub place: Option<u64>,
    /// How many queries the question has.
    pub queries: usize,
    /// The query or hypothesis, as it is written.
    pub text: &'a str,
    /// The same, as it is read.
    pub inquiry: Inquiry,
}

impl<'a> Asked<'a> {
    /// Reads the hypothesis of a question, and of a stage the query of the person with this invitation number. All queries
    /// of a stage must be understood: who answers must not depend on which one is whose.
    pub fn read(question: &Question<'_>, content: &'a Object<'a>, number: Option<u64>) -> Result<Asked<'a>> {
        let is_stage = content.text("kind")? == "stage";
        require(is_stage == (question.kind == "stage"), "kind", "it must be stage where the hypothesis is one, only")?;
        if !is_stage {
            return Ok(Asked { place: None, queries: 1, text: content.text, inquiry: Inquiry::read(content)? });
        }
        content.check_names("stage", &["kind", "key", "first", "count", "queries", "shares"], &[])?;
        let key = from_hex(content.text("key")?);
        let key = key.ok_or_else(|| Refusal::new("key", "that of a stage must have 32 digits 0-9, a-f"))?;
        let (first, count) = (content.integer("first")?, content.integer("count")?);
        let last = first.checked_add(count).filter(|&end| end < 1 << 63 && first > 0 && count > 0);
        let end = last.ok_or_else(|| Refusal::new("stage", "its first number and its count must be at least 1"))?;
        let queries = content.list("queries")?;
        let shares = content.each("shares", &mut |share| share.integer("shares"))?;
        require(queries.len() == shares.len(), "shares", "there must be one for each of the queries")?;
        let shares = Shares::new(key, &shares)?;
        let number = number.ok_or_else(|| Refusal::new("number", "a stage needs that of the invitation"))?;
        require((first..end).contains(&number), "number", "this stage asks other people")?;
        let place = shares.place(number);
        let mut asked = None;
        for (i, query) in queries.iter().enumerate() {
            let query = query.object("queries")?;
            let inquiry = Inquiry::read(query)?;
            if i == place {
                asked = Some((query.text, inquiry));
            }
        }
        let (text, inquiry) = asked.ok_or_else(|| Refusal::new("shares", "they must be those of the queries"))?;
        Ok(Asked { place: Some(place as u64), queries: queries.len(), text, inquiry })
    }
}

/// The record that the host has put down as JSON, null standing for what is missing.
pub(crate) fn read_record(value: &Json<'_>) -> Result<Record> {
    let object = value.object("record")?;
    object.check_names("record", &["features"], &["label"])?;
    let mut entry = |value: &Json<'_>| match value {
        Json::Null => Ok(f64::NAN),
        value => value.number("record"),
    };
    let features = object.each("features", &mut entry)?;
    Ok(Record { features, label: object.get("label").map_or(Ok(f64::NAN), entry)? })
}
