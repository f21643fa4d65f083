//! TLS: certificates from PEM files, and encrypted connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

use arc_swap::ArcSwap;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject as _};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{self, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, server};

use crate::settings::Settings;

/// Whether clients must present a certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    /// Clients must present a certificate that the authority signed.
    #[default]
    Required,
    /// Clients may present a certificate that the authority signed, or none.
    Optional,
}

impl ClientCertificates {
    /// The name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }

    /// Returns the variant with this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        [Self::Required, Self::Optional].into_iter().find(|one| one.name() == name)
    }
}

/// Why TLS cannot be set up.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// A TLS port is set, but a setting that it needs is missing.
    Missing {
        /// The missing setting.
        setting: &'static str,
    },
    /// A file cannot be read, or is not PEM.
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: pem::Error,
    },
    /// A file contains no certificate.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The content of a file is invalid.
    Refused {
        /// The file.
        path: PathBuf,
        /// The error.
        what: String,
    },
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { setting } => write!(f, "--tls-port needs --{setting}"),
            Self::File { path, source } => match source {
                pem::Error::NoItemsFound => write!(f, "{}: the file contains no private key", path.display()),
                pem::Error::Io(source) => write!(f, "{}: {source}", path.display()),
                source => write!(f, "{}: {source}", path.display()),
            },
            Self::Empty { path } => write!(f, "{}: the file contains no certificate", path.display()),
            Self::Refused { path, what } => write!(f, "{}: {what}", path.display()),
        }
    }
}

impl error::Error for TlsError {}

/// Encrypts connections.
pub(crate) struct Tls {
    files: Files,
    /// The time a client has for the handshake.
    handshake: Duration,
    config: ArcSwap<ServerConfig>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("files", &self.files).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    clients: ClientCertificates,
}

impl Tls {
    /// Sets up TLS if `settings` ask for it.
    pub(crate) fn open(settings: &Settings) -> Result<Option<Self>, TlsError> {
        if settings.tls_port.is_none() {
            return Ok(None);
        }
        let needed = |path: &Option<PathBuf>, setting| path.clone().ok_or(TlsError::Missing { setting });
        let files = Files {
            certificate: needed(&settings.tls_cert, "tls-cert")?,
            key: needed(&settings.tls_key, "tls-key")?,
            client_ca: settings.tls_client_ca.clone(),
            clients: settings.tls_clients,
        };
        let config = ArcSwap::from_pointee(files.read()?);
        let handshake = Duration::from_secs(settings.tls_handshake_secs);
        Ok(Some(Self { files, handshake, config }))
    }

    /// Reads all files again; later handshakes use them. If one is invalid, nothing changes.
    pub(crate) fn reload(&self) -> Result<(), TlsError> {
        self.config.store(Arc::new(self.files.read()?));
        Ok(())
    }

    /// Performs the handshake with a client. `None` if it fails or takes too long.
    pub(crate) async fn accept<S>(&self, stream: S) -> Option<server::TlsStream<S>>
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(self.config.load_full());
        match tokio::time::timeout(self.handshake, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => Some(stream),
            Ok(Err(error)) => {
                tracing::debug!(%error, "TLS handshake failed");
                None
            }
            Err(_) => {
                tracing::debug!("TLS handshake failed: tls-handshake exceeded");
                None
            }
        }
    }
}

impl Files {
    fn read(&self) -> Result<ServerConfig, TlsError> {
        // Named explicitly because the process may have more than one provider.
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|source| TlsError::File { path: self.key.clone(), source })?;
        let refused = |path: &Path| {
            let path = path.to_owned();
            move |error: rustls::Error| TlsError::Refused { path, what: error.to_string() }
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(refused(&self.certificate))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => builder.with_client_cert_verifier(self.verifier(path, provider)?),
        };
        builder.with_single_cert(chain, key).map_err(refused(&self.certificate))
    }

    fn verifier(
        &self,
        path: &Path,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
        let refused = |what: String| TlsError::Refused { path: path.to_owned(), what };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| refused(error.to_string()))?;
        }
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match self.clients {
            ClientCertificates::Required => builder,
            ClientCertificates::Optional => builder.allow_unauthenticated(),
        };
        builder.build().map_err(|error| refused(error.to_string()))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = |source| TlsError::File { path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(file)?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(file)?;
    match found.is_empty() {
        true => Err(TlsError::Empty { path: path.to_owned() }),
        false => Ok(found),
    }
}
