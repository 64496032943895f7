//! The hub's HTTP interface: list a repository, look at a file, read it from any byte on.

use std::io::Read;
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use ureq::config::RedirectAuthHeaders;
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::reference::is_relative;
use crate::{FetchError, StoreOptions, proxy};

/// What is escaped in one component of an address.
const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Short, so that where the hub is out of reach the next source has its turn soon.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may be silent.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest list of files that is read, in bytes.
const MAX_LISTING_BYTES: u64 = 64 << 20;

/// Asks one hub, as one user.
pub(crate) struct Hub<'a> {
    agent: Agent,
    endpoint: &'a str,
    token: Option<&'a str>,
}

/// The files of a repository at one commit.
#[derive(Debug, Deserialize)]
pub(crate) struct Listing {
    siblings: Vec<Sibling>,
}

#[derive(Debug, Deserialize)]
struct Sibling {
    rfilename: String,
}

/// What the hub says of one file.
#[derive(Debug)]
pub(crate) struct RemoteFile {
    pub(crate) commit: String,
    pub(crate) etag: String,
    pub(crate) size_bytes: u64,
}

/// The bytes of a file from `start_bytes` on.
pub(crate) struct Remainder {
    pub(crate) start_bytes: u64,
    pub(crate) reader: Box<dyn Read>,
}

impl<'a> Hub<'a> {
    /// Asks with this token, or as nobody.
    pub(crate) fn new(
        options: &'a StoreOptions,
        token: Option<&'a str>,
    ) -> Result<Self, FetchError> {
        if options.offline {
            return Err(FetchError::Offline);
        }
        let proxy = options.proxy.as_deref();
        let proxy = proxy.map(|url| proxy::build(url, &options.no_proxy));
        let agent = Agent::config_builder()
            .proxy(proxy.transpose()?)
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_recv_response(Some(SILENCE_TIMEOUT))
            .timeout_per_read(Some(SILENCE_TIMEOUT))
            .user_agent(concat!("tandem/", env!("CARGO_PKG_VERSION")))
            .build()
            .into();
        Ok(Self {
            agent,
            endpoint: &options.endpoint,
            token,
        })
    }

    /// Lists the files of `repo` at `revision`.
    pub(crate) fn list(&self, repo: &str, revision: &str) -> Result<Vec<String>, FetchError> {
        let url = format!(
            "{}/api/models/{repo}/revision/{}",
            self.endpoint,
            escape(revision)
        );
        let request = self.authorize(self.agent.get(&url));
        let mut response = request.call().map_err(unreachable)?;
        self.check(&response, repo, || format!("{repo} at revision {revision}"))?;
        let body = response
            .body_mut()
            .with_config()
            .limit(MAX_LISTING_BYTES)
            .read_to_vec();
        let listing: Listing = serde_json::from_slice(&body.map_err(unreachable)?)
            .map_err(|error| bad(format!("the list of files is no such JSON ({error})")))?;
        let files = listing
            .siblings
            .into_iter()
            .map(|sibling| sibling.rfilename);
        Ok(files.filter(|file| is_relative(file)).collect())
    }

    /// Asks for the commit, the etag and the size of `file`.
    ///
    /// Large files are redirected to another host; what the hub says of them is on the redirect
    /// itself. A redirect within the hub, as for a renamed repository, is followed.
    pub(crate) fn look(
        &self,
        repo: &str,
        revision: &str,
        file: &str,
    ) -> Result<RemoteFile, FetchError> {
        let mut url = self.resolve(repo, revision, file);
        for _ in 0..5 {
            let request = self
                .authorize(self.agent.head(&url))
                .header("accept-encoding", "identity");
            let response = request
                .config()
                .max_redirects(0)
                .build()
                .call()
                .map_err(unreachable)?;
            let location = header(&response, "location").filter(|at| at.starts_with('/'));
            match location {
                Some(path) if header(&response, "x-linked-etag").is_none() => {
                    url = format!("{}{path}", origin(self.endpoint));
                }
                _ => {
                    self.check(&response, repo, || {
                        format!("{file} of {repo} at revision {revision}")
                    })?;
                    return remote_file(&response);
                }
            }
        }
        Err(bad("it redirects without end".to_owned()))
    }

    /// Reads `file` from `start_bytes` on, or from its start if the server does not do otherwise.
    pub(crate) fn read(
        &self,
        repo: &str,
        remote: &RemoteFile,
        file: &str,
        start_bytes: u64,
    ) -> Result<Remainder, FetchError> {
        let url = self.resolve(repo, &remote.commit, file);
        let mut request = self
            .authorize(self.agent.get(&url))
            .header("accept-encoding", "identity");
        if start_bytes > 0 {
            request = request.header("range", format!("bytes={start_bytes}-"));
        }
        let response = request.call().map_err(unreachable)?;
        let wanted = format!(
            "bytes {start_bytes}-{}/{}",
            remote.size_bytes - 1,
            remote.size_bytes
        );
        let start_bytes = match response.status().as_u16() {
            206 if header(&response, "content-range") == Some(wanted.as_str()) => start_bytes,
            206 => return Err(bad(format!("it does not send the range {wanted}"))),
            _ => 0,
        };
        self.check(&response, repo, || format!("{file} of {repo}"))?;
        Ok(Remainder {
            start_bytes,
            reader: Box::new(response.into_body().into_reader()),
        })
    }

    fn resolve(&self, repo: &str, revision: &str, file: &str) -> String {
        let file = file.split('/').map(escape).collect::<Vec<_>>().join("/");
        format!(
            "{}/{repo}/resolve/{}/{file}",
            self.endpoint,
            escape(revision)
        )
    }

    fn authorize<B>(&self, request: ureq::RequestBuilder<B>) -> ureq::RequestBuilder<B> {
        match self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        }
    }

    fn check(
        &self,
        response: &Response<Body>,
        repo: &str,
        what: impl Fn() -> String,
    ) -> Result<(), FetchError> {
        match response.status().as_u16() {
            200..=399 => Ok(()),
            status @ (401 | 403) => Err(FetchError::Refused {
                status,
                repo: repo.to_owned(),
                sent_token: self.token.is_some(),
            }),
            404 => Err(FetchError::NotFound { what: what() }),
            status => Err(FetchError::Status {
                status,
                retry_after: retry_after(response),
            }),
        }
    }
}

fn remote_file(response: &Response<Body>) -> Result<RemoteFile, FetchError> {
    let need = |names: [&str; 2]| {
        let value = names.iter().find_map(|name| header(response, name));
        value.ok_or_else(|| bad(format!("it lacks the header {}", names[1])))
    };
    let commit = need(["x-repo-commit", "x-repo-commit"])?;
    let etag = need(["x-linked-etag", "etag"])?
        .trim_start_matches("W/")
        .trim_matches('"');
    let size = need(["x-linked-size", "content-length"])?;
    // Both become names of files, so nothing but hexadecimal digits will do.
    if [commit, etag]
        .iter()
        .any(|name| name.is_empty() || !name.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(bad(format!(
            "commit `{commit}` or etag `{etag}` is no hash"
        )));
    }
    let size_bytes = size.parse().ok().filter(|&size| size > 0);
    let size_bytes = size_bytes.ok_or_else(|| bad(format!("`{size}` is no size in bytes")))?;
    Ok(RemoteFile {
        commit: commit.to_owned(),
        etag: etag.to_ascii_lowercase(),
        size_bytes,
    })
}

/// When the server asks to be asked again, where it says so in seconds.
fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = header(response, "retry-after")?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn header<'r>(response: &'r Response<Body>, name: &str) -> Option<&'r str> {
    response.headers().get(name)?.to_str().ok()
}

fn escape(component: &str) -> String {
    utf8_percent_encode(component, COMPONENT).to_string()
}

/// The scheme and host of an address.
fn origin(url: &str) -> &str {
    let host = url.find("://").map_or(0, |at| at + 3);
    url[host..].find('/').map_or(url, |end| &url[..host + end])
}

fn bad(what: String) -> FetchError {
    FetchError::BadAnswer { what }
}

fn unreachable(error: ureq::Error) -> FetchError {
    let reason = match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    };
    FetchError::Unreachable { reason }
}
