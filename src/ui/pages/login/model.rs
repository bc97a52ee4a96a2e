//! The view model of the sign-in page.

/// The error of a sign-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignInError {
    /// The name or the key is wrong. Contains the name as typed.
    Wrong(String),
    /// Too many attempts. Contains the time to wait, in seconds.
    TooOften(u64),
}
