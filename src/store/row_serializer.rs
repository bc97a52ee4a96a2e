//! A serde serializer that turns rows (tuples of numbers and text, or plain values) into values to bind.

use std::fmt::Error;

use serde::Serialize;
use serde::ser::{Impossible, SerializeSeq, SerializeTuple, Serializer};

use super::rows::Arg;

/// Collects the values of rows in sequence.
#[derive(Default)]
pub struct RowSerializer {
    pub values: Vec<Arg>,
    /// Whether a row was a tuple.
    pub is_tuple: bool,
}

impl RowSerializer {
    fn push(&mut self, value: Arg) -> Result<(), Error> {
        self.values.push(value);
        Ok(())
    }
}

/// Numbers that fit in a 64-bit integer of the database.
macro_rules! whole {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, value: $type) -> Result<(), Error> {
            self.push(Arg::Int(value.into()))
        })*
    };
}

/// Types that a row cannot contain.
macro_rules! unsupported {
    ($($name:ident($($type:ty),*) -> $result:ty;)*) => {
        $(fn $name(self, $(_: $type),*) -> Result<$result, Error> {
            Err(Error)
        })*
    };
}

impl Serializer for &mut RowSerializer {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Impossible<(), Error>;
    type SerializeTupleVariant = Impossible<(), Error>;
    type SerializeMap = Impossible<(), Error>;
    type SerializeStruct = Impossible<(), Error>;
    type SerializeStructVariant = Impossible<(), Error>;

    whole!(serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    whole!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32);

    fn serialize_u64(self, value: u64) -> Result<(), Error> {
        self.push(Arg::Int(i64::try_from(value).map_err(|_| Error)?))
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.push(Arg::Real(value.into()))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.push(Arg::Real(value))
    }

    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.push(Arg::Text(value.to_string()))
    }

    fn serialize_str(self, value: &str) -> Result<(), Error> {
        self.push(Arg::Text(value.to_owned()))
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.push(Arg::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.push(Arg::Null)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_seq(self, columns: Option<usize>) -> Result<Self, Error> {
        self.serialize_tuple(columns.unwrap_or_default())
    }

    fn serialize_tuple(self, columns: usize) -> Result<Self, Error> {
        self.is_tuple = true;
        self.values.reserve(columns);
        Ok(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Error> {
        Err(Error)
    }

    unsupported! {
        serialize_bytes(&[u8]) -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_unit_variant(&'static str, u32, &'static str) -> ();
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }
}

impl SerializeSeq for &mut RowSerializer {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}

impl SerializeTuple for &mut RowSerializer {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        value.serialize(&mut **self)
    }

    fn end(self) -> Result<(), Error> {
        Ok(())
    }
}
