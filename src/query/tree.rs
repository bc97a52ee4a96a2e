//! The syntax tree. It can represent only expressions that the query language allows.

use super::UsedColumns;
use super::value::{Affinity, Value};

#[derive(Debug)]
pub enum Node {
    Value(Value<'static>),
    /// `TRUE` or `FALSE`: 1 or 0, except to the right of `IS`, where it tests a condition.
    Boolean(bool),
    Column(Column),
    /// The time of the evaluation in seconds since 1970, as text (`strftime`) or as a number (`unixepoch`).
    Now {
        as_text: bool,
    },
    /// An operand and the steps applied to it from left to right, so that a long sum does not become a deep tree.
    Chain(Box<Node>, Vec<Step>),
    Negative(Box<Node>),
    /// A unary plus, which only removes a column's affinity.
    Positive(Box<Node>),
    Not(Box<Node>),
    Cast(Box<Node>, Type),
    Call(Function, Vec<Node>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Id,
    Payload,
    State,
    Events,
    Modified,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    Text,
    Integer,
    Real,
}

#[derive(Debug)]
pub enum Step {
    Binary(Binary, Node),
    IsNull(bool),
    /// `IS [NOT] TRUE`, `IS [NOT] FALSE`.
    IsBoolean {
        value: bool,
        not: bool,
    },
    Between {
        not: bool,
        low: Node,
        high: Node,
    },
    In {
        not: bool,
        list: Vec<Node>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    And,
    Or,
    Compare(Compare),
    Like {
        not: bool,
    },
    Arithmetic(Arithmetic),
    Concat,
    /// `->` returns JSON, `->>` an SQL value.
    Arrow {
        is_json: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    Is,
    IsNot,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    JsonExtract,
    JsonType,
    JsonArrayLength,
    JsonValid,
    Json,
    JsonArray,
    Length,
    Lower,
    Upper,
    Trim,
    Substr,
    Instr,
    Abs,
    Round,
    Min,
    Max,
    Coalesce,
    NullIf,
    Iif,
    TypeOf,
}

/// The functions, with their minimum and maximum number of arguments.
pub const FUNCTIONS: [(&str, Function, usize, usize); 21] = [
    ("abs", Function::Abs, 1, 1),
    ("coalesce", Function::Coalesce, 2, usize::MAX),
    ("ifnull", Function::Coalesce, 2, 2),
    ("iif", Function::Iif, 2, 3),
    ("instr", Function::Instr, 2, 2),
    ("json", Function::Json, 1, 1),
    ("json_array", Function::JsonArray, 0, usize::MAX),
    ("json_array_length", Function::JsonArrayLength, 1, 2),
    ("json_extract", Function::JsonExtract, 2, usize::MAX),
    ("json_type", Function::JsonType, 1, 2),
    ("json_valid", Function::JsonValid, 1, 1),
    ("length", Function::Length, 1, 1),
    ("lower", Function::Lower, 1, 1),
    ("max", Function::Max, 2, usize::MAX),
    ("min", Function::Min, 2, usize::MAX),
    ("nullif", Function::NullIf, 2, 2),
    ("round", Function::Round, 1, 2),
    ("substr", Function::Substr, 2, 3),
    ("trim", Function::Trim, 1, 2),
    ("typeof", Function::TypeOf, 1, 1),
    ("upper", Function::Upper, 1, 1),
];

impl Column {
    /// The column with this name, ignoring case.
    pub fn named(name: &str) -> Option<Column> {
        let columns = [
            ("id", Column::Id),
            ("payload", Column::Payload),
            ("state", Column::State),
            ("events", Column::Events),
            ("modified", Column::Modified),
        ];
        let mut columns = columns.into_iter();
        let found = columns.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, column)| column)
    }
}

impl Node {
    pub fn affinity(&self) -> Affinity {
        match self {
            Node::Column(Column::Id | Column::Modified)
            | Node::Cast(_, Type::Integer | Type::Real) => Affinity::Numeric,
            Node::Column(Column::Payload | Column::State | Column::Events)
            | Node::Cast(_, Type::Text) => Affinity::Text,
            Node::Value(_)
            | Node::Boolean(_)
            | Node::Now { .. }
            | Node::Chain(..)
            | Node::Negative(_)
            | Node::Positive(_)
            | Node::Not(_)
            | Node::Call(..) => Affinity::None,
        }
    }

    /// Adds the columns that the expression uses, and whether it uses the current time.
    pub fn add_columns(&self, columns: &mut UsedColumns) {
        match self {
            Node::Value(_) | Node::Boolean(_) => {}
            Node::Now { .. } => columns.time = true,
            Node::Column(Column::Payload) => columns.payload = true,
            Node::Column(Column::State) => columns.state = true,
            Node::Column(Column::Events) => columns.events = true,
            Node::Column(Column::Id | Column::Modified) => {}
            Node::Chain(first, steps) => {
                first.add_columns(columns);
                for step in steps {
                    step.add_columns(columns);
                }
            }
            Node::Negative(inner)
            | Node::Positive(inner)
            | Node::Not(inner)
            | Node::Cast(inner, _) => inner.add_columns(columns),
            Node::Call(_, arguments) => {
                for argument in arguments {
                    argument.add_columns(columns);
                }
            }
        }
    }
}

impl Step {
    fn add_columns(&self, columns: &mut UsedColumns) {
        match self {
            Step::Binary(_, node) => node.add_columns(columns),
            Step::IsNull(_) | Step::IsBoolean { .. } => {}
            Step::Between { low, high, .. } => {
                low.add_columns(columns);
                high.add_columns(columns);
            }
            Step::In { list, .. } => {
                for node in list {
                    node.add_columns(columns);
                }
            }
        }
    }
}
