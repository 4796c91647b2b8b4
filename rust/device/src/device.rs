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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::json::Json;
    use crate::signature::{message, public, sign};

    /// What every implementation shows and sends, with where it comes from.
    const VECTORS: &str = include_str!("../../../tests/vectors/device.json");

    fn vectors() -> Vec<Object<'static>> {
        let cases = json::parse("vectors", VECTORS).unwrap();
        cases.each("vectors", &mut |case| case.object("case").cloned()).unwrap()
    }

    /// Random bytes from hexadecimal digits, and how many of them were drawn.
    fn source<'a>(digits: &'a str, drawn: &'a mut usize) -> impl FnMut(&mut [u8]) -> Result<()> + 'a {
        |bytes| {
            for byte in bytes.iter_mut() {
                let pair = digits.get(2 * *drawn..2 * *drawn + 2).ok_or_else(|| Refusal::new("random", "too few"))?;
                *byte = u8::from_str_radix(pair, 16).unwrap();
                *drawn += 1;
            }
            Ok(())
        }
    }

    /// Whether two values are the same; numbers that are shown, to their last digit but one.
    fn same(one: &Json<'_>, other: &Json<'_>) -> bool {
        match (one, other) {
            (Json::Null, Json::Null) => true,
            (Json::Flag(one), Json::Flag(other)) => one == other,
            (Json::Text(one), Json::Text(other)) => one == other,
            (Json::Number(one), Json::Number(other)) => {
                let (one, other): (f64, f64) = (one.parse().unwrap(), other.parse().unwrap());
                (one - other).abs() <= 2e-16 * one.abs().max(1.0)
            }
            (Json::List(one), Json::List(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
            }
            (Json::Object(one), Json::Object(other)) => {
                let names: Vec<_> = one.names().collect();
                names.len() == other.names().count()
                    && names.iter().all(|name| other.get(name).is_some_and(|value| same(one.get(name).unwrap(), value)))
            }
            _ => false,
        }
    }

    fn input(case: &Object<'_>, reply: bool) -> String {
        let part = |name| case.get(name).unwrap().object(name).unwrap().text;
        let invitation = part("invitation").trim_end_matches('}');
        let reply = if reply { part("reply").trim_start_matches('{') } else { "}" };
        let comma = if reply == "}" { "" } else { "," };
        [invitation, comma, reply].concat()
    }

    #[test]
    fn vectors_are_those_of_every_implementation() {
        for case in vectors() {
            let name = case.text("name").unwrap();
            if let Some(expected) = case.get("describe") {
                let shown = describe(&input(&case, false));
                assert!(same(&json::parse("shown", &shown).unwrap(), expected), "{name}: {shown}");
            }
            let mut drawn = 0;
            let sent = answer(&input(&case, true), &mut source(case.text("random").unwrap(), &mut drawn));
            assert!(same(&json::parse("sent", &sent).unwrap(), case.get("answer").unwrap()), "{name}: {sent}");
            assert_eq!(drawn as u64, case.integer("drawn").unwrap(), "{name}");
        }
    }

    /// A host whose random bytes fail gets an error, and no line.
    #[test]
    fn no_line_leaves_without_random_bytes() {
        let case = &vectors()[0];
        for bytes in [0, 8, 16, 31] {
            let (digits, mut drawn) = ("00".repeat(bytes), 0);
            let sent = answer(&input(case, true), &mut source(&digits, &mut drawn));
            assert_eq!(sent, "{\"error\":{\"name\":\"random\",\"rule\":\"too few\"}}");
        }
    }

    /// Small changes of a text at random: what is left out, doubled, or put in its place.
    fn mutated(text: &str, draw: &mut impl FnMut(usize) -> usize) -> String {
        const PIECES: [&str; 21] = [
            "0",
            "-",
            "1e999",
            "1e-400",
            "1.5",
            "[",
            "]",
            "{",
            "}",
            "\"",
            ",",
            ":",
            "null",
            "true",
            "\\ud83d",
            "\\",
            "18446744073709551616",
            "9223372036854775807",
            "\u{1f600}",
            "[[[[[[[[[[",
            "kind",
        ];
        let mut letters: Vec<char> = text.chars().collect();
        for _ in 0..=draw(3) {
            let start = draw(letters.len() + 1);
            let end = (start + draw(12)).min(letters.len());
            let piece: Vec<char> = match draw(3) {
                0 => letters[start..end].repeat(2),
                1 => Vec::new(),
                _ => PIECES[draw(PIECES.len())].chars().collect(),
            };
            letters.splice(start..end, piece);
        }
        letters.into_iter().collect()
    }

    /// Whatever comes in, there is an answer or an error, both of them JSON, and no panic: with questions that were
    /// changed before they were signed, and with inputs that were changed.
    #[test]
    fn no_input_is_too_odd() {
        let (secret, mut state) = ([7; 32], 1u64);
        let key = to_hex(&public(&secret));
        let mut draw = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let (mut refused, mut answered) = (0, 0);
        for case in vectors() {
            let whole = input(&case, true);
            let fields = json::parse_object("input", &whole).unwrap();
            let envelope = json::parse_object("signed", fields.text("signed").unwrap());
            let Ok(question) = envelope.as_ref().map_err(Clone::clone).and_then(|envelope| envelope.text("question"))
            else {
                continue;
            };
            // All that stands behind the envelope, with a key that signs what was changed.
            let rest = whole[whole.find("\"key\"").unwrap()..].replacen(fields.text("key").unwrap(), &key, 1);
            for round in 0..20 {
                let question = if round % 4 == 0 { question.into() } else { mutated(question, &mut draw) };
                let signature = to_hex(&sign(&secret, &message(&question)));
                let form = "{\"format\":\"hdp_fast.signed\",\"version\":1,\"question\":";
                let signed = [form, &quoted(&question), ",\"signature\":\"", &signature, "\"}"].concat();
                let input = format!("{{\"signed\":{},{rest}", quoted(&signed));
                let input = if round % 4 == 0 { mutated(&input, &mut draw) } else { input };
                let mut fill = |bytes: &mut [u8]| {
                    bytes.fill(0x5a);
                    Ok(())
                };
                for result in [describe(&input), answer(&input, &mut fill)] {
                    let result = json::parse_object("result", &result).unwrap();
                    *if result.get("error").is_some() { &mut refused } else { &mut answered } += 1;
                }
            }
        }
        // Both happen often, else the changes would try nothing.
        assert!(refused > 2000 && answered > 100, "{refused} {answered}");
    }
}
