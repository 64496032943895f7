//! A hub with one file, which it sends slowly.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The only repository.
pub(crate) const REPO: &str = "acme/tiny-GGUF";
/// Size of its only file.
pub(crate) const FILE_BYTES: usize = 1 << 20;
const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// What is sent at once.
const PIECE: usize = 16 << 10;

/// A server on a port of its own, until the test ends.
pub(crate) struct Hub {
    port: u16,
    sent: Arc<AtomicU64>,
}

impl Hub {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sent = Arc::clone(&counted);
                // A client that is killed hangs up: that is what this is for.
                thread::spawn(move || drop(serve(&stream, &sent)));
            }
        });
        Self { port, sent }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Bytes of the file that were sent so far, in all transfers.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

/// The file: no two places of it are the same.
pub(crate) fn file() -> Vec<u8> {
    (0..FILE_BYTES as u32 / 4)
        .flat_map(|at| at.wrapping_mul(0x9e37_79b9).to_le_bytes())
        .collect()
}

fn serve(mut stream: &TcpStream, sent: &AtomicU64) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut start = 0;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().unwrap_or(0);
        }
    }
    let total = FILE_BYTES;
    if first.starts_with("GET /api/") {
        let list = r#"{"siblings":[{"rfilename":"tiny.Q4_1.gguf"}]}"#;
        let len = list.len();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {len}\r\nconnection: close\r\n\r\n{list}"
        );
    }
    let status = match start {
        0 => "200 OK".to_owned(),
        _ => format!(
            "206 Partial\r\ncontent-range: bytes {start}-{}/{total}",
            total - 1
        ),
    };
    write!(
        stream,
        "HTTP/1.1 {status}\r\nx-repo-commit: {COMMIT}\r\netag: \"{COMMIT}\"\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        total - start
    )?;
    if first.starts_with("HEAD ") {
        return Ok(());
    }
    for piece in file()[start..].chunks(PIECE) {
        stream.write_all(piece)?;
        sent.fetch_add(piece.len() as u64, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
