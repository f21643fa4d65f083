//! HTTP on a second port: is it alive, is it ready, how is it, and what a web page will want to know.
//!
//! ```text
//! GET  /health                        the process lives
//! GET  /ready                         requests are served, or why not
//! GET  /metrics                       for Prometheus
//! GET  /api/v1/server                 the server
//! GET  /api/v1/filters                a page of the list: cursor, count, match
//! GET  /api/v1/filters/NAME           one filter
//! POST /api/v1/filters/NAME/probe     what it answers
//! POST /api/v1/plan                   which filter, how large
//! ```
//!
//! It has a thread and a runtime of its own, so that it never gets in the way of the workers. Where there is a password, all but the
//! first two want it: `Authorization: Bearer PASSWORD`.

mod filters;
mod plan;
mod server;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::sync::oneshot;

use crate::listen::StartError;
use crate::metrics;
use crate::shared::Shared;

/// The largest body of a request.
const BODY_BYTES: usize = 1 << 20;

/// HTTP while it is served. Dropping it ends it.
#[derive(Debug)]
pub struct Http {
    addresses: Vec<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Http {
    /// Where it listens.
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

/// Starts it, if it is wanted.
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
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        runtime.block_on(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for listener in listeners {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
                let router = router.clone();
                tasks.spawn(async move {
                    if let Err(error) = axum::serve(listener, router).await {
                        tracing::error!(%error, "HTTP ended");
                    }
                });
            }
            // Whoever holds the other end lets go of it.
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
        .fallback(async || Problem::new(StatusCode::NOT_FOUND, "there is nothing here"))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(Arc::clone(shared))
}

/// What went wrong, as JSON.
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

/// Lets through who knows the password, or everybody if there is none.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    match shared.password() {
        Some(password) if !knows(request.headers(), &password) => {
            let mut response =
                Problem::new(StatusCode::UNAUTHORIZED, "the password is needed: Authorization: Bearer …")
                    .into_response();
            let realm = header::HeaderValue::from_static("Bearer realm=\"mayhap\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, realm);
            response
        }
        _ => next.run(request).await,
    }
}

/// Takes as long for a wrong password as for the right one.
fn knows(headers: &HeaderMap, password: &str) -> bool {
    let sent = headers.get(header::AUTHORIZATION).map_or(&[][..], header::HeaderValue::as_bytes);
    let Some(sent) = sent.strip_prefix(b"Bearer ") else { return false };
    let differing = sent.iter().zip(password.as_bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    differing == 0 && sent.len() == password.len()
}

async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let reasons = metrics::reasons(&shared);
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(json!({ "ready": reasons.is_empty(), "reasons": reasons }))).into_response()
}

async fn show_metrics(State(shared): State<Arc<Shared>>) -> Response {
    let kind = (header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([kind], metrics::page(&shared)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_compared_to_its_end() {
        let sent = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, header::HeaderValue::from_static(value));
            knows(&headers, "secret")
        };
        assert!(sent("Bearer secret"));
        for wrong in ["Bearer secre", "Bearer secrets", "Bearer ", "Basic secret", "secret", "Bearer Secret"]
        {
            assert!(!sent(wrong), "{wrong}");
        }
        assert!(!knows(&HeaderMap::new(), "secret"));
    }
}
