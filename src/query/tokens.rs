//! The tokens of an expression. Forbidden tokens are rejected here, before the grammar runs, because their positions
//! are known here.

use sqlite3_parser::lexer::Scanner;
use sqlite3_parser::lexer::sql::{Error, TokenType, Tokenizer};

use super::ExpressionError;

/// Maximum number of tokens in an expression.
pub const TOKENS_MAX: usize = 512;
/// Maximum nesting depth of parentheses and operators.
pub const DEPTH_MAX: usize = 100;

/// A token and its byte offset.
#[derive(Debug, Clone, Copy)]
pub struct Token<'t> {
    pub kind: TokenType,
    pub text: &'t str,
    pub at: usize,
}

/// The tokens of a text, if all of them are allowed.
pub fn read(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
    let input = text.as_bytes();
    let mut scanner = Scanner::new(Tokenizer::new());
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut end = 0;
    let mut depth: usize = 0;
    loop {
        let (start, found, next) = scanner
            .scan(input)
            .map_err(|error| syntax_error(text, &error))?;
        check_between(text, end, start)?;
        let Some((_, kind)) = found else {
            return Ok(tokens);
        };
        // The tokenizer omits parts of some tokens, so the token is cut from the text.
        let word = text.get(start..next).unwrap_or_default();
        let token = Token {
            kind,
            text: word,
            at: start,
        };
        check(&token)?;
        depth = match kind {
            TokenType::TK_LP => depth + 1,
            TokenType::TK_RP => depth.saturating_sub(1),
            _ => depth,
        };
        if depth > DEPTH_MAX {
            let why = format!("parentheses are nested too deeply; the limit is {DEPTH_MAX} levels");
            return Err(ExpressionError::new(start, why));
        }
        if tokens.len() >= TOKENS_MAX {
            let why = format!("the expression is too long; the limit is {TOKENS_MAX} tokens");
            return Err(ExpressionError::new(start, why));
        }
        tokens.push(token);
        end = next;
    }
}

/// Checks that there is only whitespace between two tokens, because the tokenizer also skips comments.
fn check_between(text: &str, end: usize, start: usize) -> Result<(), ExpressionError> {
    let between = text.get(end..start).unwrap_or_default();
    let is_blank = |byte: u8| byte.is_ascii_whitespace();
    match between.bytes().position(|byte| !is_blank(byte)) {
        Some(at) => Err(ExpressionError::new(end + at, "comments are not allowed")),
        None => Ok(()),
    }
}

fn check(token: &Token<'_>) -> Result<(), ExpressionError> {
    use TokenType::{
        TK_AND, TK_AS, TK_BETWEEN, TK_CAST, TK_COMMA, TK_CONCAT, TK_DOT, TK_EQ, TK_FLOAT, TK_GE,
        TK_GT, TK_ID, TK_IN, TK_INTEGER, TK_IS, TK_ISNULL, TK_LE, TK_LIKE_KW, TK_LP, TK_LT,
        TK_MINUS, TK_NE, TK_NOT, TK_NOTNULL, TK_NULL, TK_OR, TK_PLUS, TK_PTR, TK_REM, TK_RP,
        TK_SLASH, TK_STAR, TK_STRING,
    };
    let is_allowed = match token.kind {
        TK_LP | TK_RP | TK_COMMA | TK_DOT | TK_EQ | TK_NE | TK_LT | TK_LE | TK_GT | TK_GE
        | TK_PLUS | TK_MINUS | TK_STAR | TK_SLASH | TK_REM | TK_CONCAT | TK_PTR | TK_STRING
        | TK_INTEGER | TK_FLOAT | TK_AND | TK_OR | TK_NOT | TK_IS | TK_NULL | TK_ISNULL
        | TK_NOTNULL | TK_IN | TK_BETWEEN | TK_CAST | TK_AS => true,
        TK_LIKE_KW => token.text.eq_ignore_ascii_case("like"),
        TK_ID => !token.text.starts_with('['),
        _ => false,
    };
    if is_allowed {
        return Ok(());
    }
    Err(ExpressionError::new(token.at, why_forbidden(token)))
}

fn why_forbidden(token: &Token<'_>) -> String {
    let text = token.text;
    match token.kind {
        TokenType::TK_VARIABLE => {
            format!("the parameter {text} is not allowed; write the value instead")
        }
        TokenType::TK_SEMI => "`;` is not allowed; write one expression".to_owned(),
        TokenType::TK_BLOB => "blobs are not allowed".to_owned(),
        TokenType::TK_ID => format!("names in brackets are not allowed: {text}"),
        _ if text.starts_with(|first: char| first.is_ascii_alphabetic()) => {
            format!("the keyword {text} is not allowed here; to use it as text, write '{text}'")
        }
        _ => format!("the operator {text} is not allowed"),
    }
}

/// The error for a text that the tokenizer cannot read.
fn syntax_error(text: &str, error: &Error) -> ExpressionError {
    let (position, why) = match error {
        Error::UnrecognizedToken(at) => (at, "unexpected character"),
        Error::UnterminatedLiteral(at) => (at, "the quote is not closed"),
        Error::UnterminatedBracket(at) => (at, "the bracket is not closed"),
        Error::UnterminatedBlockComment(at) => (at, "comments are not allowed"),
        Error::BadVariableName(at) => (at, "parameters are not allowed"),
        Error::BadNumber(at) | Error::MalformedHexInteger(at) => (at, "not a valid number"),
        Error::ExpectedEqualsSign(at) => (at, "`!` must be followed by `=`"),
        Error::MalformedBlobLiteral(at) => (at, "blobs are not allowed"),
        _ => (&None, "syntax error"),
    };
    let at = position.as_ref().map(|at| offset(text, at.line, at.column));
    ExpressionError::new(at.unwrap_or_default(), why)
}

/// The byte offset of a line and a column (in bytes), both counted from 1.
pub fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    let before: usize = before.map(str::len).sum();
    (before + column.saturating_sub(1)).min(text.len())
}
