//! Compares the values at paths of a payload. Integers of up to 128 bits compare exactly with each other; all other
//! numbers compare as floats.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::{Compare, ValueCondition};
use crate::budget::{Budget, BudgetExceeded};

/// An integer of up to 128 bits, or any other number as a float.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Parses a number with an optional sign, fraction and exponent.
    pub fn read(text: &str) -> Option<Number> {
        let signs = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        if !text.bytes().all(signs) {
            return None;
        }
        let whole = text.parse().ok().map(Number::Whole);
        whole.or_else(|| text.parse().ok().map(Number::Real))
    }

    fn order(&self, other: &Number) -> Option<Ordering> {
        match (self, other) {
            (Number::Whole(a), Number::Whole(b)) => Some(a.cmp(b)),
            (a, b) => a.as_real().partial_cmp(&b.as_real()),
        }
    }

    fn as_real(&self) -> f64 {
        match self {
            Number::Whole(whole) => *whole as f64,
            Number::Real(real) => *real,
        }
    }

    /// Whether `self` compares this way with `other`.
    pub fn satisfies(&self, compare: Compare, other: &Number) -> bool {
        self.order(other).is_some_and(|order| compare.holds(order))
    }
}

/// A condition on a payload: a path, and the condition on its value. Names select members of objects; numbers (from 0)
/// also select elements of arrays.
pub type PathCondition<'a> = (&'a [String], &'a ValueCondition);

/// Which of the conditions hold. Reads the payload once for all of them and skips values that no path leads to. If the
/// text is not JSON, none holds.
pub fn matching_paths(
    text: &str,
    conditions: &[PathCondition<'_>],
    budget: &mut Budget,
) -> Result<Vec<bool>, BudgetExceeded> {
    budget.spend(text.len())?;
    let mut reader = PayloadReader {
        conditions,
        matches: vec![false; conditions.len()],
        budget,
        exceeded: None,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let all = ValueVisitor {
        reader: &mut reader,
        depth: 0,
        terms: (0..conditions.len()).collect(),
    };
    let read = all.deserialize(&mut json).and_then(|()| json.end());
    match (reader.exceeded, read) {
        (Some(exceeded), _) => Err(exceeded),
        (None, Ok(())) => Ok(reader.matches),
        (None, Err(_)) => Ok(vec![false; conditions.len()]),
    }
}

/// The state of reading a payload.
struct PayloadReader<'r> {
    conditions: &'r [PathCondition<'r>],
    matches: Vec<bool>,
    budget: &'r mut Budget,
    /// Why reading ended early.
    exceeded: Option<BudgetExceeded>,
}

impl<'r> PayloadReader<'r> {
    fn path(&self, term: usize) -> &'r [String] {
        self.conditions.get(term).map_or(&[], |(path, _)| path)
    }

    /// Spends so much of the budget, or ends the reading with an error.
    fn spend<E: de::Error>(&mut self, steps: usize) -> Result<(), E> {
        let spent = self.budget.spend(steps);
        self.or_end(spent)
    }

    /// Whether a value, or any element of an array, meets the condition.
    fn meets_or_contains<E: de::Error>(
        &mut self,
        text: &str,
        condition: &ValueCondition,
    ) -> Result<bool, E> {
        let meets = meets_or_contains(text, condition, self.budget);
        self.or_end(meets)
    }

    /// Ends the reading with an error if the budget is exceeded.
    fn or_end<T, E: de::Error>(&mut self, result: Result<T, BudgetExceeded>) -> Result<T, E> {
        result.map_err(|exceeded| {
            self.exceeded = Some(exceeded);
            E::custom(exceeded)
        })
    }

    fn set_match(&mut self, term: usize, is_match: bool) {
        if let Some(matches) = self.matches.get_mut(term) {
            *matches = is_match;
        }
    }
}

/// A value at the first `depth` steps of the paths of `terms`.
struct ValueVisitor<'a, 'r> {
    reader: &'a mut PayloadReader<'r>,
    depth: usize,
    terms: Vec<usize>,
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(mut self, value: D) -> Result<(), D::Error> {
        let is_end = |term: &usize| self.reader.path(*term).len() == self.depth;
        let (ends, deeper): (Vec<usize>, Vec<usize>) = self.terms.iter().copied().partition(is_end);
        self.terms = deeper;
        if ends.is_empty() {
            return value.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(value)?.get();
        for term in ends {
            self.reader.spend(text.len())?;
            let condition = self
                .reader
                .conditions
                .get(term)
                .map(|(_, condition)| *condition);
            let is_match = match condition {
                Some(condition) => self.reader.meets_or_contains(text, condition)?,
                None => false,
            };
            self.reader.set_match(term, is_match);
        }
        if self.terms.is_empty() {
            return Ok(());
        }
        self.reader.spend(text.len())?;
        let mut inside = serde_json::Deserializer::from_str(text);
        inside.deserialize_any(self).map_err(de::Error::custom)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let ValueVisitor {
            reader,
            depth,
            terms,
        } = self;
        while let Some(terms) = map.next_key_seed(Key {
            reader: &mut *reader,
            depth,
            terms: &terms,
        })? {
            if terms.is_empty() {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            // The last of duplicate names counts.
            terms.iter().for_each(|term| reader.set_match(*term, false));
            map.next_value_seed(ValueVisitor {
                reader: &mut *reader,
                depth: depth + 1,
                terms,
            })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let ValueVisitor {
            reader,
            depth,
            terms,
        } = self;
        let index = |term: &usize| reader.path(*term).get(depth)?.parse::<usize>().ok();
        let places: Vec<_> = terms.iter().map(|term| (*term, index(term))).collect();
        for at in 0.. {
            reader.spend(places.len())?;
            let here = places.iter().filter(|(_, index)| *index == Some(at));
            let terms: Vec<usize> = here.map(|(term, _)| *term).collect();
            let next = if terms.is_empty() {
                list.next_element::<IgnoredAny>()?.map(|_| ())
            } else {
                list.next_element_seed(ValueVisitor {
                    reader: &mut *reader,
                    depth: depth + 1,
                    terms,
                })?
            };
            if next.is_none() {
                break;
            }
        }
        Ok(())
    }

    // Scalars: the paths lead no further.
    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A name in an object. Yields the terms whose paths continue with it.
struct Key<'a, 'r> {
    reader: &'a mut PayloadReader<'r>,
    depth: usize,
    terms: &'a [usize],
}

impl<'de> DeserializeSeed<'de> for Key<'_, '_> {
    type Value = Vec<usize>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Vec<usize>, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_, '_> {
    type Value = Vec<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Vec<usize>, E> {
        self.reader.spend(self.terms.len())?;
        let leads = |term: &usize| {
            let path = self.reader.path(*term);
            path.get(self.depth).is_some_and(|step| step == name)
        };
        Ok(self.terms.iter().copied().filter(leads).collect())
    }
}

/// Whether a value, or any element of an array, meets the condition.
fn meets_or_contains(
    text: &str,
    condition: &ValueCondition,
    budget: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    if !text.starts_with('[') || is_anything(condition) {
        return meets(text, condition, budget);
    }
    let mut any = AnyElement {
        condition,
        budget,
        found: Ok(false),
    };
    let read = any.deserialize(&mut serde_json::Deserializer::from_str(text));
    Ok(any.found? && read.is_ok())
}

/// Whether an element of an array meets the condition.
struct AnyElement<'a> {
    condition: &'a ValueCondition,
    budget: &'a mut Budget,
    found: Result<bool, BudgetExceeded>,
}

impl<'de> DeserializeSeed<'de> for &mut AnyElement<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, array: D) -> Result<(), D::Error> {
        array.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut AnyElement<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(value) = array.next_element::<&RawValue>()? {
            if self.found == Ok(false) {
                self.found = meets(value.get(), self.condition, self.budget);
            }
        }
        Ok(())
    }
}

fn is_anything(condition: &ValueCondition) -> bool {
    matches!(condition, ValueCondition::Matches(pattern, _) if pattern.is_any())
}

/// Whether a value meets the condition.
fn meets(
    value: &str,
    condition: &ValueCondition,
    budget: &mut Budget,
) -> Result<bool, BudgetExceeded> {
    let value = value.trim();
    let number = || match value.as_bytes().first() {
        Some(b'-' | b'0'..=b'9') => Number::read(value),
        _ => None,
    };
    let is_number = |compare, than| number().is_some_and(|number| number.satisfies(compare, than));
    Ok(match condition {
        ValueCondition::Number(compare, than) => is_number(*compare, than),
        ValueCondition::Matches(pattern, _) if pattern.is_any() => true,
        ValueCondition::Matches(pattern, than) => match value.as_bytes().first() {
            Some(b'"') => match serde_json::from_str::<String>(value) {
                Ok(text) => pattern.matches(&text, budget)?,
                Err(_) => false,
            },
            Some(b'{' | b'[') | None => false,
            Some(_) => {
                pattern.matches(value, budget)?
                    || (than.as_ref()).is_some_and(|than| is_number(Compare::Is, than))
            }
        },
    })
}
