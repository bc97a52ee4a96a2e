//! The static files of the dashboard. With the feature `embed-site` the binary contains them (`build.rs`); otherwise
//! the server reads `target/site`, or `LEPTOS_SITE_ROOT`, at startup.
//!
//! The files of the package folder are below `/ui/pkg/<hash of all files>/`, so browsers can cache them for a year.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    body::Body,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use leptos::config::LeptosOptions;

use crate::memory::SharedBody;

/// `(path below the site's root, content)`
type Embedded = [(&'static str, &'static [u8])];

/// Empty without the feature `embed-site`.
static EMBEDDED: &Embedded = include!(concat!(env!("OUT_DIR"), "/site.rs"));

const OUTPUT_NAME: &str = env!("LEPTOS_OUTPUT_NAME");
const PKG_DIR: &str = "ui/pkg";

/// All files of the site, read once at start. A clone is cheap.
#[derive(Clone)]
pub struct Assets {
    files: Arc<BTreeMap<String, Bytes>>,
    version: Arc<str>,
}

impl Assets {
    /// The embedded files, or those of the site folder. Without either the pages still work as plain HTML.
    pub fn load() -> Self {
        let files: BTreeMap<String, Bytes> = if EMBEDDED.is_empty() {
            let root = std::env::var_os("LEPTOS_SITE_ROOT").map_or_else(
                || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/site"),
                PathBuf::from,
            );
            read_folder(&root)
        } else {
            EMBEDDED
                .iter()
                .map(|(path, content)| ((*path).to_owned(), Bytes::from_static(content)))
                .collect()
        };
        let mut hasher = DefaultHasher::new();
        files.hash(&mut hasher);
        Self {
            version: format!("{:016x}", hasher.finish()).into(),
            files: files.into(),
        }
    }

    /// The options that point Leptos to these files.
    pub fn leptos_options(&self) -> LeptosOptions {
        LeptosOptions::builder()
            .output_name(OUTPUT_NAME)
            .site_pkg_dir(format!("{PKG_DIR}/{}", self.version))
            .build()
    }

    /// A file under `/ui/pkg/<version>/`; 404 for other versions.
    pub fn package_file(&self, version: &str, name: &str, request: &HeaderMap) -> Response {
        if version == &*self.version {
            self.file(
                &format!("{PKG_DIR}/{name}"),
                request,
                "public, max-age=31536000, immutable",
            )
        } else {
            StatusCode::NOT_FOUND.into_response()
        }
    }

    /// A file of `public/`, at the root of the site.
    pub fn public_file(&self, name: &str, request: &HeaderMap) -> Response {
        self.file(name, request, "public, max-age=3600")
    }

    fn file(&self, path: &str, request: &HeaderMap, cache: &'static str) -> Response {
        let Some(plain) = self.files.get(path) else {
            return StatusCode::NOT_FOUND.into_response();
        };
        let (content, encoding) = [("br", "br"), ("gzip", "gz")]
            .iter()
            .filter(|(encoding, _)| accepts(request, encoding))
            .find_map(|(encoding, suffix)| {
                Some((self.files.get(&format!("{path}.{suffix}"))?, *encoding))
            })
            .map_or((plain, None), |(content, encoding)| {
                (content, Some(encoding))
            });
        let mut response = Response::new(Body::from(content.clone()));
        response.extensions_mut().insert(SharedBody);
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            header::HeaderValue::from_static(content_type(path)),
        );
        headers.insert(
            header::CACHE_CONTROL,
            header::HeaderValue::from_static(cache),
        );
        headers.insert(
            header::VARY,
            header::HeaderValue::from_static("accept-encoding"),
        );
        if let Some(encoding) = encoding {
            headers.insert(
                header::CONTENT_ENCODING,
                header::HeaderValue::from_static(encoding),
            );
        }
        response
    }
}

fn accepts(request: &HeaderMap, encoding: &str) -> bool {
    request
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|item| {
                let (name, weight) = item.split_once(';').unwrap_or((item, ""));
                name.trim().eq_ignore_ascii_case(encoding)
                    && !matches!(weight.trim(), "q=0" | "q=0.0")
            })
        })
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("css") => "text/css; charset=utf-8",
        Some("ico") => "image/x-icon",
        Some("js") => "text/javascript; charset=utf-8",
        Some("png") => "image/png",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    }
}

/// All readable files below `root`, by their path with `/`.
fn read_folder(root: &Path) -> BTreeMap<String, Bytes> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(name), Ok(content)) = (path.strip_prefix(root), std::fs::read(&path))
            {
                let name: Vec<Cow<'_, str>> =
                    name.iter().map(|part| part.to_string_lossy()).collect();
                files.insert(name.join("/"), Bytes::from(content));
            }
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assets(files: &[(&str, &str)]) -> Assets {
        let files: BTreeMap<_, _> = files
            .iter()
            .map(|(name, content)| ((*name).to_owned(), Bytes::from((*content).to_owned())))
            .collect();
        Assets {
            files: files.into(),
            version: "v1".into(),
        }
    }

    fn accepting(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT_ENCODING, value.parse().unwrap())])
    }

    #[test]
    fn a_file_is_compressed_only_for_clients_that_accept_it() {
        let assets = assets(&[
            ("ui/pkg/a.js", "plain"),
            ("ui/pkg/a.js.br", "b"),
            ("ui/pkg/a.js.gz", "g"),
        ]);
        for (accept, encoding) in [
            ("", None),
            ("br;q=0", None),
            ("gzip", Some("gzip")),
            ("gzip, deflate, br", Some("br")),
            ("BR;q=0.5", Some("br")),
        ] {
            let response = assets.package_file("v1", "a.js", &accepting(accept));
            assert_eq!(
                response
                    .headers()
                    .get(header::CONTENT_ENCODING)
                    .map(|v| v.to_str().unwrap()),
                encoding
            );
            assert_eq!(
                response.headers()[header::CONTENT_TYPE],
                "text/javascript; charset=utf-8"
            );
        }
    }

    #[test]
    fn only_the_current_version_is_served_and_cacheable() {
        let assets = assets(&[("ui/pkg/a.css", "")]);
        let found = assets.package_file("v1", "a.css", &HeaderMap::new());
        assert_eq!(found.status(), StatusCode::OK);
        assert!(
            found.headers()[header::CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
        assert_eq!(
            assets
                .package_file("v0", "a.css", &HeaderMap::new())
                .status(),
            StatusCode::NOT_FOUND
        );
        assert_eq!(
            assets
                .package_file("v1", "../a.css", &HeaderMap::new())
                .status(),
            StatusCode::NOT_FOUND
        );
    }
}
