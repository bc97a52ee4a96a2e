//! JSON arrays of which only a limited number of elements is kept.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};

/// The elements of a JSON array, but at most one more than `MAX`: enough to see that there are too many, without the
/// memory for millions of them.
pub struct UpTo<const MAX: usize, T>(pub Vec<T>);

impl<'de, const MAX: usize, T: Deserialize<'de>> Deserialize<'de> for UpTo<MAX, T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Array<const MAX: usize, T>(PhantomData<T>);
        impl<'de, const MAX: usize, T: Deserialize<'de>> Visitor<'de> for Array<MAX, T> {
            type Value = UpTo<MAX, T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a sequence")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while elements.len() <= MAX {
                    match array.next_element()? {
                        Some(element) => elements.push(element),
                        None => return Ok(UpTo(elements)),
                    }
                }
                while array.next_element::<IgnoredAny>()?.is_some() {}
                Ok(UpTo(elements))
            }
        }
        deserializer.deserialize_seq(Array(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_elements_one_more_than_the_limit_is_kept() {
        for (text, kept) in [
            ("[]", 0),
            ("[1, 2]", 2),
            ("[1, 2, 3]", 3),
            ("[1,2,3,4,5]", 3),
        ] {
            let read: UpTo<2, i64> = serde_json::from_str(text).unwrap();
            assert_eq!(read.0.len(), kept, "{text}");
        }
        for text in ["[1, 2, 3, 4", "[1, 2, 3, x]", "[1, \"2\"]", "{}"] {
            let read = serde_json::from_str::<UpTo<2, i64>>(text);
            assert!(read.is_err(), "{text}");
        }
    }
}
