//! What a device does with a signed question: it shows what is asked, and answers once it is told to.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, require};
use crate::json::{self, Object, decimal, quoted};
use crate::probability::TWO_64;
use crate::query::Record;
use crate::question::{Asked, LONGEST, Question, digest, open, read_record};
use crate::randomizer::{Entropy, Randomizer};
use crate::signature::to_hex;
use crate::text::{number_of, number_text};

/// The format of a report.
const FORM: &str = "{\"format\":\"hdp_fast.report\",\"version\":2,\"question\":";

/// The names in an input that say who was invited to what.
const INVITATION: [&str; 4] = ["signed", "key", "study", "epsilon"];

/// What is done with a question once all of it is understood.
type Work<'a> = &'a mut dyn FnMut(&Known<'_>) -> Result<String>;

/// Describes a signed question to the person who was invited; JSON in, JSON out.
pub fn describe(input: &str) -> String {
    reply(input, &mut |input| {
        input.check_names("input", &INVITATION, &["number"])?;
        invited(input, &mut |known| Ok(known.describe()))
    })
}

/// Answers a signed question; JSON in, JSON out. Everything is checked before random bytes are asked for.
pub fn answer(input: &str, random: Entropy<'_>) -> String {
    reply(input, &mut |input| {
        input.check_names("input", &INVITATION, &["number", "answers", "record", "value"])?;
        let record = input.some("record").map(read_record).transpose()?;
        let source = match (input.some("answers"), &record, input.some("value")) {
            (Some(answers), None, None) => Source::Answers(answers.object("answers")?),
            (None, Some(record), None) => Source::Record(record),
            (None, None, Some(value)) => Source::Value(value.text("value")?),
            _ => return Err(Refusal::new("input", "it must have one of answers, record and value")),
        };
        invited(input, &mut |known| {
            let truth = known.truth(&source)?;
            let (line, report) = known.line(truth.value, random)?;
            Ok(format!("{{\"line\":{},\"report\":{report},\"truth\":{}}}", quoted(&line), truth.text))
        })
    })
}

/// The line that answers a question that is trusted as it is, such as one from a file, about a record. `number` is that of
/// the person's invitation, which a stage needs.
pub fn line(question: &str, number: Option<u64>, record: &Record, random: Entropy<'_>) -> Result<String> {
    understood(question, number, &mut |known| {
        let truth = known.truth(&Source::Record(record))?;
        Ok(known.line(truth.value, random)?.0)
    })
}

fn reply(input: &str, work: &mut dyn FnMut(&Object<'_>) -> Result<String>) -> String {
    let length = require(input.len() <= 2 * LONGEST, "input", "it must have at most 16 MiB");
    let result = length.and_then(|()| work(&json::parse_object("input", input)?));
    result.unwrap_or_else(|refusal| {
        let (name, rule) = (quoted(&refusal.name), quoted(&refusal.rule));
        format!("{{\"error\":{{\"name\":{name},\"rule\":{rule}}}}}")
    })
}

/// Does the work for a question whose signature, study and epsilon are those of the invitation.
fn invited(input: &Object<'_>, work: Work<'_>) -> Result<String> {
    let question = open(input.text("signed")?, input.text("key")?)?;
    let study = input.some("study").map(|study| study.text("study")).transpose()?;
    let epsilon = input.number("epsilon")?;
    let number = input.some("number").map(|number| number.integer("number")).transpose()?;
    understood(&question, number, &mut |known| {
        require(known.question.study == study, "study", "the question is not of the invitation's study")?;
        let promised = known.question.randomizer.epsilon() == epsilon;
        require(promised, "epsilon", "the question has another epsilon than the invitation")?;
        work(known)
    })
}

/// Does the work for a question, once all of it is understood.
fn understood(text: &str, number: Option<u64>, work: Work<'_>) -> Result<String> {
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
    Record(&'a Record),
    Value(&'a str),
}

/// The true answer, for the randomizer and for the person's eyes.
struct Truth {
    value: f64,
    text: String,
}

impl Truth {
    /// An answer in [0, 1].
    fn share(value: f64) -> Truth {
        Truth { value, text: decimal(value) }
    }

    /// The place of a category.
    fn place(place: u64) -> Truth {
        Truth { value: place as f64, text: format!("{place}") }
    }
}

impl Known<'_> {
    /// The true answer: in [0, 1] about a record, or the value, or the place of the category.
    fn truth(&self, source: &Source<'_>) -> Result<Truth> {
        match (&self.asked, source) {
            (Some(asked), Source::Record(record)) => Ok(Truth::share(asked.inquiry.answer(record))),
            (Some(asked), Source::Answers(answers)) => {
                let form = self.question.form.as_ref();
                let (_, form) = form.ok_or_else(|| Refusal::new("answers", "the question has no form"))?;
                Ok(Truth::share(asked.inquiry.answer(&form.record(&asked.inquiry, answers)?)))
            }
            (None, Source::Value(value)) => self.value(value.trim_matches(' ')),
            (Some(_), Source::Value(_)) => Err(Refusal::new("value", "the question is about a record")),
            (None, _) => Err(Refusal::new("value", "the question is about a value")),
        }
    }

    fn value(&self, text: &str) -> Result<Truth> {
        let refusal = |rule: &str| Refusal::new("value", rule);
        match (&self.question.categories, &self.question.randomizer) {
            (Some(categories), _) => {
                let place = categories.iter().position(|category| category == text);
                place.map(|place| Truth::place(place as u64)).ok_or_else(|| refusal("it must be one of the categories"))
            }
            (None, Randomizer::Kary { k, .. }) => {
                let digits = text.bytes().all(|byte| byte.is_ascii_digit());
                let place = text.parse().ok().filter(|place| digits && place < k);
                place.map(Truth::place).ok_or_else(|| refusal("it must be a category, an integer below k"))
            }
            (None, Randomizer::Binary { .. }) => {
                let value = number_of(text).ok_or_else(|| refusal("it must be a number"))?;
                Ok(Truth { value, text: number_text(text) })
            }
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
        let (question, asked) = (&self.question, self.asked.as_ref());
        let mut fields = Fields(String::new());
        fields.put("study", &quoted_or_null(question.study));
        fields.put("asker", &quoted_or_null(question.asker));
        fields.put("text", &quoted_or_null(question.text));
        fields.put("id", &quoted(question.id));
        fields.put("digest", &quoted(&self.digest));
        fields.put("kind", &quoted(question.kind));
        fields.put("epsilon", question.epsilon);
        fields.put("keep", &decimal(question.randomizer.keep() as f64 / TWO_64));
        fields.put("randomizer", question.parameters);
        let categories = question.categories.as_ref();
        fields
            .put("categories", &categories.map_or("null".into(), |texts| list(texts.iter().map(|text| quoted(text)))));
        let place = asked.and_then(|asked| asked.place);
        fields.put("place", &place.map_or("null".into(), |place| format!("{place}")));
        fields.put("queries", &format!("{}", asked.map_or(0, |asked| asked.queries)));
        fields.put("query", asked.map_or("null", |asked| asked.text));
        let needed = match (asked, &question.form) {
            (Some(asked), Some((_, form))) => form.needed(&asked.inquiry),
            _ => Vec::new(),
        };
        let needed = needed.iter().enumerate().filter(|(_, needed)| **needed);
        fields.put("inputs", &list(needed.map(|(i, _)| format!("{i}"))));
        fields.put("form", question.form.as_ref().map_or("null", |(text, _)| text));
        fields.0.push('}');
        fields.0
    }
}

/// The fields of an object that is being written.
struct Fields(String);

impl Fields {
    fn put(&mut self, name: &str, value: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&quoted(name));
        self.0.push(':');
        self.0.push_str(value);
    }
}

fn quoted_or_null(text: Option<&str>) -> Cow<'static, str> {
    text.map_or(Cow::Borrowed("null"), |text| Cow::Owned(quoted(text)))
}

fn list(entries: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for entry in entries {
        text.push(if text.is_empty() { '[' } else { ',' });
        text.push_str(&entry);
    }
    if text.is_empty() { "[]".into() } else { text + "]" }
}
