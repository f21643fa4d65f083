//! TLS on a real server, with certificates made for each test. redis-cli and redis-py use it as well.

#[path = "../../mayhap-formats/tests/real/mod.rs"]
mod real;

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mayhap_server::tls::ClientCertificates;
use mayhap_server::{Running, Server, Settings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use real::{Folder, find, run};

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, "an authority");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(parameters, key), pem }
    }

    /// Writes `NAME.crt` and `NAME.key`.
    fn sign(&self, folder: &Path, name: &str) {
        let key = KeyPair::generate().unwrap();
        let mut parameters = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        fs::write(folder.join(format!("{name}.crt")), certificate.pem()).unwrap();
        fs::write(folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// Files in a folder: `ca.crt`, and the certificates of a server and a client that it signed.
struct Files {
    folder: Folder,
    authority: Authority,
}

impl Files {
    fn new() -> Self {
        let (folder, authority) = (Folder::new("tls"), Authority::new());
        fs::write(folder.path().join("ca.crt"), &authority.pem).unwrap();
        authority.sign(folder.path(), "server");
        authority.sign(folder.path(), "client");
        Self { folder, authority }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn settings(&self) -> Settings {
        Settings {
            port: None,
            tls_port: Some(0),
            tls_cert: Some(self.path("server.crt")),
            tls_key: Some(self.path("server.key")),
            workers: 1,
            ..Settings::default()
        }
    }

    fn start(&self, clients: Option<ClientCertificates>) -> Running {
        let tls_client_ca = clients.map(|_| self.path("ca.crt"));
        let tls_clients = clients.unwrap_or_default();
        Server::start(Settings { tls_client_ca, tls_clients, ..self.settings() }).unwrap()
    }
}

fn port(server: &Running) -> u16 {
    server.tls_addresses()[0].port()
}

fn tcp(server: &Running) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port(server))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

type Talk = StreamOwned<ClientConnection, TcpStream>;

/// A client that trusts `authority` and presents the certificate with this name.
fn connect(server: &Running, authority: &str, own: Option<&Path>) -> Talk {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(path) => {
            let chain = vec![CertificateDer::from_pem_file(path.with_extension("crt")).unwrap()];
            let key = PrivateKeyDer::from_pem_file(path.with_extension("key")).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    };
    let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    StreamOwned::new(connection, tcp(server))
}

fn says(talk: &mut Talk, line: &str, expected: &str) -> io::Result<()> {
    talk.write_all(format!("{line}\r\n").as_bytes())?;
    let mut reply = vec![0; expected.len()];
    talk.read_exact(&mut reply)?;
    assert_eq!(String::from_utf8_lossy(&reply), expected, "{line}");
    Ok(())
}

#[test]
fn pipelines_and_long_replies_arrive_complete() {
    let files = Files::new();
    let server = files.start(None);
    let mut talk = connect(&server, &files.authority.pem, None);
    says(&mut talk, "PING", "+PONG\r\n").unwrap();
    let lines: Vec<String> = (0..5_000).map(|item| format!("BF.EXISTS f {item}")).collect();
    says(&mut talk, &lines.join("\r\n"), &":0\r\n".repeat(5_000)).unwrap();
    // Far more than any buffer on the way holds. Reading begins after all requests are sent.
    const LONG: usize = 3 << 20;
    says(&mut talk, &format!("SETRANGE s {} x", LONG - 1), &format!(":{LONG}\r\n")).unwrap();
    talk.write_all(&b"GET s\r\n".repeat(8)).unwrap();
    talk.write_all(b"PING\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..8 {
        let mut reply = vec![0; LONG + 12];
        talk.read_exact(&mut reply).unwrap();
        assert!(reply.starts_with(format!("${LONG}\r\n").as_bytes()) && reply.ends_with(b"x\r\n"));
    }
    let mut pong = [0; 7];
    talk.read_exact(&mut pong).unwrap();
    says(&mut talk, "QUIT", "+OK\r\n").unwrap();
    // The connection ends with a TLS alert: a cut would be an error.
    assert_eq!(talk.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn client_certificates_are_required_or_optional_as_set() {
    let files = Files::new();
    let other_authority = Authority::new();
    other_authority.sign(files.folder.path(), "foreign");
    let (own, foreign) = (files.path("client"), files.path("foreign"));
    let ping = |server: &Running, own: Option<&Path>| {
        says(&mut connect(server, &files.authority.pem, own), "PING", "+PONG\r\n").is_ok()
    };
    let required = files.start(Some(ClientCertificates::Required));
    assert!(ping(&required, Some(&own)));
    assert!(!ping(&required, None) && !ping(&required, Some(&foreign)));
    let optional = files.start(Some(ClientCertificates::Optional));
    assert!(ping(&optional, Some(&own)) && ping(&optional, None));
    assert!(!ping(&optional, Some(&foreign)));
    // The client checks the certificate of the server as well.
    assert!(says(&mut connect(&optional, &other_authority.pem, None), "PING", "+PONG\r\n").is_err());
}

#[test]
fn clients_without_a_handshake_are_disconnected() {
    let files = Files::new();
    let server = Server::start(Settings { tls_handshake_secs: 1, ..files.settings() }).unwrap();
    // One that sends nothing, one that sends too little, one that does not use TLS.
    let begun = Instant::now();
    let (mut silent, mut slow, mut plain) = (tcp(&server), tcp(&server), tcp(&server));
    slow.write_all(&[22, 3, 1]).unwrap();
    plain.write_all(b"PING\r\nPING\r\n").unwrap();
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(!rest.windows(4).any(|bytes| bytes == b"PONG"), "{rest:?}");
    // Other clients are served in the meantime.
    says(&mut connect(&server, &files.authority.pem, None), "PING", "+PONG\r\n").unwrap();
    for stream in [&mut silent, &mut slow] {
        assert_eq!(stream.read(&mut [0; 16]).unwrap_or(0), 0);
    }
    assert!(begun.elapsed() >= Duration::from_millis(900), "{:?}", begun.elapsed());
    let mut talk = connect(&server, &files.authority.pem, None);
    says(&mut talk, "PING", "+PONG\r\n").unwrap();
    assert_eq!(server.shared().clients().len(), 1, "the others are disconnected");
}

#[test]
fn certificates_are_read_again_without_a_restart() {
    let files = Files::new();
    let server = files.start(None);
    let mut before = connect(&server, &files.authority.pem, None);
    let set = format!("CONFIG SET tls-cert-file {}", files.path("server.crt").display());
    says(&mut before, &set, "+OK\r\n").unwrap();
    // A certificate that does not match its key is refused, and the old pair stays.
    let successor = Authority::new();
    successor.sign(files.folder.path(), "next");
    fs::copy(files.path("next.crt"), files.path("server.crt")).unwrap();
    says(&mut before, &set, "-ERR CONFIG SET failed (possibly related to argument 'tls-cert-file')").unwrap();
    says(&mut connect(&server, &files.authority.pem, None), "PING", "+PONG\r\n").unwrap();
    fs::copy(files.path("next.key"), files.path("server.key")).unwrap();
    server.shared().reload_certificates().unwrap();
    says(&mut connect(&server, &successor.pem, None), "PING", "+PONG\r\n").unwrap();
    assert!(says(&mut connect(&server, &files.authority.pem, None), "PING", "+PONG\r\n").is_err());
    // Existing connections stay open.
    let mut rest = vec![0; 4_096];
    let _ = before.read(&mut rest).unwrap();
    says(&mut before, "PING", "+PONG\r\n").unwrap();
}

#[test]
fn missing_or_unsuitable_files_are_named() {
    let files = Files::new();
    let refused = |settings: Settings| Server::start(settings).unwrap_err().to_string();
    assert_eq!(refused(Settings { tls_key: None, ..files.settings() }), "--tls-port needs --tls-key");
    assert_eq!(refused(Settings { tls_cert: None, ..files.settings() }), "--tls-port needs --tls-cert");
    let missing = refused(Settings { tls_cert: Some(files.path("nothing")), ..files.settings() });
    assert!(missing.contains("nothing: ") && missing.contains("No such file"), "{missing}");
    let no_key = refused(Settings { tls_key: Some(files.path("server.crt")), ..files.settings() });
    assert!(no_key.ends_with("the file contains no private key"), "{no_key}");
    let no_certificate = refused(Settings { tls_cert: Some(files.path("server.key")), ..files.settings() });
    assert!(no_certificate.ends_with("the file contains no certificate"), "{no_certificate}");
    let other_key = refused(Settings { tls_key: Some(files.path("client.key")), ..files.settings() });
    assert!(other_key.contains("server.crt: "), "{other_key}");
}

#[test]
fn redis_cli_over_tls() {
    let Some(program) = find("MAYHAP_TEST_REDIS_CLI", "redis-cli") else { return };
    let files = Files::new();
    let server = files.start(Some(ClientCertificates::Required));
    let mut command = Command::new(program);
    command.env_remove("REDISCLI_AUTH").args(["-h", "localhost", "-p", &port(&server).to_string(), "--tls"]);
    command.arg("--cacert").arg(files.path("ca.crt"));
    command.arg("--cert").arg(files.path("client.crt")).arg("--key").arg(files.path("client.key"));
    command.args(["BF.MADD", "seen", "ada", "bob", "ada"]);
    assert_eq!(run(&mut command, b""), b"1\n1\n0\n");
}

#[test]
fn redis_py_over_tls() {
    let Some(python) = find("MAYHAP_TEST_PYTHON", "python3 with redis and valkey-glide") else { return };
    let files = Files::new();
    let server = files.start(Some(ClientCertificates::Required));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python/tls.py");
    let mut command = Command::new(python);
    command.arg("-B").arg(script).arg(port(&server).to_string());
    command.args(["ca.crt", "client.crt", "client.key"].map(|name| files.path(name)));
    assert_eq!(String::from_utf8_lossy(&run(&mut command, b"")), "6 checks\n");
}
