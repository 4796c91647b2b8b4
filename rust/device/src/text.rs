//! Texts that people read, and numbers that they type.

use alloc::format;
use alloc::string::String;

use crate::error::{Refusal, Result};

/// A name or who asks: one line.
pub(crate) const PRINTABLE: bool = false;

/// Plain words, which may have several lines.
pub(crate) const PLAIN: bool = true;

/// Returns a text of 1 to `longest` characters, none of which controls what is shown or hides in it.
pub(crate) fn check_text<'a>(name: &str, text: &'a str, longest: usize, lines: bool) -> Result<&'a str> {
    if text.is_empty() || text.chars().count() > longest {
        return Err(Refusal::new(name, &format!("it must have from 1 to {longest} characters")));
    }
    if text.chars().any(|letter| is_hidden(letter) && !(lines && letter == '\n')) {
        return Err(Refusal::new(name, "it must be printable"));
    }
    Ok(text)
}

/// Whether a character cannot be seen, or changes how others are shown.
fn is_hidden(letter: char) -> bool {
    matches!(letter,
        '\0'..='\x1f' | '\x7f'..='\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The same number as JSON writes it.
pub(crate) fn number_text(text: &str) -> String {
    let text = text.trim_matches(' ');
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let (number, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let whole = whole.trim_start_matches('0');
    let (whole, point) = (if whole.is_empty() { "0" } else { whole }, if part.is_empty() { "" } else { "." });
    [sign, whole, point, part, exponent].concat()
}

/// The number that a person has typed: a decimal number with spaces around it, a sign, a fraction and an exponent, if any.
pub(crate) fn number_of(text: &str) -> Option<f64> {
    let text = text.trim_matches(' ');
    // The digits alone decide what a number is: names such as "inf" are none.
    let plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'+' | b'-' | b'e' | b'E'));
    if plain { text.parse().ok() } else { None }
}
