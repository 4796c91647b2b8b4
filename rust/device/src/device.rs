//! What a device does with a signed question: it shows what is asked, and answers once it is told to.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, require};
use crate::json::{self, Object, quoted};
use crate::probability::TWO_64;
use crate::query::Record;
use crate::question::{Asked, LONGEST, Question, digest, open, read_record};
use crate::randomizer::{Entropy, Randomizer};
use crate::signature::to_hex;
use crate::text::number_of;

/// The format of a report.
const FORM: &str = "{\"format\":\"hdp_fast.report\",\"version\":2,\"question\":";

/// Describes a signed question to the person who was invited; JSON in, JSON out.
pub fn describe(input: &str) -> String {
    answered(input, |input| {
        input.check_names("input", &INVITATION, &["number"])?;
        invited(input, |known| Ok(known.describe()))
    })
}

/// Answers a signed question; JSON in, JSON out. Everything is checked before random bytes are asked for.
pub fn answer(input: &str, random: Entropy<'_>) -> String {
    answered(input, |input| {
        input.check_names("input", &INVITATION, &["number", "answers", "record", "value"])?;
        invited(input, |known| {
            let truth = known.truth(Source::read(input)?)?;
            let (line, report) = known.line(truth, random)?;
            Ok(format!("{{\"line\":{},\"report\":{report},\"truth\":{truth:?}}}", quoted(&line)))
        })
    })
}

/// The line that answers a question that is trusted as it is, such as one from a file, about a record. `number` is that of
/// the person's invitation, which a stage needs.
pub fn line(question: &str, number: Option<u64>, record: Record, random: Entropy<'_>) -> Result<String> {
    understood(question, number, |known| {
        let truth = known.truth(Source::Record(record))?;
        known.line(truth, random).map(|(line, _)| line)
    })
}

/// The names in an input that say who was invited to what.
const INVITATION: [&str; 4] = ["signed", "key", "study", "epsilon"];

fn answered(input: &str, work: impl FnOnce(&Object<'_>) -> Result<String>) -> String {
    let length = require(input.len() <= 2 * LONGEST, "input", "it must have at most 16 MiB");
    let result = length.and_then(|()| work(&json::parse_object("input", input)?));
    result.unwrap_or_else(|refusal| {
        let (name, rule) = (quoted(&refusal.name), quoted(&refusal.rule));
        format!("{{\"error\":{{\"name\":{name},\"rule\":{rule}}}}}")
    })
}

/// Does the work for a question whose signature, study and epsilon are those of the invitation.
fn invited<T>(input: &Object<'_>, work: impl FnOnce(&Known<'_>) -> Result<T>) -> Result<T> {
    let question = open(input.text("signed")?, input.text("key")?)?;
    let study = input.some("study").map(|study| study.text("study")).transpose()?;
    let epsilon = input.number("epsilon")?;
    let number = input.some("number").map(|number| number.integer("number")).transpose()?;
    understood(&question, number, |known| {
        require(known.question.study == study, "study", "the question is not of the invitation's study")?;
        let promised = known.question.randomizer.epsilon() == epsilon;
        require(promised, "epsilon", "the question has another epsilon than the invitation")?;
        work(known)
    })
}

/// Does the work for a question, once all of it is understood.
fn understood<T>(text: &str, number: Option<u64>, work: impl FnOnce(&Known<'_>) -> Result<T>) -> Result<T> {
    require(text.len() <= LONGEST, "question", "it must have at most 8 MiB")?;
    let fields = json::parse_object("question", text)?;
    let question = Question::read(&fields)?;
    let content = question.hypothesis.map(|text| json::parse_object("hypothesis", text)).transpose()?;
    let asked = content.as_ref().map(|content| Asked::read(&question, content, number)).transpose()?;
    work(&Known { digest: digest(text), asked, question })
}

/// A question that the device understands, and what of it is this person's.
struct Known<'a> {
    question: Question<'a>,
    asked: Option<Asked<'a>>,
    digest: String,
}

/// What a person answers from.
enum Source<'a> {
    Answers(&'a Object<'a>),
    Record(Record),
    Value(&'a str),
}

impl<'a> Source<'a> {
    fn read(input: &'a Object<'a>) -> Result<Source<'a>> {
        match ["answers", "record", "value"].map(|name| input.some(name)) {
            [Some(answers), None, None] => Ok(Source::Answers(answers.object("answers")?)),
            [None, Some(record), None] => read_record(record).map(Source::Record),
            [None, None, Some(value)] => value.text("value").map(Source::Value),
            _ => Err(Refusal::new("input", "it must have one of answers, record and value")),
        }
    }
}

impl Known<'_> {
    /// The true answer: in [0, 1] about a record, or the value or the place of the category.
    fn truth(&self, source: Source<'_>) -> Result<f64> {
        match (&self.asked, source) {
            (Some(asked), Source::Record(record)) => Ok(asked.inquiry.answer(&record)),
            (Some(asked), Source::Answers(answers)) => {
                let form = self.question.form.as_ref();
                let (_, form) = form.ok_or_else(|| Refusal::new("answers", "the question has no form"))?;
                Ok(asked.inquiry.answer(&form.record(&asked.inquiry, answers)?))
            }
            (None, Source::Value(value)) => self.value(value),
            (Some(_), Source::Value(_)) => Err(Refusal::new("value", "the question is about a record")),
            (None, _) => Err(Refusal::new("value", "the question is about a value")),
        }
    }

    fn value(&self, text: &str) -> Result<f64> {
        let refusal = |rule: &str| Refusal::new("value", rule);
        match (&self.question.categories, &self.question.randomizer) {
            (Some(categories), _) => {
                let place = categories.iter().position(|category| category == text.trim_matches(' '));
                place.map(|place| place as f64).ok_or_else(|| refusal("it must be one of the categories"))
            }
            (None, Randomizer::Kary { k, .. }) => {
                let text = text.trim_matches(' ');
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                let place = text.parse::<u64>().ok().filter(|place| digits && place < k);
                place.map(|place| place as f64).ok_or_else(|| refusal("it must be a category, an integer below k"))
            }
            (None, Randomizer::Binary { .. }) => number_of(text).ok_or_else(|| refusal("it must be a number")),
        }
    }

    /// The line with a report about the truth, and the report.
    fn line(&self, truth: f64, random: Entropy<'_>) -> Result<(String, u64)> {
        let drawn = self.question.randomizer.report(truth, random)?;
        let place = self.asked.as_ref().and_then(|asked| asked.place);
        let report = place.map_or(drawn, |place| 2 * place + drawn);
        let mut id = [0; 16];
        random(&mut id)?;
        let (name, digest, id) = (quoted(self.question.id), &self.digest, to_hex(&id));
        Ok((format!("{FORM}{name},\"digest\":\"{digest}\",\"report\":{report},\"id\":\"{id}\"}}"), report))
    }

    fn describe(&self) -> String {
        let question = &self.question;
        let words = |text: Option<&str>| text.map_or(Cow::Borrowed("null"), |text| Cow::Owned(quoted(text)));
        let asked = self.asked.as_ref();
        let place = asked.and_then(|asked| asked.place);
        let place = place.map_or(Cow::Borrowed("null"), |place| Cow::Owned(format!("{place}")));
        let form = question.form.as_ref();
        let needed: Vec<bool> = match (asked, form) {
            (Some(asked), Some((_, form))) => form.needed(&asked.inquiry),
            _ => Vec::new(),
        };
        let inputs = needed.iter().enumerate().filter(|(_, needed)| **needed).map(|(i, _)| format!("{i}"));
        format!(
            "{{\"study\":{},\"asker\":{},\"text\":{},\"id\":{},\"digest\":\"{}\",\"kind\":\"{}\",\"epsilon\":{:?},\
             \"keep\":{:?},\"place\":{place},\"queries\":{},\"query\":{},\"inputs\":[{}],\"form\":{},\"categories\":{},\
             \"bounds\":{}}}",
            words(question.study),
            words(question.asker),
            words(question.text),
            quoted(question.id),
            self.digest,
            question.kind,
            question.randomizer.epsilon(),
            question.randomizer.keep() as f64 / TWO_64,
            asked.map_or(0, |asked| asked.queries),
            asked.map_or("null", |asked| asked.text),
            inputs.collect::<Vec<_>>().join(","),
            form.map_or("null", |(text, _)| *text),
            question.categories.as_ref().map_or(Cow::Borrowed("null"), |categories| {
                let texts: Vec<String> = categories.iter().map(|text| quoted(text)).collect();
                Cow::Owned(format!("[{}]", texts.join(",")))
            }),
            match question.randomizer {
                Randomizer::Binary { low, high, .. } => format!("[{low:?},{high:?}]"),
                Randomizer::Kary { .. } => "null".into(),
            },
        )
    }
}
