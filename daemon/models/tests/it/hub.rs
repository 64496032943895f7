//! A small hub: the requests of the real one that the store makes, and the faults it must survive.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

pub(crate) const REPO: &str = "acme/tiny-GGUF";
pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// How long anything may take before a test gives up.
const LIMIT: Duration = Duration::from_secs(120);

/// How the hub behaves; tests change it while it runs.
#[derive(Default)]
pub(crate) struct Behaviour {
    /// Files by name.
    pub(crate) files: HashMap<String, Vec<u8>>,
    /// Sends these bytes instead of the file's own.
    pub(crate) sends_instead: Option<Vec<u8>>,
    /// Answers a range with the whole file.
    pub(crate) ignores_range: bool,
    /// Cuts the next transfers after so many bytes, one entry each.
    pub(crate) cuts: Vec<usize>,
    /// Answers everything with this status.
    pub(crate) status: Option<u16>,
    /// Answers the next requests with these statuses, and a `retry-after` of so many seconds, one entry each.
    pub(crate) busy: Vec<(u16, u32)>,
    /// Refuses this token, and takes everybody else.
    pub(crate) refuses_token: Option<(&'static str, u16)>,
    /// Answers everything with a page for people, as a network does that wants a login first.
    pub(crate) wants_login: bool,
    /// Says that files are this long.
    pub(crate) claims_size: Option<u64>,
    /// Says that files have this etag.
    pub(crate) claims_etag: Option<String>,
    /// Redirects the repository of this name to the real one, as after a rename.
    pub(crate) old_name: Option<String>,
    /// Sends no bytes for as long as this holds.
    pub(crate) holds: bool,
    /// What was asked so far.
    pub(crate) requests: Vec<Request>,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
}

#[derive(Clone)]
pub(crate) struct FakeHub {
    port: u16,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl FakeHub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback is there");
        let port = listener.local_addr().expect("it is bound").port();
        let hub = Self {
            port,
            behaviour: Arc::default(),
        };
        let serving = hub.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hub = serving.clone();
                // A client that hangs up is what some of the tests are about.
                thread::spawn(move || drop(hub.serve(stream)));
            }
        });
        hub
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn set<T>(&self, change: impl FnOnce(&mut Behaviour) -> T) -> T {
        change(
            &mut self
                .behaviour
                .lock()
                .expect("no test panics while it holds this"),
        )
    }

    pub(crate) fn add(&self, file: &str, bytes: &[u8]) {
        self.set(|it| it.files.insert(file.to_owned(), bytes.to_vec()));
    }

    /// The requests so far whose path starts with `prefix`.
    pub(crate) fn requests(&self, prefix: &str) -> Vec<Request> {
        self.set(|it| {
            it.requests
                .iter()
                .filter(|at| at.path.starts_with(prefix))
                .cloned()
                .collect()
        })
    }

    fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let request = read_request(&stream)?;
        self.set(|it| it.requests.push(request.clone()));
        let end = Instant::now() + LIMIT;
        while request.path.starts_with("/cdn/") && self.set(|it| it.holds) {
            assert!(Instant::now() < end, "nobody let the hub send");
            thread::sleep(Duration::from_millis(5));
        }
        let (head, body) = self.set(|it| answer(it, &request, self.port));
        stream.write_all(format!("HTTP/1.1 {head}connection: close\r\n\r\n").as_bytes())?;
        if request.method != "HEAD" {
            stream.write_all(&body)?;
        }
        Ok(())
    }
}

fn read_request(stream: &TcpStream) -> std::io::Result<Request> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    Ok(Request {
        method,
        path,
        headers,
    })
}

fn answer(hub: &mut Behaviour, request: &Request, port: u16) -> (String, Vec<u8>) {
    let missing = || {
        (
            "404 Not Found\r\ncontent-length: 0\r\n".to_owned(),
            Vec::new(),
        )
    };
    if hub.wants_login {
        let page = b"<html>Welcome to our free network!</html>".to_vec();
        return (
            format!(
                "200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n",
                page.len()
            ),
            page,
        );
    }
    if !hub.busy.is_empty() {
        let (status, after) = hub.busy.remove(0);
        let head = format!("{status} Busy\r\nretry-after: {after}\r\ncontent-length: 0\r\n");
        return (head, Vec::new());
    }
    if let Some((token, status)) = hub.refuses_token
        && request
            .headers
            .get("authorization")
            .is_some_and(|sent| sent.ends_with(token))
    {
        return (format!("{status} No\r\ncontent-length: 0\r\n"), Vec::new());
    }
    if let Some(status) = hub.status {
        return (format!("{status} No\r\ncontent-length: 0\r\n"), Vec::new());
    }
    if let Some(old) = hub
        .old_name
        .as_ref()
        .filter(|old| request.path.contains(old.as_str()))
    {
        let path = request.path.replace(old.as_str(), REPO);
        let head = format!("307 Moved\r\nlocation: {path}\r\ncontent-length: 0\r\n");
        return (head, Vec::new());
    }
    if let Some(revision) = request
        .path
        .strip_prefix(&format!("/api/models/{REPO}/revision/"))
    {
        if !["main", COMMIT].contains(&revision) {
            return missing();
        }
        let names = hub
            .files
            .keys()
            .map(|name| format!(r#"{{"rfilename":"{name}"}}"#));
        let names = names.collect::<Vec<_>>().join(",");
        let body = format!(r#"{{"sha":"{COMMIT}","siblings":[{names}]}}"#).into_bytes();
        return (
            format!("200 OK\r\ncontent-length: {}\r\n", body.len()),
            body,
        );
    }
    if let Some(sha256) = request.path.strip_prefix("/cdn/") {
        let file = hub
            .files
            .values()
            .find(|bytes| hash(bytes) == sha256)
            .cloned();
        return file.map_or_else(missing, |bytes| transfer(hub, request, bytes));
    }
    let resolved = request.path.strip_prefix(&format!("/{REPO}/resolve/"));
    let named = resolved.and_then(|rest| rest.split_once('/'));
    let known = named.filter(|(revision, _)| ["main", COMMIT].contains(revision));
    let Some(bytes) = known.and_then(|(_, file)| hub.files.get(file)) else {
        return missing();
    };
    let (sha256, size) = (hash(bytes), bytes.len() as u64);
    let etag = hub.claims_etag.as_ref().unwrap_or(&sha256);
    let size = hub.claims_size.unwrap_or(size);
    // Another host by name, so that a token sent there would have leaked.
    let head = format!(
        "302 Found\r\nx-repo-commit: {COMMIT}\r\nx-linked-etag: \"{etag}\"\r\n\
         x-linked-size: {size}\r\nlocation: http://localhost:{port}/cdn/{sha256}\r\n\
         content-length: 0\r\n"
    );
    (head, Vec::new())
}

fn transfer(hub: &mut Behaviour, request: &Request, bytes: Vec<u8>) -> (String, Vec<u8>) {
    let bytes = hub.sends_instead.clone().unwrap_or(bytes);
    let range = request.headers.get("range").filter(|_| !hub.ignores_range);
    let start = range.and_then(|range| {
        range
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    });
    let (start, total): (usize, usize) = (start.unwrap_or(0), bytes.len());
    let mut head = match range {
        Some(_) => format!(
            "206 Partial\r\ncontent-range: bytes {start}-{}/{total}\r\n",
            total - 1
        ),
        None => "200 OK\r\n".to_owned(),
    };
    head += &format!("content-length: {}\r\n", total - start);
    let mut body = bytes[start..].to_vec();
    if !hub.cuts.is_empty() {
        body.truncate(hub.cuts.remove(0));
    }
    (head, body)
}

/// The SHA-256 of `bytes` in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
