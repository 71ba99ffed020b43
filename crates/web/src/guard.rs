//! Access control: pages of other sites must not send requests, whatever name they use for this machine.
//!
//! A page of another site can make a browser send requests here, and by DNS rebinding even read the responses: its
//! name is made to resolve to this machine. Browsers then send that name as `Host`, and the page's site as `Origin`,
//! so both are checked. On the loopback address only the names of this machine are accepted. A server that is open to
//! the network also accepts any numeric address, which rebinding cannot use.

use crate::problem::Problem;
use crate::{Shared, Token};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderName, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::sync::Arc;

/// The clients that have access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Clients on this machine.
    Loopback,
    /// Clients that can reach the address.
    Network,
}

impl Access {
    pub fn from_address(address: IpAddr) -> Self {
        if address.is_loopback() { Self::Loopback } else { Self::Network }
    }

    fn allows(self, host: &str) -> bool {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match (self, bare.parse::<IpAddr>()) {
            (_, Err(_)) => host.eq_ignore_ascii_case("localhost"),
            (Self::Loopback, Ok(address)) => address.is_loopback(),
            (Self::Network, Ok(_)) => true,
        }
    }
}

/// Refuses requests of other sites, and sets the security headers of responses.
pub(crate) async fn check(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    // The scripts of the page, such as /api.js, are for everybody.
    let path = request.uri().path();
    let is_api = path == "/api" || path.starts_with("/api/");
    let mut response = match judge(shared.access, request.headers(), is_api) {
        Ok(host) => match admit(shared.token.as_ref(), &request, &host, is_api) {
            Some(answer) => answer,
            None => next.run(request).await,
        },
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, shared.policy.clone());
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// The answer to a request that is not passed on: the link with the token, or requests without it.
fn admit(token: Option<&Token>, request: &Request, host: &Authority, is_api: bool) -> Option<Response> {
    let token = token?;
    if let Some(welcome) = token.exchanged(request.uri(), host) {
        return Some(welcome);
    }
    if !is_api || token.is_in(request.headers(), host) {
        return None;
    }
    let remedy = "open the link that `stepcast serve` printed, or send `Authorization: Bearer TOKEN`";
    let reason = "the request does not carry the server's token";
    Some(Problem::new(StatusCode::UNAUTHORIZED, "no-token", reason, remedy).into_response())
}

/// The host that a request of this site names.
fn judge(access: Access, headers: &HeaderMap, is_api: bool) -> Result<Authority, Problem> {
    let foreign = |reason: String| {
        let remedy = "open the address that `stepcast serve` printed";
        Problem::new(StatusCode::FORBIDDEN, "foreign-site", reason, remedy)
    };
    let mut hosts = headers.get_all(HOST).iter();
    let (host, None) = (hosts.next().and_then(|host| host.to_str().ok()), hosts.next()) else {
        return Err(foreign("the request has more than one Host header".to_owned()));
    };
    let authority = host.and_then(|host| host.parse::<Authority>().ok());
    let Some(authority) = authority.filter(|authority| !authority.as_str().contains('@')) else {
        return Err(foreign("the request has no proper Host header".to_owned()));
    };
    if !access.allows(authority.host()) {
        return Err(foreign(format!("this is not \"{}\"", authority.host())));
    }
    let other = || foreign("the request comes from a page of another site".to_owned());
    let own = |origin: &HeaderValue| {
        let uri: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
        uri.is_some_and(|uri| uri.scheme_str() == Some("http") && uri.authority() == Some(&authority))
    };
    if !headers.get_all(ORIGIN).iter().all(own) {
        return Err(other());
    }
    let sites = || headers.get_all("sec-fetch-site").iter().map(HeaderValue::as_bytes);
    if is_api && sites().any(|site| !matches!(site, b"same-origin" | b"none")) {
        return Err(other());
    }
    Ok(authority)
}

/// The content security policy: only content of this server, no inline scripts, and only the one inline style of
/// plots.
pub(crate) fn policy() -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(stepcast_report::style()));
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'sha256-{style}'; img-src 'self' data: blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(access: Access, pairs: &[(&'static str, &'static str)]) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        judge(access, &headers, true).is_ok()
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for host in ["localhost", "localhost:7400", "127.0.0.1:7400", "[::1]:7400", "LOCALHOST:1"] {
            assert!(judged(Access::Loopback, &[("host", host)]), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7400",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "user@localhost",
            "",
            "local host",
        ] {
            assert!(!judged(Access::Loopback, &[("host", host)]), "{host}");
        }
        assert!(!judged(Access::Loopback, &[]));
        assert!(!judged(Access::Loopback, &[("host", "localhost"), ("host", "evil.example")]));
    }

    #[test]
    fn an_open_address_is_asked_by_its_number() {
        assert!(judged(Access::Network, &[("host", "192.168.1.5:7400")]));
        assert!(!judged(Access::Network, &[("host", "rebound.example:7400")]));
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let from = |origin| judged(Access::Loopback, &[("host", "localhost:7400"), ("origin", origin)]);
        assert!(from("http://localhost:7400"));
        for origin in ["http://localhost:7401", "https://localhost:7400", "http://evil.example", "null", "x"]
        {
            assert!(!from(origin), "{origin}");
        }
        assert!(!judged(Access::Loopback, &[("host", "localhost"), ("sec-fetch-site", "cross-site")]));
        let own = ("origin", "http://localhost:7400");
        let foreign = ("origin", "http://evil.example");
        for both in [[own, foreign], [foreign, own]] {
            let [one, other] = both;
            assert!(!judged(Access::Loopback, &[("host", "localhost:7400"), one, other]));
        }
    }
}
