//! JSON (RFC 8259) read strictly: no name twice in an object, no nesting beyond a limit, no half of a pair of surrogates.
//!
//! Readers differ on which of two values holds that bear the same name, and a signed question must mean one thing. A
//! number stays the text that it is until it is asked for, so that what is handed on is what came.

use alloc::borrow::{Cow, ToOwned};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::error::{Refusal, Result};

/// How deep lists and objects may be nested.
const DEEPEST: usize = 64;

/// The most names in an object; each is compared with all others.
const MOST_NAMES: usize = 1000;

/// A JSON value, which borrows from its text.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// null.
    Null,
    /// true or false.
    Flag(bool),
    /// A number as it is written.
    Number(&'a str),
    /// A text.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object.
    Object(Object<'a>),
}

/// A JSON object and how it is written.
#[derive(Clone, Debug)]
pub struct Object<'a> {
    /// The text from its first to its last bracket.
    pub text: &'a str,
    fields: Vec<(Cow<'a, str>, Json<'a>)>,
}

/// Reads a text that is one JSON value; `name` is what a refusal calls it.
pub fn parse<'a>(name: &str, text: &'a str) -> Result<Json<'a>> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value();
    reader.skip_space();
    match value {
        Some(value) if reader.at == text.len() => Ok(value),
        _ => {
            let rule = format!("it must be JSON, without a name twice, but is not from byte {}", reader.at);
            Err(Refusal::new(name, &rule))
        }
    }
}

/// The same, where the value must be an object.
pub fn parse_object<'a>(name: &str, text: &'a str) -> Result<Object<'a>> {
    match parse(name, text)? {
        Json::Object(object) => Ok(object),
        _ => Err(Refusal::new(name, "it must be a JSON object")),
    }
}

impl<'a> Object<'a> {
    /// The value of that name.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// All names, in their order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_ref())
    }

    /// The value of that name, unless it is null.
    pub fn some(&self, name: &str) -> Option<&Json<'a>> {
        self.get(name).filter(|value| !matches!(value, Json::Null))
    }

    /// The value of that name, which must be there.
    pub fn need(&self, name: &str) -> Result<&Json<'a>> {
        self.get(name).ok_or_else(|| Refusal::new(name, "it is missing"))
    }

    /// Refuses unless all needed names are there, and no others but those that may be; `whole` is the object's name.
    pub fn check_names(&self, whole: &str, needed: &[&str], allowed: &[&str]) -> Result<()> {
        for name in self.names() {
            if !needed.iter().chain(allowed).any(|&known| known == name) {
                return Err(Refusal::new(whole, &format!("this device does not know its field {}", quoted(name))));
            }
        }
        match needed.iter().find(|&&name| self.get(name).is_none()) {
            Some(name) => Err(Refusal::new(whole, &format!("its field {name} is missing"))),
            None => Ok(()),
        }
    }

    /// The text of that name, which must be there.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.need(name)?.text(name)
    }

    /// The number of that name, which must be there.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.need(name)?.number(name)
    }

    /// The integer of that name, which must be there.
    pub fn integer(&self, name: &str) -> Result<u64> {
        self.need(name)?.integer(name)
    }

    /// The flag of that name, which must be there.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.need(name)? {
            &Json::Flag(flag) => Ok(flag),
            _ => Err(Refusal::new(name, "it must be true or false")),
        }
    }

    /// The list of that name, which must be there.
    pub fn list(&self, name: &str) -> Result<&[Json<'a>]> {
        self.need(name)?.list(name)
    }

    /// The number of that name as it is written.
    pub fn written(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Json::Number(text)) => text,
            _ => "null",
        }
    }

    /// What is made of each entry of the list of that name.
    pub fn each<T>(&self, name: &str, make: &mut dyn FnMut(&Json<'a>) -> Result<T>) -> Result<Vec<T>> {
        self.need(name)?.each(name, make)
    }

    /// The finite numbers of that name.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        self.need(name)?.numbers(name)
    }
}

impl<'a> Json<'a> {
    /// The value as a text.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self {
            Json::Text(text) => Ok(text),
            _ => Err(Refusal::new(name, "it must be a text")),
        }
    }

    /// The value as a finite number.
    pub fn number(&self, name: &str) -> Result<f64> {
        let Json::Number(text) = self else { return Err(Refusal::new(name, "it must be a number")) };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(Refusal::new(name, "it must be a finite number")),
        }
    }

    /// The value as an integer in [0, 2^63), written without a fraction or an exponent.
    pub fn integer(&self, name: &str) -> Result<u64> {
        match self {
            Json::Number(text) => text.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok()),
            _ => None,
        }
        .ok_or_else(|| Refusal::new(name, "it must be an integer of at least 0 and below 2**63"))
    }

    /// The value as a list.
    pub fn list(&self, name: &str) -> Result<&[Json<'a>]> {
        match self {
            Json::List(entries) => Ok(entries),
            _ => Err(Refusal::new(name, "it must be a list")),
        }
    }

    /// What is made of each entry of the value, a list. The code of the loop is there once for each type.
    pub fn each<T>(&self, name: &str, make: &mut dyn FnMut(&Json<'a>) -> Result<T>) -> Result<Vec<T>> {
        let mut made = Vec::new();
        for entry in self.list(name)? {
            made.push(make(entry)?);
        }
        Ok(made)
    }

    /// The value as a list of finite numbers.
    pub fn numbers(&self, name: &str) -> Result<Vec<f64>> {
        self.each(name, &mut |entry| entry.number(name))
    }

    /// The value as an object.
    pub fn object(&self, name: &str) -> Result<&Object<'a>> {
        match self {
            Json::Object(object) => Ok(object),
            _ => Err(Refusal::new(name, "it must be an object")),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// Every method that reads moves on by what it has read, and returns None where the text is no JSON.
impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let here = self.peek() == Some(byte);
        self.at += usize::from(here);
        here
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Json<'a>> {
        self.skip_space();
        match self.peek()? {
            b'{' => self.nested(Self::object).map(Json::Object),
            b'[' => self.nested(Self::list).map(Json::List),
            b'"' => self.string().map(Json::Text),
            b't' => self.word("true", Json::Flag(true)),
            b'f' => self.word("false", Json::Flag(false)),
            b'n' => self.word("null", Json::Null),
            _ => self.number().map(Json::Number),
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Option<Json<'a>> {
        self.text.get(self.at..)?.starts_with(word).then(|| {
            self.at += word.len();
            value
        })
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        if self.depth == DEEPEST {
            return None;
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Option<Vec<Json<'a>>> {
        let mut entries = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.take(b']') {
            return Some(entries);
        }
        loop {
            entries.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Some(entries);
            }
            if !self.take(b',') {
                return None;
            }
        }
    }

    fn object(&mut self) -> Option<Object<'a>> {
        let (start, mut fields) = (self.at, Vec::<(Cow<'a, str>, Json<'a>)>::new());
        self.at += 1;
        self.skip_space();
        if !self.take(b'}') {
            loop {
                self.skip_space();
                let name = self.string()?;
                self.skip_space();
                if fields.len() == MOST_NAMES || fields.iter().any(|(known, _)| *known == name) || !self.take(b':') {
                    return None;
                }
                let value = self.value()?;
                fields.push((name, value));
                self.skip_space();
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return None;
                }
            }
        }
        Some(Object { text: self.text.get(start..self.at)?, fields })
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        self.text.get(start..self.at)
    }

    /// A text without escapes is borrowed.
    fn string(&mut self) -> Option<Cow<'a, str>> {
        if !self.take(b'"') {
            return None;
        }
        let mut owned: Option<String> = None;
        loop {
            let start = self.at;
            while !matches!(self.peek()?, b'"' | b'\\' | 0..=0x1f) {
                self.at += 1;
            }
            let plain = self.text.get(start..self.at)?;
            let ends = self.take(b'"');
            if ends && owned.is_none() {
                return Some(Cow::Borrowed(plain));
            }
            let text = owned.get_or_insert_default();
            text.push_str(plain);
            if ends {
                return owned.map(Cow::Owned);
            }
            text.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Option<char> {
        if !self.take(b'\\') {
            return None;
        }
        let escape = self.peek()?;
        self.at += 1;
        Some(match escape {
            b'"' | b'\\' | b'/' => char::from(escape),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unit_escaped(),
            _ => return None,
        })
    }

    fn unit_escaped(&mut self) -> Option<char> {
        let high = self.unit()?;
        if !(0xd800..0xdc00).contains(&high) {
            return char::from_u32(high);
        }
        if !(self.take(b'\\') && self.take(b'u')) {
            return None;
        }
        let low = self.unit()?.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + low)
    }

    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

/// A number in [0, 1] with at most 16 decimals.
pub fn decimal(number: f64) -> String {
    const ONE: u64 = 10_000_000_000_000_000;
    let units = (number * ONE as f64 + 0.5) as u64;
    if units >= ONE {
        return "1".to_owned();
    }
    let digits = format!("0.{units:016}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text as JSON writes it in ASCII, with the escapes of Python's json.dumps.
pub fn quoted(text: &str) -> String {
    let mut out = "\"".to_owned();
    let unit = |out: &mut String, unit: u16| {
        out.push_str("\\u");
        for shift in [12, 8, 4, 0] {
            out.push(char::from_digit(u32::from(unit >> shift) & 15, 16).unwrap_or('0'));
        }
    };
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            ' '..='~' => out.push(letter),
            _ => letter.encode_utf16(&mut [0; 2]).iter().for_each(|&half| unit(&mut out, half)),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_are_no_json_are_refused() {
        for text in [
            "",
            " ",
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "- 1",
            "NaN",
            "Infinity",
            "nul",
            "truee",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\" 1}",
            "{\"a\":1,\"a\":2}",
            "{\"a\":1,\"\\u0061\":2}",
            "\"\n\"",
            "\"\\x41\"",
            "\"\\ud800\"",
            "\"\\udc00\"",
            "\"\\ud800\\u0041\"",
            "\"\\ud800\\ud800\"",
            "\"\\u12\"",
            "\"\\u+123\"",
            "\"",
            "[1 2]",
            "1 2",
            "\u{feff}1",
            "'a'",
        ] {
            assert!(parse("text", text).is_err(), "{text}");
        }
        assert!(parse("text", &"[".repeat(100_000)).is_err());
    }

    #[test]
    fn texts_are_what_they_spell() {
        let text = r#" { "a\u00e9\ud83d\ude00\n" : [ 1 , -0.5e-3 , true , null , { } , [ ] ] } "#;
        let whole = parse_object("text", text).unwrap();
        assert_eq!(whole.text, text.trim());
        let entries = whole.list("a\u{e9}\u{1f600}\n").unwrap();
        assert_eq!(entries[0].integer("x"), Ok(1));
        assert_eq!(entries[1].number("x"), Ok(-0.5e-3));
        assert_eq!(entries.len(), 6);
        assert_eq!(parse("x", "-0").unwrap().integer("x"), Ok(0));
        for wrong in ["1.0", "1e0", "-1", "9223372036854775808"] {
            assert!(parse("x", wrong).unwrap().integer("x").is_err(), "{wrong}");
        }
        let nested = |depth| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(parse("x", &nested(DEEPEST)).is_ok() && parse("x", &nested(DEEPEST + 1)).is_err());
    }

    #[test]
    fn texts_are_written_in_ascii_and_read_again() {
        let text = "a\"\\/\u{7f}\u{e9}\u{1f600}\n\t\u{1}";
        let quoted = quoted(text);
        assert_eq!(quoted, r#""a\"\\/\u007f\u00e9\ud83d\ude00\n\t\u0001""#);
        assert_eq!(parse("x", &quoted).unwrap().text("x"), Ok(text));
    }

    #[test]
    fn decimals_are_within_half_a_unit() {
        for (number, text) in [(0.0, "0"), (1.0, "1"), (0.5, "0.5"), (0.1, "0.1"), (1e-16, "0.0000000000000001")] {
            assert_eq!(decimal(number), text);
        }
    }
}
