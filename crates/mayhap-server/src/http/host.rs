//! Which host a request means, and which page sent it: a page of another site must not read or probe a server of this machine, also
//! where it makes its own name point here (DNS rebinding).

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
        // No browser is that old.
        (None, _) if request.version() == Version::HTTP_10 => None,
        _ => return Err(Problem::new(StatusCode::BAD_REQUEST, "a request needs one Host header")),
    };
    for named in host.into_iter().chain(request.uri().authority().map(axum::http::uri::Authority::as_str)) {
        if !is_ours(named, local, shared) {
            let what = format!("{named:?} is not a name of this server; http-hosts allows more names");
            return Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, what));
        }
    }
    if is_of_another_site(headers, host) {
        return Err(Problem::new(StatusCode::FORBIDDEN, "a page of another origin may not ask"));
    }
    Ok(())
}

/// Is `host` what clients may call this server?
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
    // An address is no name that points elsewhere tomorrow; ports and addresses may be translated on the way.
    let anywhere = bound.iter().any(IpAddr::is_unspecified);
    anywhere || is_port && (ip.is_loopback() || ip == local.ip() || bound.contains(&ip))
}

/// The name, and the port if there is one. `None`: it is no host.
fn split(host: &str) -> Option<(&str, Option<u16>)> {
    let (name, port) = match host.rsplit_once(':') {
        // `[::1]` without a port.
        Some((_, port)) if port.contains(']') => (host, None),
        Some((name, port)) => (name, Some(port.parse().ok()?)),
        None => (host, None),
    };
    Some((name.strip_suffix('.').unwrap_or(name), port))
}

/// Does the browser say that a page of another origin asks?
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
