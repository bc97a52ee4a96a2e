//! The view model of the login page.

/// Why somebody could not sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignIn {
    /// The name that was typed, with what is no key.
    Wrong(String),
    /// Seconds until one may try again.
    TooOften(u64),
}
