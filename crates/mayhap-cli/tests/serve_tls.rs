//! `mayhap serve` with TLS as a process: SIGHUP makes it read its certificates again.

mod program;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use program::empty_folder;
use program::server::{PATIENCE, Server, serve};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A self-signed certificate, in `NAME.crt` and `NAME.key`.
fn certificate(folder: &Path, name: &str) -> CertificateDer<'static> {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
    fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    certificate.der().clone()
}

/// Returns `true` if a client that trusts only this certificate gets an answer.
fn answers(address: &str, trusted: &CertificateDer<'static>) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut talk = StreamOwned::new(connection, stream);
    let mut line = String::new();
    talk.write_all(b"PING\r\n").is_ok()
        && BufReader::new(talk).read_line(&mut line).is_ok()
        && line == "+PONG\r\n"
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "waited for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn sighup_reloads_certificates_and_rejects_bad_ones() {
    let folder = empty_folder("serve_tls", "hangup");
    let (first, second) = (certificate(&folder, "first"), certificate(&folder, "second"));
    let put = |name: &str, kind: &str| {
        fs::copy(folder.join(format!("{name}.{kind}")), folder.join(format!("used.{kind}"))).unwrap();
    };
    put("first", "crt");
    put("first", "key");
    let mut command = serve(&folder);
    command.args(["--port", "0", "--no-http", "--dir", "data", "--tls-port", "0"]);
    command.args(["--tls-cert", "used.crt", "--tls-key", "used.key"]);
    let mut server = Server::start(command);
    let address = server.address("TLS ");
    let mut log = BufReader::new(server.child.stderr.take().unwrap());
    let mut said = |what: &str| {
        let mut line = String::new();
        while !line.contains(what) {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "it ended before it said {what}");
        }
        line
    };
    assert!(answers(&address, &first) && !answers(&address, &second));
    // A certificate without its key: the old pair stays, and the log gives the reason.
    put("second", "crt");
    server.signal("-HUP");
    assert!(said("certificates").contains("used.crt"));
    assert!(answers(&address, &first) && !answers(&address, &second));
    fs::write(folder.join("used.crt"), "no certificate\n").unwrap();
    server.signal("-HUP");
    assert!(said("certificates").contains("used.crt"));
    assert!(answers(&address, &first));
    // Both files match again.
    put("second", "crt");
    put("second", "key");
    server.signal("-HUP");
    wait_for("the new certificate", || answers(&address, &second));
    assert!(!answers(&address, &first));
    server.signal("-TERM");
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(server.child.wait().unwrap().success(), "{rest}");
}
