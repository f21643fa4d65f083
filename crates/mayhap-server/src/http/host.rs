//! Checks the host that a request names and the page that sent it. A web page of another site must not read
//! or probe a server on this machine, even if it makes its own name resolve to this machine (DNS rebinding).

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::Problem;
use super::door::Local;
use crate::shared::Shared;

pub(super) async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let local = request.extensions().get::<Local>().copied();
    match check(&request, local, &shared) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(request: &Request, local: Option<Local>, shared: &Shared) -> Result<(), Problem> {
    let headers = request.headers();
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => Some(host.to_str().unwrap_or_default()),
        // HTTP/1.0 needs no Host header. No browser is that old.
        (None, _) if request.version() == Version::HTTP_10 => None,
        _ => {
            return Err(Problem::new(StatusCode::BAD_REQUEST, "a request must have exactly one Host header"));
        }
    };
    for named in host.into_iter().chain(request.uri().authority().map(axum::http::uri::Authority::as_str)) {
        if !is_ours(named, local, shared) {
            let what = format!(
                "{named:?} is not a host name of this server; add it to the setting http-hosts to allow it"
            );
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, what));
        }
    }
    if is_of_another_site(headers, host) {
        return Err(Problem::new(
            StatusCode::FORBIDDEN,
            "requests from pages of another origin are not allowed",
        ));
    }
    Ok(())
}

/// Whether clients may address this server as `host`.
fn is_ours(host: &str, local: Option<Local>, shared: &Shared) -> bool {
    let Some((name, port)) = split(host) else { return false };
    let is_listed = |listed: &String| {
        split(listed).is_some_and(|(listed, only)| {
            listed.eq_ignore_ascii_case(name) && (only.is_none() || only == port)
        })
    };
    if shared.settings().http_hosts.iter().any(is_listed) {
        return true;
    }
    let Some(Local(local)) = local else { return false };
    let is_port = port.unwrap_or(80) == local.port();
    if name.eq_ignore_ascii_case("localhost") {
        return is_port;
    }
    let Ok(ip) = name.trim_matches(['[', ']']).parse::<IpAddr>() else { return false };
    let bound = &shared.settings().http_bind;
    // An IP address cannot be rebound as a name can. Ports and addresses may be translated on the way.
    let anywhere = bound.iter().any(IpAddr::is_unspecified);
    anywhere || is_port && (ip.is_loopback() || ip == local.ip() || bound.contains(&ip))
}

/// Splits a host into its name and optional port. `None` if it is not a valid host.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        // `[::1]` without a port.
        Some((_, port)) if port.contains(']') => (host, None),
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (host, None),
    };
    Some((name.strip_suffix('.').unwrap_or(name), port))
}

/// Whether the browser reports that a page of another origin sent the request.
fn is_of_another_site(headers: &HeaderMap, host: Option<&str>) -> bool {
    let is_foreign = |site: &header::HeaderValue| !matches!(site.as_bytes(), b"same-origin" | b"none");
    let is_other = |origin: &header::HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let from = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        !from.zip(host).is_some_and(|(from, host)| from.eq_ignore_ascii_case(host))
    };
    headers.get_all("sec-fetch-site").iter().any(is_foreign)
        || headers.get_all(header::ORIGIN).iter().any(is_other)
}
