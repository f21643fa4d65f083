//! Our own server: all backends, also over TLS and with a password.

use std::fs;
use std::time::Duration;

use mayhap_remote::{
    Backend, BuildOptions, FilterPlan, Link, LinkOptions, RemoteError, ShardedFilter, redis::TlsCertificates,
};
use mayhap_server::{Running, Server, Settings};
use mayhap_testkit::real::Folder;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::support::{BACKENDS, add_all, false_positives, link, members, must_have, promised};

const CAPACITY: u64 = 20_000;
const NON_MEMBERS: u64 = 150_000;

/// A server that stops at the end of the test.
struct TestServer(Option<Running>);

impl TestServer {
    fn start(settings: Settings) -> Self {
        Self(Some(Server::start(Settings { workers: 1, ..settings }).unwrap()))
    }

    fn running(&self) -> &Running {
        self.0.as_ref().unwrap()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        if let Some(running) = self.0.take() {
            running.stop_handle().stop();
            running.wait().unwrap();
        }
    }
}

fn plan(backend: Backend) -> FilterPlan {
    FilterPlan::new(backend, CAPACITY, 0.01).shards(4).lease(Duration::from_millis(60))
}

#[tokio::test]
async fn our_server_supports_all_backends() {
    let server = TestServer::start(Settings { port: Some(0), ..Settings::default() });
    let url = format!("redis://{}", server.running().addresses()[0]);
    for protocol in ["resp2", "resp3"] {
        let link = link(&format!("{url}?protocol={protocol}")).await;
        assert!(!link.is_cluster());
        for backend in BACKENDS {
            let filter = ShardedFilter::create(&link, "seen", &plan(backend)).await.unwrap();
            let items = members(0..CAPACITY);
            add_all(&filter, &items).await;
            must_have(&filter, &items).await;
            let report = filter.info().await.unwrap();
            assert_eq!(report.missing().count(), 0, "{report:?}");
            let band = promised(backend, NON_MEMBERS, report.expected_fpr());
            let wrong = false_positives(&filter, NON_MEMBERS).await;
            assert!(band.contains(&wrong), "{backend:?}: {wrong} not in {band:?}");
            for next in BACKENDS {
                let mut build = filter.begin_build(&plan(next), BuildOptions::default()).await.unwrap();
                build.insert(&items).await.unwrap();
                build.commit().await.unwrap();
                must_have(&filter, &items).await;
            }
            filter.delete().await.unwrap();
        }
    }
}

/// A certificate for loopback, its key, and the certificate of the authority that signed it.
fn certificates(folder: &Folder) -> Vec<u8> {
    let key = KeyPair::generate().unwrap();
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name.push(DnType::CommonName, "an authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = parameters.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(parameters, key);
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap();
    let certificate = parameters.signed_by(&key, &issuer).unwrap();
    fs::write(folder.path().join("server.crt"), certificate.pem()).unwrap();
    fs::write(folder.path().join("server.key"), key.serialize_pem()).unwrap();
    authority.into_bytes()
}

#[tokio::test]
async fn links_are_encrypted_and_log_in() {
    let folder = Folder::new("remote-tls");
    let authority = certificates(&folder);
    let server = TestServer::start(Settings {
        port: None,
        tls_port: Some(0),
        tls_cert: Some(folder.path().join("server.crt")),
        tls_key: Some(folder.path().join("server.key")),
        password: Some("secret".into()),
        ..Settings::default()
    });
    let address = server.running().tls_addresses()[0];
    let mut options = LinkOptions::default();
    (options.patience, options.connecting) = (Duration::from_secs(1), Duration::from_secs(2));
    // The system does not know the authority: the certificate is not trusted.
    let non_member = Link::open([format!("rediss://:secret@{address}")], options.clone()).await;
    assert!(matches!(non_member, Err(RemoteError::Connect { .. })), "{non_member:?}");
    options.certificates = Some(TlsCertificates { client_tls: None, root_cert: Some(authority) });
    let wrong = Link::open([format!("rediss://:wrong@{address}")], options.clone()).await;
    assert!(matches!(wrong, Err(RemoteError::Connect { .. })), "{wrong:?}");
    let link = Link::open([format!("rediss://:secret@{address}")], options).await.unwrap();
    assert!(!format!("{link:?}").contains("secret"));
    let filter = ShardedFilter::create(&link, "seen", &plan(Backend::Plain)).await.unwrap();
    add_all(&filter, &members(0..100)).await;
    must_have(&filter, &members(0..100)).await;
}
