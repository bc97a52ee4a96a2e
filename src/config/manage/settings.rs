//! Flags of the commands that manage the options and tokens of a running server.

use clap::Subcommand;

use super::Remote;

#[derive(Debug, Subcommand)]
pub enum OptionCommand {
    /// List the options of a running server and of its queues.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Only options that differ from their default.
        #[arg(long)]
        changed: bool,
    },
    /// Print the value of an option of a running server, as JSON.
    Get {
        #[command(flatten)]
        remote: Remote,
        /// Name of the option, such as heartbeat.
        option: String,
        /// qless queue that the option applies to [default: all queues].
        #[arg(long)]
        queue: Option<String>,
    },
    /// Set an option of a running server. The change applies at once and is stored in the database.
    Set {
        #[command(flatten)]
        remote: Remote,
        /// Name of the option, such as heartbeat.
        option: String,
        /// New value: JSON, or any text for options that are not numbers.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// qless queue that the option applies to [default: all queues].
        #[arg(long)]
        queue: Option<String>,
    },
    /// Reset an option of a running server to its default.
    Unset {
        #[command(flatten)]
        remote: Remote,
        /// Name of the option, such as heartbeat.
        option: String,
        /// qless queue that the option applies to [default: all queues].
        #[arg(long)]
        queue: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum RemoteToken {
    /// Create a token for a namespace and print it. Only its hash is stored, so it is not shown again.
    Create {
        #[command(flatten)]
        remote: Remote,
        /// Namespace that the token gives access to.
        namespace: String,
        /// Description shown in the lists of tokens, such as who uses the token. Up to 1,024 bytes.
        #[arg(long)]
        description: String,
        /// When the token expires: after a duration in s, m, h, d or w (30d), or at an RFC 3339 date-time
        /// (2030-01-31T00:00:00Z), at most 3,650 days from now [default: never].
        #[arg(long, value_name = "WHEN")]
        expires: Option<String>,
    },
    /// List the tokens of one namespace or of all, without their secrets.
    List {
        #[command(flatten)]
        remote: Remote,
        /// Namespace whose tokens to list [default: all].
        namespace: Option<String>,
    },
    /// Revoke a token. When the command succeeds, every server already refuses the token.
    Revoke {
        #[command(flatten)]
        remote: Remote,
        /// Namespace of the token.
        namespace: String,
        /// Token ID from the list (sha256:…).
        #[arg(value_name = "TOKEN_ID")]
        name: String,
    },
}
