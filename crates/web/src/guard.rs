//! Access control: pages of other sites must not send requests under any name of this machine, and on a server that others can
//! reach, every request to the API carries a token.
//!
//! A page of another site can make a browser send requests here, and by DNS rebinding even read the responses: its
//! name is made to resolve to this machine. Browsers then send that name as `Host`, and the page's site as `Origin`,
//! so both are checked. On the loopback address only the names of this machine are accepted. A server that is open to
//! the network also accepts any numeric address, which rebinding cannot use.
//!
//! The link that `stepcast serve` prints carries the token as `/?token=…`. Opening that link exchanges it for a cookie, so that it
//! leaves the address line at once; programs send `Authorization: Bearer …`. The page itself, which holds no secret, is
//! served to everybody, and says what to do if its requests are refused.

use crate::Shared;
use crate::problem::Problem;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, COOKIE, HOST, HeaderName, LOCATION, ORIGIN,
    REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
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
use std::{fmt, io};

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

/// The response to a request that is not passed on: the link with the token, or a request without it.
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

const SHORTEST: usize = 8;
const LONGEST: usize = 128;

/// A secret that can stand in a link and in a cookie.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// A user-chosen token: letters, digits, `-`, `.`, `_` and `~`, neither short nor very long.
    pub fn new(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let fits = (SHORTEST..=LONGEST).contains(&text.len()) && text.bytes().all(plain);
        fits.then(|| Self(text.to_owned()))
    }

    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The query of a link with the token.
    pub fn query(&self) -> String {
        format!("?token={}", self.0)
    }

    /// Compares digests, so that the time it takes tells nothing about the token.
    fn is(&self, text: &str) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(text)
    }

    fn is_in(&self, headers: &HeaderMap, host: &Authority) -> bool {
        let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let cookie = format!("{}=", cookie_name(host));
        let mut cookies = texts(COOKIE).flat_map(|line| line.split(';'));
        texts(AUTHORIZATION)
            .filter_map(|value| value.strip_prefix("Bearer "))
            .any(|text| self.is(text.trim()))
            || cookies.any(|pair| pair.trim().strip_prefix(&cookie).is_some_and(|text| self.is(text)))
    }

    /// The answer to the link with the token: the page, with a cookie.
    fn exchanged(&self, uri: &Uri, host: &Authority) -> Option<Response> {
        let mut pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
        if uri.path() != "/" || !pairs.any(|(name, text)| name == "token" && self.is(text)) {
            return None;
        }
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", cookie_name(host), self.0);
        let mut response = StatusCode::SEE_OTHER.into_response();
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        response.headers_mut().insert(SET_COOKIE, HeaderValue::from_str(&cookie).ok()?);
        Some(response)
    }
}

/// Browsers send the cookies of one port to all ports of a host.
fn cookie_name(host: &Authority) -> String {
    format!("stepcast-{}", host.port_u16().unwrap_or(80))
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

    const SECRET: &str = "open-sesame";

    fn carries(name: &str, value: &str) -> bool {
        let mut headers = HeaderMap::new();
        let name: axum::http::HeaderName = name.parse().unwrap();
        headers.insert(name, value.parse().unwrap());
        Token::new(SECRET).unwrap().is_in(&headers, &"10.0.0.1:7400".parse().unwrap())
    }

    #[test]
    fn tokens_come_as_header_or_cookie() {
        assert!(carries("authorization", "Bearer open-sesame"));
        assert!(carries("cookie", "a=b; stepcast-7400=open-sesame; c=d"));
        for (name, value) in [
            ("authorization", "open-sesame"),
            ("authorization", "Bearer open-sesam"),
            ("authorization", "Bearer "),
            ("cookie", "stepcast-7401=open-sesame"),
            ("cookie", "stepcast-7400="),
            ("cookie", "xstepcast-7400=open-sesame"),
        ] {
            assert!(!carries(name, value), "{name}: {value}");
        }
    }

    #[test]
    fn the_link_is_exchanged_for_a_cookie() {
        let token = Token::new(SECRET).unwrap();
        let host = "10.0.0.1:7400".parse().unwrap();
        let response = token.exchanged(&"/?token=open-sesame".parse().unwrap(), &host).unwrap();
        assert_eq!(
            (response.status(), &response.headers()["location"]),
            (StatusCode::SEE_OTHER, &"/".parse::<HeaderValue>().unwrap())
        );
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        assert!(cookie.starts_with("stepcast-7400=open-sesame; ") && cookie.contains("HttpOnly"), "{cookie}");
        for wrong in ["/", "/?token=", "/?token=open", "/api?token=open-sesame", "/?x=open-sesame"] {
            assert!(token.exchanged(&wrong.parse().unwrap(), &host).is_none(), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_neither_short_nor_odd_nor_shown() {
        for wrong in ["", "short", "with space", "semi;colon", "new\nline1", &"x".repeat(200)] {
            assert!(Token::new(wrong).is_none(), "{wrong:?}");
        }
        let random = Token::random().unwrap();
        assert!(Token::new(&random.0).is_some() && random != Token::random().unwrap());
        assert!(!format!("{random:?}").contains(&random.0));
    }
}
