//! The view model of the login page.

/// The error of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInError {
    /// The key is wrong; the name as typed.
    Wrong(String),
    /// Too many attempts; seconds to wait.
    TooOften(u64),
}
