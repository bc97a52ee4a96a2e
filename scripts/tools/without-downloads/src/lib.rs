//! The interface of reqwest that cargo-leptos uses to download programs, which fails here: they are in `node_modules`.

use std::fmt;

#[derive(Debug)]
pub struct Error;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this build of cargo-leptos downloads no programs")
    }
}

impl std::error::Error for Error {}

pub struct StatusCode;

impl StatusCode {
    pub fn is_success(&self) -> bool {
        false
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error.fmt(f)
    }
}

pub struct Response;

impl Response {
    pub fn status(&self) -> StatusCode {
        StatusCode
    }

    pub async fn bytes(self) -> Result<bytes::Bytes, Error> {
        Err(Error)
    }

    pub async fn json<T: serde::de::DeserializeOwned>(self) -> Result<T, Error> {
        Err(Error)
    }
}

pub struct RequestBuilder;

impl RequestBuilder {
    pub async fn send(self) -> Result<Response, Error> {
        Err(Error)
    }
}

#[derive(Default)]
pub struct Client;

impl Client {
    pub fn get(&self, _: String) -> RequestBuilder {
        RequestBuilder
    }
}

#[derive(Default)]
pub struct ClientBuilder;

impl ClientBuilder {
    pub fn user_agent(self, _: &str) -> ClientBuilder {
        self
    }

    pub fn build(self) -> Result<Client, Error> {
        Ok(Client)
    }
}

pub async fn get(_: &str) -> Result<Response, Error> {
    Err(Error)
}
