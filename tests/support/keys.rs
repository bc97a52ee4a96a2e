//! Credentials of the servers under test, and the flags that set them.

pub const ADMIN: &str = "the-token-of-the-admin";
pub const QLESS: &str = "the-token-of-qless";
pub const RELAY: &str = "the-token-of-relay";
pub const JOBQ: &str = "the-token-of-jobq";
pub const PASSWORD: &str = "a pass:word é";
pub const VIEWER_KEY: &str = "the-key-of-vera";
pub const OPERATOR_KEY: &str = "the-key-of-olga";
pub const ADMIN_KEY: &str = "the-key-of-anna";

/// The administrator's token.
pub const ADMIN_TOKEN: [&str; 2] = ["--admin-token", ADMIN];

/// The administrator's name and password.
pub const ADMIN_LOGIN: [&str; 4] = ["--admin-user", "ada", "--admin-password", PASSWORD];

/// A token of each API that has one.
pub const API_TOKENS: [&str; 6] = [
    "--qless-token",
    QLESS,
    "--relay-token",
    RELAY,
    "--jobq-token",
    JOBQ,
];

/// A key of the dashboard with each role.
pub const UI_KEYS: [&str; 6] = [
    "--ui-key",
    "viewer:vera:the-key-of-vera",
    "--ui-key",
    "operator:olga:the-key-of-olga",
    "--ui-key",
    "admin:anna:the-key-of-anna",
];
