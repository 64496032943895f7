//! Answers of a hub: any bytes where a list of files, the head of one, or the file itself was asked for.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tandem_fuzz::{TIMES, Target, check};
use tandem_models::{Event, ModelRef, Store, StoreOptions};

use crate::chain;

const LISTING: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 67\r\nconnection: close\r\n\r\n\
    {\"sha\":\"0\",\"siblings\":[{\"rfilename\":\"tiny.Q4_1.gguf\"}],\"tags\":[\"a\"]}";
const HEAD: &str = "HTTP/1.1 200 OK\r\nx-repo-commit: 0123456789abcdef0123456789abcdef01234567\r\n\
    etag: \"0123456789abcdef0123456789abcdef01234567\"\r\nx-linked-size: 5\r\ncontent-length: 5\r\nconnection: close\r\n\r\n";
const FILE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nbytes";
const GONE: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// What the server answers, in the order of what a pull asks for.
#[derive(Debug)]
struct Answers {
    list: Vec<u8>,
    head: Vec<u8>,
    /// Each is sent once: a pull that asks again, after a pause, is told that there is nothing.
    file: Option<Vec<u8>>,
}

#[test]
fn answers_to_pull() {
    let answers = Arc::new(Mutex::new(usual()));
    let port = serve(Arc::clone(&answers));
    let directory = crate::scratch();
    let hub_cache = directory.path().join("hub");
    let store = Store::new(StoreOptions {
        hub_cache: hub_cache.clone(),
        models_dir: directory.path().join("models"),
        home: Some(directory.path().to_owned()),
        endpoint: format!("http://127.0.0.1:{port}"),
        token: Some("secret".to_owned()),
        proxy: None,
        no_proxy: Vec::new(),
        patience: Duration::ZERO,
        offline: false,
        python: PathBuf::from("/nonexistent/python3"),
    });
    let model: ModelRef = "acme/tiny-GGUF".parse().unwrap();
    let target = Target {
        name: "pull",
        words: &[
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 206 Partial Content\r\n",
            b"HTTP/1.1 302 Found\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.1 429 \r\n",
            b"HTTP/1.1 500 \r\n",
            b"location: /",
            b"location: http://127.0.0.1:1/",
            b"location: //[::",
            b"content-length: 18446744073709551615\r\n",
            b"content-length: -1\r\n",
            b"transfer-encoding: chunked\r\n",
            b"ffffffffffffffff\r\n",
            b"0\r\n\r\n",
            b"x-linked-etag: ",
            b"x-linked-size: 0\r\n",
            b"x-linked-size: 9223372036854775807\r\n",
            b"content-range: bytes 0-4/5\r\n",
            b"content-encoding: gzip\r\n",
            b"{\"siblings\":[",
            b"{\"rfilename\":\"",
            b"../../x.gguf",
            b"-00001-of-00002.gguf",
            b"[[[[[[[[[[[[[[[[",
            b"\r\n\r\n",
            b"\x00",
        ],
        // Buffers for sending, receiving and hashing.
        fixed_bytes: 4 << 20,
        times: TIMES,
        seeds: [LISTING, HEAD, FILE]
            .iter()
            .zip(0u8..)
            .map(|(answer, first)| [&[first], answer.as_bytes()].concat())
            .collect(),
    };
    check(&target, |input| {
        let mut said = usual();
        if let Some((first, rest)) = input.split_first() {
            // Seldom the file itself: a transfer that breaks off is tried again after a pause.
            match first % 32 {
                2 => said.file = Some(rest.to_vec()),
                odd if odd % 2 == 1 => said.head = rest.to_vec(),
                _ => said.list = rest.to_vec(),
            }
        }
        *answers.lock().unwrap() = said;
        let pulled = store.pull(&model, &mut |_: Event<'_>| {});
        let text = match &pulled {
            Ok(path) => {
                // Whatever the server says, a file lands in the cache and nowhere else.
                let real = path.canonicalize().unwrap();
                assert!(
                    real.starts_with(hub_cache.canonicalize().unwrap()),
                    "{real:?}"
                );
                "pulled".to_owned()
            }
            Err(error) => chain(error),
        };
        let _ = fs::remove_dir_all(&hub_cache);
        text
    });
}

fn usual() -> Answers {
    Answers {
        list: LISTING.into(),
        head: HEAD.into(),
        file: Some(FILE.into()),
    }
}

/// Answers each connection once, for as long as the process lives; returns the port.
fn serve(answers: Arc<Mutex<Answers>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that hangs up in the middle is no concern of the server's.
            let _ = answer(&stream, &answers);
        }
    });
    port
}

fn answer(mut stream: &TcpStream, answers: &Mutex<Answers>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let bytes = {
        let mut answers = answers.lock().unwrap();
        if first.starts_with("HEAD ") {
            answers.head.clone()
        } else if first.starts_with("GET /api/") {
            answers.list.clone()
        } else {
            answers.file.take().unwrap_or_else(|| GONE.into())
        }
    };
    stream.write_all(&bytes)
}
