//! What a person is asked for, and the record that becomes of it.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::error::{Refusal, Result, interval, require};
use crate::json::{Json, Object};
use crate::query::{Inquiry, Record};
use crate::text::{PLAIN, PRINTABLE, check_text, number_of};

/// The most inputs and columns that a form may have.
const MOST_INPUTS: usize = 1000;
const MOST_COLUMNS: usize = 100_000;

/// The inputs of a form, and what the columns of the record are made of.
pub struct Form {
    inputs: Vec<Input>,
    features: Vec<Part>,
    label: Option<Part>,
}

struct Input {
    name: String,
    kind: Kind,
}

enum Kind {
    Number(f64, f64),
    Choice(Vec<String>),
}

/// A number of the record, made of one input.
struct Part {
    input: usize,
    rule: Rule,
}

enum Rule {
    Scaled(f64, f64),
    AtLeast(f64),
    OneOf(Vec<String>),
}

/// What a person has answered to an input.
#[derive(Clone)]
enum Reply {
    Number(f64),
    Choice(String),
}

impl Form {
    /// Reads a form.
    pub fn read(object: &Object<'_>) -> Result<Form> {
        object.check_names("form", &["inputs", "features", "label"], &[])?;
        let inputs = object.each("inputs", &mut |input| Input::read(input.object("inputs")?))?;
        require(inputs.len() <= MOST_INPUTS, "inputs", "there must be at most 1,000")?;
        require(object.list("features")?.len() <= MOST_COLUMNS, "features", "there must be at most 100,000")?;
        for (i, input) in inputs.iter().enumerate() {
            let before = inputs.iter().take(i);
            require(before.into_iter().all(|other| other.name != input.name), "inputs", "their names must differ")?;
        }
        let part = |value: &Json<'_>, name: &str| Part::read(value.object(name)?, &inputs);
        let label = object.some("label").map(|value| part(value, "label")).transpose()?;
        let features = object.each("features", &mut |value| part(value, "features"))?;
        Ok(Form { inputs, features, label })
    }

    /// Which inputs the answer depends on, in their order.
    pub fn needed(&self, inquiry: &Inquiry) -> Vec<bool> {
        let record = inquiry.needed(self.features.len());
        let label = self.label.iter().map(|part| (part, record.label));
        let parts = self.features.iter().zip(record.columns).chain(label);
        let mut needed = vec![false; self.inputs.len()];
        for (part, _) in parts.filter(|(_, needed)| *needed) {
            if let Some(needed) = needed.get_mut(part.input) {
                *needed = true;
            }
        }
        needed
    }

    /// The record of a person who has answered the inputs that are needed. A column whose input is not needed is 0.
    pub fn record(&self, inquiry: &Inquiry, answers: &Object<'_>) -> Result<Record> {
        let mut replies = Vec::new();
        for (needed, input) in self.needed(inquiry).into_iter().zip(&self.inputs) {
            replies.push(if needed { Some(input.reply(answers)?) } else { None });
        }
        let value = |part: &Part| match replies.get(part.input) {
            Some(Some(reply)) => part.value(self.inputs.get(part.input), reply),
            _ => 0.0,
        };
        let label = self.label.as_ref().map_or(f64::NAN, value);
        Ok(Record { features: self.features.iter().map(value).collect(), label })
    }
}

impl Input {
    fn read(object: &Object<'_>) -> Result<Input> {
        let name = check_text("name of an input", object.text("name")?, 100, PRINTABLE)?.to_string();
        check_text("text of an input", object.text("text")?, 2000, PLAIN)?;
        let kind = match object.text("kind")? {
            "number" => {
                object.check_names("input", &["name", "text", "kind", "low", "high"], &[])?;
                let (low, high) = interval(object.number("low")?, object.number("high")?, "input")?;
                Kind::Number(low, high)
            }
            "choice" => {
                object.check_names("input", &["name", "text", "kind", "choices"], &[])?;
                Kind::Choice(read_choices(object.list("choices")?)?)
            }
            _ => return Err(Refusal::new("kind", "that of an input must be number or choice")),
        };
        Ok(Input { name, kind })
    }

    /// What a person has answered. The value itself is not shown, since an error may be seen by others.
    fn reply(&self, answers: &Object<'_>) -> Result<Reply> {
        let missing = || Refusal::new(&self.name, "it must be answered");
        let text = answers.some(&self.name).ok_or_else(missing)?.text(&self.name)?;
        match &self.kind {
            Kind::Number(..) => match number_of(text) {
                Some(number) => Ok(Reply::Number(number)),
                None => Err(Refusal::new(&self.name, "it must be a number")),
            },
            Kind::Choice(choices) if choices.iter().any(|choice| choice == text) => Ok(Reply::Choice(text.to_string())),
            Kind::Choice(_) => Err(Refusal::new(&self.name, "it must be one of the choices")),
        }
    }
}

fn read_choices(choices: &[Json<'_>]) -> Result<Vec<String>> {
    require((1..=MOST_INPUTS).contains(&choices.len()), "choices", "there must be from 1 to 1,000")?;
    let mut values: Vec<String> = Vec::new();
    for choice in choices {
        let choice = choice.object("choices")?;
        choice.check_names("choice", &["value", "text"], &[])?;
        check_text("text of a choice", choice.text("text")?, 2000, PLAIN)?;
        let value = check_text("value of a choice", choice.text("value")?, 100, PRINTABLE)?;
        require(values.iter().all(|other| other != value), "choices", "their values must differ")?;
        values.push(value.to_string());
    }
    Ok(values)
}

impl Part {
    fn read(object: &Object<'_>, inputs: &[Input]) -> Result<Part> {
        let input = usize::try_from(object.integer("input")?).unwrap_or(usize::MAX);
        let Some(Input { kind, .. }) = inputs.get(input) else {
            return Err(Refusal::new("input", "it must be the place of an input"));
        };
        let rule = match kind {
            Kind::Number(..) if object.get("at_least").is_some() => {
                object.check_names("feature", &["input", "at_least"], &[])?;
                Rule::AtLeast(object.number("at_least")?)
            }
            Kind::Number(..) => {
                object.check_names("feature", &["input", "scale", "offset"], &[])?;
                Rule::Scaled(object.number("scale")?, object.number("offset")?)
            }
            Kind::Choice(choices) => {
                object.check_names("feature", &["input", "values"], &[])?;
                let values = object.each("values", &mut |value| Ok(String::from(value.text("values")?)))?;
                let known = values.iter().all(|value| choices.contains(value));
                require(known, "values", "each must be the value of a choice")?;
                Rule::OneOf(values)
            }
        };
        Ok(Part { input, rule })
    }

    fn value(&self, input: Option<&Input>, reply: &Reply) -> f64 {
        match (&self.rule, reply, input.map(|input| &input.kind)) {
            (Rule::Scaled(scale, offset), Reply::Number(number), Some(Kind::Number(low, high))) => {
                number.clamp(*low, *high) * scale + offset
            }
            (Rule::AtLeast(least), Reply::Number(number), _) => f64::from(u8::from(number >= least)),
            (Rule::OneOf(values), Reply::Choice(choice), _) => f64::from(u8::from(values.contains(choice))),
            _ => f64::NAN,
        }
    }
}
