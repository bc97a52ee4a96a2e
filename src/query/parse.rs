//! Parses an expression. SQLite's own grammar parses the text as the single column of a `SELECT`; the result is then
//! converted to a tree that can represent only what the query language allows. Everything else is rejected.

use sqlite3_parser::ast::{
    Cmd, Expr, Id, LikeOperator, Literal, Name, OneSelect, Operator, ResultColumn, Select,
    SelectBody, Stmt, UnaryOperator,
};
use sqlite3_parser::lexer::sql::{Error, Parser, ParserError};
use sqlite3_parser::{Bump, FallibleIterator};

use super::ExpressionError;
use super::literal::{boolean, number, unquoted};
use super::path;
use super::tokens::{self, DEPTH_MAX, Token};
use super::tree::{Arithmetic, Binary, Column, Compare, FUNCTIONS, Function, Node, Step, Type};
use super::value::Value;

/// The prefix that turns an expression into a statement.
const SELECT_PREFIX: &str = "SELECT ";

/// Parses an expression.
pub fn expression(text: &str) -> Result<Node, ExpressionError> {
    if let Some(at) = text.find('\0') {
        return Err(ExpressionError::new(at, "NUL is not allowed"));
    }
    let tokens = tokens::read(text)?;
    if tokens.is_empty() {
        return Err(ExpressionError::new(0, "an expression is missing"));
    }
    if let Some(word) = single_word(&tokens) {
        return Ok(word);
    }
    let statement = format!("{SELECT_PREFIX}{text}");
    let memory = Bump::new();
    let mut parser = Parser::new(&memory, statement.as_bytes());
    let syntax_error = |error: Error| syntax_error(text, &statement, &error);
    let first = parser.next().map_err(syntax_error)?;
    let mut reader = Reader {
        tokens: &tokens,
        next: 0,
        last: 0,
    };
    let node = reader.statement(first.as_ref())?;
    match parser.next().map_err(syntax_error)? {
        None => Ok(node),
        Some(_) => Err(reader.error("only one expression is allowed")),
    }
}

/// An expression that is a single name but not a column is a text: `CREATED`.
fn single_word(tokens: &[Token<'_>]) -> Option<Node> {
    let [token] = tokens else {
        return None;
    };
    let is_word = token.kind == sqlite3_parser::lexer::sql::TokenType::TK_ID
        && !token.text.starts_with(['"', '`'])
        && Column::named(token.text).is_none()
        && boolean(token.text).is_none();
    is_word.then(|| Node::Value(Value::text(token.text.to_owned())))
}

fn syntax_error(text: &str, statement: &str, error: &Error) -> ExpressionError {
    let Error::ParserError(error, position) = error else {
        return ExpressionError::new(0, "syntax error");
    };
    let at = position.as_ref().map(|at| {
        tokens::offset(statement, at.line, at.column).saturating_sub(SELECT_PREFIX.len())
    });
    let at = at.unwrap_or_default().min(text.len());
    let ends = text.get(at..).is_none_or(|rest| rest.trim().is_empty());
    let why = match error {
        ParserError::SyntaxError(near) if !ends => format!("syntax error at {near}"),
        ParserError::Custom(why) => why.clone(),
        _ => "the expression ends too early".to_owned(),
    };
    ExpressionError::new(at, why)
}

/// The tokens of the text, which provide the positions that SQLite's syntax tree lacks. The tree is traversed in the
/// order of the text, so a name is at its next occurrence among the tokens.
struct Reader<'t> {
    tokens: &'t [Token<'t>],
    next: usize,
    last: usize,
}

impl Reader<'_> {
    /// An error at the last consumed token.
    fn error(&self, why: impl Into<String>) -> ExpressionError {
        ExpressionError::new(self.last, why)
    }

    /// Advances past the next token with this text.
    fn advance_past(&mut self, word: &str) {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        if let Some(found) = rest.iter().position(|token| token.text == word) {
            self.last = rest.get(found).map_or(self.last, |token| token.at);
            self.next += found + 1;
        }
    }

    /// The expression of a statement that consists of nothing else.
    fn statement(&mut self, command: Option<&Cmd<'_>>) -> Result<Node, ExpressionError> {
        let Some(Cmd::Stmt(Stmt::Select(select))) = command else {
            return Err(self.error("not an expression"));
        };
        let Select {
            with: None,
            body:
                SelectBody {
                    select,
                    compounds: None,
                },
            order_by: None,
            limit: None,
        } = select
        else {
            return Err(self.error("only an expression is allowed"));
        };
        let OneSelect::Select {
            distinctness: None,
            columns,
            from: None,
            where_clause: None,
            group_by: None,
            having: None,
            window_clause: None,
        } = select
        else {
            return Err(self.error("only an expression is allowed"));
        };
        let (first, others) = columns
            .split_first()
            .ok_or_else(|| self.error("an expression is missing"))?;
        let ResultColumn::Expr(expr, alias) = first else {
            return Err(self.error("`*` is not allowed"));
        };
        let node = self.node(expr, 0)?;
        if alias.is_some() || !others.is_empty() {
            let next = self.tokens.get(self.next).or(self.tokens.last());
            let at = next.map_or(self.last, |token| token.at);
            return Err(ExpressionError::new(
                at,
                "nothing may follow the expression",
            ));
        }
        Ok(node)
    }

    /// Converts an expression: first its leftmost operand, then the steps applied to it.
    fn node(&mut self, expr: &Expr<'_>, depth: usize) -> Result<Node, ExpressionError> {
        if depth > DEPTH_MAX {
            let why =
                format!("the expression is nested too deeply; the limit is {DEPTH_MAX} levels");
            return Err(self.error(why));
        }
        let mut operators = Vec::new();
        let mut first = expr;
        while let Some(left) = left(first) {
            operators.push(first);
            first = left;
        }
        let node = self.operand(first, depth)?;
        let mut steps = Vec::new();
        for expr in operators.into_iter().rev() {
            steps.push(self.step(expr, depth + 1)?);
        }
        if steps.is_empty() {
            return Ok(node);
        }
        Ok(Node::Chain(Box::new(node), steps))
    }

    /// The step that an operator applies to the expression on its left.
    fn step(&mut self, expr: &Expr<'_>, depth: usize) -> Result<Step, ExpressionError> {
        match expr {
            Expr::Binary(_, operator, right) => {
                let right_node = self.node(right, depth)?;
                let Some(operator) = binary(*operator) else {
                    return Err(self.error("this operator is not allowed"));
                };
                if matches!(operator, Binary::Arrow { .. }) {
                    self.check_path(&right_node, true)?;
                }
                Ok(step(operator, right_node))
            }
            Expr::Like {
                lhs: _,
                not,
                op: LikeOperator::Like,
                rhs,
                escape: None,
            } => {
                let pattern = self.node(rhs, depth)?;
                Ok(Step::Binary(Binary::Like { not: *not }, pattern))
            }
            Expr::IsNull(_) => Ok(Step::IsNull(true)),
            Expr::NotNull(_) => Ok(Step::IsNull(false)),
            Expr::Between {
                lhs: _,
                not,
                start,
                end,
            } => Ok(Step::Between {
                not: *not,
                low: self.node(start, depth)?,
                high: self.node(end, depth)?,
            }),
            Expr::InList { lhs: _, not, rhs } => {
                let list = self.nodes(rhs.unwrap_or_default(), depth)?;
                Ok(Step::In { not: *not, list })
            }
            Expr::InTable { rhs, .. } => {
                self.advance_past(rhs.name.0);
                Err(self.error("IN requires a list in parentheses"))
            }
            _ => Err(self.error("this operator is not allowed")),
        }
    }

    fn nodes(&mut self, exprs: &[Expr<'_>], depth: usize) -> Result<Vec<Node>, ExpressionError> {
        exprs.iter().map(|expr| self.node(expr, depth)).collect()
    }

    fn operand(&mut self, expr: &Expr<'_>, depth: usize) -> Result<Node, ExpressionError> {
        match expr {
            Expr::Literal(literal) => self.literal(literal, false),
            Expr::Id(Id(name)) | Expr::Name(Name(name)) => self.name(name),
            Expr::Qualified(Name(table), Name(name)) => self.qualified(table, name),
            Expr::Parenthesized(inner) => match inner.as_slice() {
                [inner] => self.node(inner, depth + 1),
                _ => Err(self.error("lists are allowed only after IN and in function calls")),
            },
            Expr::Unary(UnaryOperator::Negative, inner) => match unsigned(inner) {
                Expr::Literal(literal @ Literal::Numeric(_)) => self.literal(literal, true),
                _ => Ok(Node::Negative(Box::new(self.node(inner, depth + 1)?))),
            },
            Expr::Unary(UnaryOperator::Positive, inner) => {
                Ok(Node::Positive(Box::new(self.node(inner, depth + 1)?)))
            }
            Expr::Unary(UnaryOperator::Not, inner) => {
                Ok(Node::Not(Box::new(self.node(inner, depth + 1)?)))
            }
            Expr::Cast { expr, type_name } => {
                let inner = self.node(expr, depth + 1)?;
                let name = type_name.as_ref().filter(|kind| kind.size.is_none());
                let name = name.map(|kind| kind.name).unwrap_or_default();
                self.advance_past(name);
                let kind = self.cast_type(name)?;
                Ok(Node::Cast(Box::new(inner), kind))
            }
            Expr::FunctionCall {
                name: Id(name),
                distinctness: None,
                args,
                order_by: None,
                filter_over: None,
            } => self.call(name, args.unwrap_or_default(), depth + 1),
            Expr::FunctionCall { name, .. } | Expr::FunctionCallStar { name, .. } => {
                self.advance_past(name.0);
                let why = format!("the function {} cannot be called in this form", name.0);
                Err(self.error(why))
            }
            _ => Err(self.error("this is not allowed here")),
        }
    }

    fn cast_type(&self, name: &str) -> Result<Type, ExpressionError> {
        let types = [
            ("text", Type::Text),
            ("integer", Type::Integer),
            ("real", Type::Real),
        ];
        let mut types = types.into_iter();
        let found = types.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found
            .map(|(_, kind)| kind)
            .ok_or_else(|| self.error("CAST supports only TEXT, INTEGER and REAL"))
    }

    fn literal(
        &mut self,
        literal: &Literal<'_>,
        is_negative: bool,
    ) -> Result<Node, ExpressionError> {
        match literal {
            Literal::Numeric(digits) => {
                self.advance_past(digits);
                let number = number(digits, is_negative);
                let too_big = || self.error("this number does not fit into 64 bits");
                number.map(Node::Value).ok_or_else(too_big)
            }
            Literal::String(quoted) => {
                self.advance_past(quoted);
                Ok(Node::Value(Value::text(unquoted(quoted))))
            }
            Literal::Null => Ok(Node::Value(Value::Null)),
            Literal::Blob(_)
            | Literal::Keyword(_)
            | Literal::CurrentDate
            | Literal::CurrentTime
            | Literal::CurrentTimestamp => Err(self.error("this literal is not allowed")),
        }
    }

    fn name(&mut self, name: &str) -> Result<Node, ExpressionError> {
        self.advance_past(name);
        let is_quoted = name.starts_with(['"', '`']);
        let text = if is_quoted {
            unquoted(name)
        } else {
            name.to_owned()
        };
        if let Some(column) = Column::named(&text) {
            return Ok(Node::Column(column));
        }
        if is_quoted {
            return Ok(Node::Value(Value::text(text)));
        }
        let unknown = || {
            let known = "id, payload, state, events, modified";
            self.error(format!(
                "unknown column {name}; columns are {known}; to use it as text, write '{name}'"
            ))
        };
        boolean(name).map(Node::Boolean).ok_or_else(unknown)
    }

    fn qualified(&mut self, table: &str, name: &str) -> Result<Node, ExpressionError> {
        self.advance_past(table);
        if !["j", "job"]
            .iter()
            .any(|own| own.eq_ignore_ascii_case(table))
        {
            let why = format!("unknown table {table}; use j or job");
            return Err(self.error(why));
        }
        self.advance_past(name);
        let column = Column::named(name);
        let unknown = || self.error(format!("table {table} has no column {name}"));
        column.map(Node::Column).ok_or_else(unknown)
    }

    fn call(
        &mut self,
        name: &str,
        args: &[Expr<'_>],
        depth: usize,
    ) -> Result<Node, ExpressionError> {
        self.advance_past(name);
        let at = self.last;
        if let Some(now) = now(name, args) {
            for word in ["'%s'", "'now'"] {
                self.advance_past(word);
            }
            return now.map_err(|why| ExpressionError::new(at, why));
        }
        let mut functions = FUNCTIONS.iter();
        let known = functions.find(|(known, ..)| known.eq_ignore_ascii_case(name));
        let Some((_, function, least, most)) = known else {
            let names: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            let why = format!(
                "the function {name} is not supported; supported functions are {}, strftime('%s','now'), unixepoch()",
                names.join(", ")
            );
            return Err(self.error(why));
        };
        if args.len() < *least || args.len() > *most {
            let why = format!("wrong number of arguments for {name}: {}", args.len());
            return Err(self.error(why));
        }
        let mut arguments = Vec::with_capacity(args.len());
        for (number, arg) in args.iter().enumerate() {
            let argument = self.node(arg, depth)?;
            let has_paths = matches!(
                function,
                Function::JsonExtract | Function::JsonType | Function::JsonArrayLength
            );
            if has_paths && number > 0 {
                self.check_path(&argument, false)?;
            }
            arguments.push(argument);
        }
        Ok(Node::Call(*function, arguments))
    }

    /// Rejects an invalid literal path, which could never match. An arrow also accepts labels.
    fn check_path(&self, node: &Node, is_label: bool) -> Result<(), ExpressionError> {
        let Node::Value(Value::Text { text, .. }) = node else {
            return Ok(());
        };
        if (is_label && !text.starts_with('$')) || path::is_path(text) {
            return Ok(());
        }
        Err(self.error(format!("'{text}' is not a JSON path")))
    }
}

/// The calls that return the current time, in exactly these forms.
fn now(name: &str, args: &[Expr<'_>]) -> Option<Result<Node, &'static str>> {
    if name.eq_ignore_ascii_case("unixepoch") {
        let now = args.is_empty().then_some(Node::Now { as_text: false });
        return Some(now.ok_or("unixepoch takes no arguments here"));
    }
    if !name.eq_ignore_ascii_case("strftime") {
        return None;
    }
    let is_allowed = matches!(
        args,
        [
            Expr::Literal(Literal::String("'%s'")),
            Expr::Literal(Literal::String("'now'"))
        ]
    );
    let now = is_allowed.then_some(Node::Now { as_text: true });
    Some(now.ok_or("strftime is allowed only as strftime('%s','now')"))
}

/// The expression to the left of an operator.
fn left<'e>(expr: &'e Expr<'_>) -> Option<&'e Expr<'e>> {
    match expr {
        Expr::Binary(left, ..)
        | Expr::Like { lhs: left, .. }
        | Expr::IsNull(left)
        | Expr::NotNull(left)
        | Expr::Between { lhs: left, .. }
        | Expr::InList { lhs: left, .. }
        | Expr::InTable { lhs: left, .. } => Some(left),
        _ => None,
    }
}

/// The expression without enclosing parentheses and plus signs. SQLite drops a plus sign after a minus sign, so
/// `-(+9223372036854775808)` is an integer.
fn unsigned<'e>(mut expr: &'e Expr<'e>) -> &'e Expr<'e> {
    loop {
        expr = match expr {
            Expr::Unary(UnaryOperator::Positive, inner) => inner,
            Expr::Parenthesized(inner) => match inner.as_slice() {
                [inner] => inner,
                _ => return expr,
            },
            _ => return expr,
        };
    }
}

/// The step of an operator and its right side. `IS TRUE` and `IS FALSE` have their own step.
pub fn step(operator: Binary, right: Node) -> Step {
    match (operator, &right) {
        (Binary::Compare(compare @ (Compare::Is | Compare::IsNot)), Node::Boolean(value)) => {
            Step::IsBoolean {
                value: *value,
                not: compare == Compare::IsNot,
            }
        }
        _ => Step::Binary(operator, right),
    }
}

fn binary(operator: Operator) -> Option<Binary> {
    let allowed = match operator {
        Operator::And => Binary::And,
        Operator::Or => Binary::Or,
        Operator::Is => Binary::Compare(Compare::Is),
        Operator::IsNot => Binary::Compare(Compare::IsNot),
        Operator::Equals => Binary::Compare(Compare::Equal),
        Operator::NotEquals => Binary::Compare(Compare::NotEqual),
        Operator::Less => Binary::Compare(Compare::Less),
        Operator::LessEquals => Binary::Compare(Compare::LessEqual),
        Operator::Greater => Binary::Compare(Compare::Greater),
        Operator::GreaterEquals => Binary::Compare(Compare::GreaterEqual),
        Operator::Add => Binary::Arithmetic(Arithmetic::Add),
        Operator::Subtract => Binary::Arithmetic(Arithmetic::Subtract),
        Operator::Multiply => Binary::Arithmetic(Arithmetic::Multiply),
        Operator::Divide => Binary::Arithmetic(Arithmetic::Divide),
        Operator::Modulus => Binary::Arithmetic(Arithmetic::Remainder),
        Operator::Concat => Binary::Concat,
        Operator::ArrowRight => Binary::Arrow { is_json: true },
        Operator::ArrowRightShift => Binary::Arrow { is_json: false },
        Operator::BitwiseAnd | Operator::BitwiseOr | Operator::LeftShift | Operator::RightShift => {
            return None;
        }
    };
    Some(allowed)
}
