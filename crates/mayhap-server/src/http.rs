//! HTTP on a second port: health checks, metrics and a JSON API.
//!
//! ```text
//! GET  /health                        200 while the process lives
//! GET  /ready                         200 if ready, otherwise 503 with the reasons
//! GET  /metrics                       for Prometheus
//! GET  /api/v1/server                 the server
//! GET  /api/v1/filters                a page of the list: cursor, count, match
//! GET  /api/v1/filters/NAME           one filter
//! POST /api/v1/filters/NAME/probe     the answers for some items
//! POST /api/v1/plan                   advice: which filter, how large
//! ```
//!
//! HTTP has its own thread and runtime, so it never delays the workers. Unless the default user needs no
//! password, all paths except the first two need one: `Authorization: Bearer PASSWORD`, or `Basic` with the
//! name of a user. The rights of users are those of the corresponding commands: `INFO` for metrics and the
//! server, `SCAN` for the list, and so on.

mod door;
mod filters;
mod host;
mod plan;
mod server;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mayhap_command::server::SessionRefusal;
use mayhap_command::{names, table};
use serde_json::json;
use tokio::sync::oneshot;

use crate::listen::StartError;
use crate::metrics;
use crate::shared::Shared;
use crate::users::back_off::Source;
use crate::users::{DEFAULT, Denied, User};

/// The maximum length of a request body in bytes.
const BODY_BYTES: usize = 1 << 20;

/// The running HTTP server. Dropping it stops it.
#[derive(Debug)]
pub struct Http {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// The addresses it listens on.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts the HTTP server if the settings ask for it.
pub(crate) fn start(shared: &Arc<Shared>) -> Result<Option<Http>, StartError> {
    let Some(mut port) = shared.settings().http_port else { return Ok(None) };
    let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
    for ip in &shared.settings().http_bind {
        let address = SocketAddr::new(*ip, port);
        let refused = |source| StartError::Bind { address, source };
        let listener = TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        port = address.port();
        addresses.push(address);
        listeners.push(listener);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(StartError::Thread)?;
    let (stop, stopped) = oneshot::channel::<()>();
    let router = router(shared);
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for listener in listeners {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
                tasks.spawn(door::listen(listener, router.clone(), Arc::clone(&shared)));
            }
            // Dropping the other end stops the server.
            let _ = stopped.await;
            tasks.shutdown().await;
        });
    });
    let thread = Some(thread.map_err(StartError::Thread)?);
    Ok(Some(Http { addresses, stop: Some(stop), thread }))
}

fn router(shared: &Arc<Shared>) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(show_metrics))
        .route("/api/v1/server", get(server::show))
        .route("/api/v1/filters", get(filters::list))
        .route("/api/v1/filters/{*name}", get(filters::show).post(filters::probe))
        .route("/api/v1/plan", post(plan::plan))
        .layer(middleware::from_fn_with_state(Arc::clone(shared), guard));
    Router::new()
        .route("/health", get(async || "ok\n"))
        .route("/ready", get(ready))
        .merge(guarded)
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "no such path"))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(shared), host::guard))
        .layer(middleware::from_fn(errors_as_json))
        .with_state(Arc::clone(shared))
}

/// An error as JSON.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    what: String,
}

impl Problem {
    fn new(status: StatusCode, what: impl Into<String>) -> Self {
        Self { status, what: what.into() }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.what }))).into_response()
    }
}

/// Turns every error response into JSON.
async fn errors_as_json(request: Request, next: Next) -> Response {
    if let Some(what) = bad_escape(request.uri()) {
        return Problem::new(StatusCode::BAD_REQUEST, what).into_response();
    }
    let response = next.run(request).await;
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if is_json || !(status.is_client_error() || status.is_server_error()) {
        return response;
    }
    let (head, body) = response.into_parts();
    let text = axum::body::to_bytes(body, BODY_BYTES).await.unwrap_or_default();
    let what = match String::from_utf8_lossy(&text) {
        text if text.is_empty() => status.canonical_reason().unwrap_or("refused").to_lowercase(),
        text => text.into_owned(),
    };
    let mut response = Problem::new(status, what).into_response();
    if let Some(allow) = head.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow.clone());
    }
    response
}

/// Returns the error for a `%` that two hexadecimal digits do not follow.
fn bad_escape(uri: &Uri) -> Option<String> {
    let text = uri.path_and_query()?.as_str();
    let is_bad = |(at, _): &(usize, &str)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let (at, _) = text.match_indices('%').find(is_bad)?;
    let shown: String = text[at..].chars().take(3).collect();
    Some(format!("{shown:?} is not a valid escape: % must be followed by two hexadecimal digits"))
}

/// Authenticates a request: as the user that it names, or as the default user if that one needs no password.
async fn guard(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(address): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let users = shared.users();
    let source = Source::of(Some(address.ip()));
    let sent = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    let user = match sent {
        None => Some(users.default_user()).filter(|user| user.is_open()),
        Some(sent) => {
            match credentials(sent).and_then(|(name, password)| users.authenticate(&name, &password)) {
                Some(user) => {
                    tokio::time::sleep(users.back_off().right(source, Instant::now())).await;
                    Some(user)
                }
                None => {
                    tracing::warn!(%address, "wrong password over HTTP");
                    tokio::time::sleep(users.back_off().wrong(source, 1, Instant::now())).await;
                    None
                }
            }
        }
    };
    if let Some(user) = user {
        request.extensions_mut().insert(user);
        return next.run(request).await;
    }
    let what = "password required: send Authorization: Bearer PASSWORD, or Basic with the name of a user";
    let mut response = Problem::new(StatusCode::UNAUTHORIZED, what).into_response();
    for ask in ["Bearer realm=\"mayhap\"", "Basic realm=\"mayhap\""] {
        response.headers_mut().append(header::WWW_AUTHENTICATE, header::HeaderValue::from_static(ask));
    }
    response
}

/// Parses name and password from `Basic …`. With `Bearer …`, all of it is the password of the default user.
fn credentials(sent: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let space = sent.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&sent[..space], sent[space + 1..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some((DEFAULT.to_vec(), rest.to_vec()));
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let decoded = STANDARD.decode(rest).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    Some((decoded[..colon].to_vec(), decoded[colon + 1..].to_vec()))
}

/// Checks that `user` may run these words as a request.
fn permit(shared: &Shared, user: &User, words: &[&[u8]]) -> Result<(), Problem> {
    let refused = |what: String| Problem::new(StatusCode::FORBIDDEN, what);
    let unknown = || refused("no such command".to_owned());
    let command = words.first().and_then(|name| table::find(name)).ok_or_else(unknown)?;
    if let Some(why) = shared.users().off().why(command) {
        return Err(refused(SessionRefusal::Off { command: command.name.to_uppercase(), why }.to_string()));
    }
    user.may(&mayhap_command::Request { command, words }).map_err(|denied| {
        refused(match denied {
            Denied::Command(command) => SessionRefusal::NoCommand { user: user.shown(), command }.to_string(),
            Denied::Name(_) => SessionRefusal::NoName.to_string(),
        })
    })
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let reasons = metrics::reasons(&shared);
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": reasons.is_empty(), "reasons": reasons }))).into_response()
}

async fn show_metrics(
    State(shared): State<Arc<Shared>>,
    Extension(user): Extension<Arc<User>>,
) -> Result<Response, Problem> {
    permit(&shared, &user, &[names::INFO.as_bytes()])?;
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    Ok(([kind], metrics::page(&shared)).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_a_name_and_a_password() {
        let read = |sent: &str| {
            let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
            credentials(sent.as_bytes()).map(|(name, password)| (text(name), text(password)))
        };
        let pair = |name: &str, password: &str| Some((name.to_owned(), password.to_owned()));
        assert_eq!(read("Bearer secret"), pair("default", "secret"));
        assert_eq!(read("bearer se cret"), pair("default", "se cret"));
        // ada:open:sesame
        assert_eq!(read("Basic YWRhOm9wZW46c2VzYW1l"), pair("ada", "open:sesame"));
        for wrong in ["", "secret", "Basic", "Basic !", "Basic YWRh", "Digest YWRhOm9wZW4="] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
