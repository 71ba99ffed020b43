//! A token that requests to the API have to carry, for servers that others can reach.
//!
//! The link that `stepcast serve` prints carries it as `/?token=…`. Opening that link exchanges it for a cookie, so that it
//! leaves the address line at once; programs send `Authorization: Bearer …`. The page itself, which holds no secret, is
//! served to everybody, and says what to do if its requests are refused.

use axum::http::header::{AUTHORIZATION, COOKIE, LOCATION, SET_COOKIE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::fmt;
use std::io;

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
    /// A token of somebody's choice: letters, digits, `-`, `.`, `_` and `~`, neither short nor very long.
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

    /// What follows the address in a link.
    pub fn query(&self) -> String {
        format!("?token={}", self.0)
    }

    /// Compares digests, so that the time it takes tells nothing about the token.
    fn is(&self, text: &str) -> bool {
        Sha256::digest(&self.0) == Sha256::digest(text)
    }

    pub(crate) fn is_in(&self, headers: &HeaderMap, host: &Authority) -> bool {
        let texts = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        let cookie = format!("{}=", cookie_name(host));
        let mut cookies = texts(COOKIE).flat_map(|line| line.split(';'));
        texts(AUTHORIZATION)
            .filter_map(|value| value.strip_prefix("Bearer "))
            .any(|text| self.is(text.trim()))
            || cookies.any(|pair| pair.trim().strip_prefix(&cookie).is_some_and(|text| self.is(text)))
    }

    /// The answer to the link with the token: the page, with a cookie.
    pub(crate) fn exchanged(&self, uri: &Uri, host: &Authority) -> Option<Response> {
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
