//! A hub that is asked through a proxy.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::hub::REPO;
use crate::world::{World, noise};

/// A proxy that joins whoever asks with this hub, whatever host they name.
struct Proxy {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn start(hub: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let (hub, log) = (hub.clone(), log.clone());
                // A connection that breaks is a request that fails, which the test sees.
                thread::spawn(move || drop(join(client, &hub, &log)));
            }
        });
        Self { port, asked }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("nobody panics with it").clone()
    }
}

fn join(mut client: TcpStream, hub: &str, log: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(client.try_clone()?);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    log.lock()
        .expect("nobody panics with it")
        .push(first.trim().to_owned());
    let mut server = TcpStream::connect(hub)?;
    client.write_all(b"HTTP/1.1 200 Connected\r\n\r\n")?;
    let (mut back, mut answers) = (client, server.try_clone()?);
    thread::spawn(move || {
        let _ended = std::io::copy(&mut answers, &mut back);
        back.shutdown(Shutdown::Write)
    });
    std::io::copy(&mut reader, &mut server)?;
    server.shutdown(Shutdown::Write)
}

#[test]
fn a_hub_is_asked_through_the_proxy_unless_it_is_excepted() {
    let mut world = World::new();
    world.hub.add("a.gguf", &noise(100_000));
    let hub = world
        .options
        .endpoint
        .trim_start_matches("http://")
        .to_owned();
    let proxy = Proxy::start(hub);
    // Only the proxy finds this host.
    world.options.endpoint = "http://hub.invalid".to_owned();
    world.options.proxy = Some(format!("http://127.0.0.1:{}", proxy.port));
    let path = world.pull(REPO).0.unwrap();
    assert_eq!(fs::read(path).unwrap(), noise(100_000));
    let asked = proxy.asked();
    assert!(
        asked
            .iter()
            .any(|line| line.starts_with("CONNECT hub.invalid:80")),
        "{asked:?}"
    );

    fs::remove_dir_all(world.repo_dir()).unwrap();
    world.options.no_proxy = vec!["invalid".to_owned()];
    let error = world.pull(REPO).0.unwrap_err().to_string();
    assert!(error.contains("cannot be reached"), "{error}");
    let hosts = |lines: &[String]| {
        lines
            .iter()
            .filter(|line| line.contains("hub.invalid"))
            .count()
    };
    assert_eq!(
        hosts(&proxy.asked()),
        hosts(&asked),
        "it was not asked again"
    );
}

#[test]
fn a_proxy_that_is_no_address_is_named() {
    let mut world = World::new();
    world.options.proxy = Some("carrier-pigeon://loft".to_owned());
    let error = world.pull(REPO).0.unwrap_err().to_string();
    assert!(
        error.contains("carrier-pigeon://loft") && error.contains("HTTPS_PROXY"),
        "{error}"
    );
}
