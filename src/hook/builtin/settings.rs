//! Settings of a built-in hook, taken out one by one; what is left over is unknown.

use serde_json::{Map, Value};

/// Settings that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSetting {
    /// It has no such setting.
    #[error("it has no setting `{0}`")]
    Unknown(String),
    /// The value is of the wrong kind.
    #[error("`{0}` must be {1}")]
    Value(&'static str, &'static str),
}

/// Settings being read.
pub struct Settings(Map<String, Value>);

impl Settings {
    /// These.
    pub const fn new(config: Map<String, Value>) -> Self {
        Self(config)
    }

    /// A whole number of at least `least`.
    pub fn number(&mut self, name: &'static str, default: u64, least: u64) -> Result<u64, BadSetting> {
        const WANTED: &str = "a whole number, and not too small";
        match self.0.remove(name) {
            None => Ok(default),
            Some(value) => value
                .as_u64()
                .filter(|number| *number >= least)
                .ok_or(BadSetting::Value(name, WANTED)),
        }
    }

    /// True or false.
    pub fn switch(&mut self, name: &'static str, default: bool) -> Result<bool, BadSetting> {
        match self.0.remove(name) {
            None => Ok(default),
            Some(value) => value.as_bool().ok_or(BadSetting::Value(name, "true or false")),
        }
    }

    /// One of some words; nothing when it is left out.
    pub fn word(
        &mut self,
        name: &'static str,
        words: &[&'static str],
        wanted: &'static str,
    ) -> Result<Option<&'static str>, BadSetting> {
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        let word = words.iter().copied().find(|word| value.as_str() == Some(word));
        word.map(Some).ok_or(BadSetting::Value(name, wanted))
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &'static str) -> Result<Option<Vec<String>>, BadSetting> {
        let bad = || BadSetting::Value(name, "a list of texts");
        let Some(value) = self.0.remove(name) else {
            return Ok(None);
        };
        let items = value.as_array().ok_or_else(bad)?;
        let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>().map(Some).ok_or_else(bad)
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), BadSetting> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(BadSetting::Unknown(name)),
        }
    }
}
