//! How the subcommands that talk to a server reach it.

use std::path::PathBuf;

use clap::{Args, Command as Definition};

use crate::client::{Client, Settings, Token};
use crate::secret::read_file;

/// The default address of the server, where it also listens by default.
const SERVER: &str = "http://127.0.0.1:3000";

/// The heading of these options in the help.
pub const CONNECTION: &str = "Connection";

/// The server, and the credentials of the client. Flatten it after the options of the subcommand.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = CONNECTION)]
pub struct Connection {
    /// URL of the server: http://HOST:PORT or https://HOST, optionally with a path.
    #[arg(long, env = "SWITCHYARD_SERVER", default_value = SERVER, value_name = "URL")]
    pub server: String,
    /// Token that the command sends to the server. To put and claim jobs: the token of the API, or for lmstfy the token
    /// of the namespace. To manage a server: the admin token, or the secret of a dashboard key. With --user: the
    /// password of that user.
    // Parsed later, because clap's error would contain it.
    #[arg(long, env = "SWITCHYARD_TOKEN", hide_env_values = true)]
    #[arg(value_name = "TOKEN", group = "connection-token-source")]
    pub token: Option<String>,
    /// File with the value of --token.
    #[arg(long, env = "SWITCHYARD_TOKEN_FILE", value_parser = token_file, value_name = "PATH")]
    #[arg(group = "connection-token-source")]
    pub token_file: Option<Token>,
    /// Name of a user; --token is then the password of that user.
    #[arg(long, env = "SWITCHYARD_USER", value_name = "NAME")]
    #[arg(requires = "connection-token-source")]
    pub user: Option<String>,
    /// File in PEM format with the certificate authorities to trust instead of the system's.
    #[arg(long, env = "SWITCHYARD_CA", value_name = "PATH")]
    pub ca: Option<String>,
    /// Configuration file with profiles, which name servers and their tokens.
    #[arg(long, env = "SWITCHYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Profile of the configuration file that provides the settings above, unless they are set [default: the profile
    /// `default`, if there is one].
    #[arg(
        long,
        env = "SWITCHYARD_PROFILE",
        value_name = "NAME",
        requires = "config"
    )]
    pub profile: Option<String>,
}

impl Connection {
    /// The definition of these options alone, which is also that of a profile's keys.
    pub fn definition() -> Definition {
        let mut definition = Connection::augment_args(Definition::new("connection"));
        definition.build();
        definition
    }

    /// A client with these options. It does not connect yet.
    ///
    /// # Errors
    /// If the address, the token or the CA file is not valid.
    pub fn client(&self) -> Result<Client, String> {
        let ca = self.ca.as_deref().map(read_file).transpose();
        let token = self.token.as_deref().map(Token::new).transpose();
        let token = token.map_err(|why| format!("--token {why}"))?;
        Client::new(&Settings {
            server: self.server.clone(),
            token: token.or_else(|| self.token_file.clone()),
            user: self.user.clone(),
            ca: ca.map_err(|why| format!("--ca: {why}"))?,
        })
    }
}

fn token_file(path: &str) -> Result<Token, String> {
    Token::new(&read_file(path)?).map_err(str::to_owned)
}
