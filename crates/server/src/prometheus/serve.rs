//! The endpoint: HTTP or HTTPS on a separate address.
//!
//! - X1. Nothing is answered without the token, where there is one.
//! - X2. Number, time and size of everything that a client sends are bounded.
//! - X3. The page and its data are answered only under a name that no other site can have: an
//!   address or `localhost`, unless there is a token. A site whose name an attacker points to this
//!   machine cannot read them (DNS rebinding). Of an endpoint on a loopback address this is so for
//!   the metrics too; elsewhere they are scraped under the name of the machine.

use std::convert::Infallible;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderName, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use super::collect::collect;
use super::page;
use crate::config::{address, is_loopback};
use crate::limits::SCRAPERS;
use crate::server::Server;
use crate::tls;
use crate::watch::Watch;

/// The content type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time limit for the head of a request, and for a TLS handshake.
const HEAD: Duration = Duration::from_secs(10);

/// Maximum size of the head of a request, in bytes: those of browsers have about 1,000.
const HEAD_BYTES: usize = 16 * 1_024;

/// Time after which a connection ends, so that a client that reads nothing does not keep its place:
/// a scrape per connection is cheap.
const LIFE: Duration = Duration::from_secs(60);

/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

/// The policy of answers that are no page: they load nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// An answer.
type Answer = Response<Full<Bytes>>;

/// The connections that all addresses of the endpoint may have together (X2).
pub(crate) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(SCRAPERS))
}

/// Serve until the server stops.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener, places: Arc<Semaphore>) {
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping) => return,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // X2: connections beyond the limit are closed at once.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                if let Err(error) = talk(&server, stream).await {
                    let attributes = doc! {"error": tls::reason(&error)};
                    let message = "A connection for metrics ended early";
                    server
                        .log
                        .info("NETWORK", 22_988, "prometheus", message, attributes);
                }
                drop(place);
            });
        }
    }
}

async fn talk(server: &Arc<Server>, stream: TcpStream) -> io::Result<()> {
    let Some(tls) = &server.gate.tls else {
        return converse(server, stream).await;
    };
    let secured = tokio::time::timeout(HEAD, tls.accept(stream)).await;
    let secured = secured.map_err(|_| io::ErrorKind::TimedOut)??;
    converse(server, secured.stream).await
}

/// Answer the requests of a connection.
async fn converse<S>(server: &Arc<Server>, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopping = server.stopping();
    let service = service_fn(|request| answer(Arc::clone(server), request));
    // X2: the head of a request is bounded in time and size; bodies are not read.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        _ = stopping.wait_for(|stopping| *stopping) => return Ok(()),
        () = tokio::time::sleep(LIFE) => {}
    }
    connection.as_mut().graceful_shutdown();
    match tokio::time::timeout(HEAD, connection).await {
        Ok(ended) => ended.map_err(io::Error::other),
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}

fn respond(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let fixed = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, NOTHING),
        (HeaderName::from_static("x-content-type-options"), "nosniff"),
        (HeaderName::from_static("referrer-policy"), "no-referrer"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in fixed {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    response
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    respond(status, "text/plain; charset=utf-8", text)
}

async fn answer(server: Arc<Server>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    Ok(route(&server, &request).await)
}

async fn route(server: &Arc<Server>, request: &Request<Incoming>) -> Answer {
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    // X1: before anything is looked at.
    if !server.gate.admits(header(AUTHORIZATION)) {
        server.metrics.untrusted.one();
        let text = "the token of net.prometheus.tokenFile is needed\n";
        let mut refused = plain(StatusCode::UNAUTHORIZED, text);
        let scheme = HeaderValue::from_static("Basic realm=\"romanesco\", charset=\"UTF-8\"");
        refused.headers_mut().insert(WWW_AUTHENTICATE, scheme);
        // Each guess costs a connection.
        let close = HeaderValue::from_static("close");
        refused.headers_mut().insert(CONNECTION, close);
        return refused;
    }
    if request.method() != Method::GET {
        let text = "only GET is answered here\n";
        return plain(StatusCode::METHOD_NOT_ALLOWED, text);
    }
    let is_open = server.gate.is_closed() || is_local(header(HOST).unwrap_or(""));
    // Only this machine reaches a loopback address, and scrapes it under no other name.
    if !is_open && is_loopback(&server.config.prometheus_ip) {
        return foreign();
    }
    let path = request.uri().path();
    if path == "/metrics" {
        return collected(server, TEXT, collect).await;
    }
    let Some(watch) = server
        .watch
        .as_ref()
        .filter(|_| page::PATHS.contains(&path))
    else {
        let text = "there is nothing here; metrics are at /metrics, and the page of \
            net.prometheus.statusPage is at /\n";
        return plain(StatusCode::NOT_FOUND, text);
    };
    if !is_open {
        return foreign();
    }
    match path {
        page::STATUS => collected(server, page::JSON, page::status).await,
        page::MAP => map(server, watch).await,
        _ => whole_page(),
    }
}

/// The storage map. One is made at a time, because it costs the most.
async fn map(server: &Arc<Server>, watch: &Watch) -> Answer {
    let mut last = watch.map.lock().await;
    let made = last.as_ref().filter(|(at, _)| at.elapsed() < page::MAP_AGE);
    if let Some((_, map)) = made {
        return respond(StatusCode::OK, page::JSON, map.clone());
    }
    let Some(map) = on_pool(server, page::map).await else {
        return stopping();
    };
    let map = Bytes::from(map);
    *last = Some((stdx::time::now(), map.clone()));
    respond(StatusCode::OK, page::JSON, map)
}

fn whole_page() -> Answer {
    let mut response = respond(StatusCode::OK, page::HTML, page::PAGE);
    if let Ok(policy) = HeaderValue::from_str(page::policy()) {
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The answer to a request under a name that another site may have (X3).
fn foreign() -> Answer {
    let text = "without net.prometheus.tokenFile this is served under an address or localhost \
        only\n";
    plain(StatusCode::FORBIDDEN, text)
}

/// Whether a header `Host` names an address or `localhost` (X3).
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name == "localhost" || address(name).is_some()
}

fn stopping() -> Answer {
    plain(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping\n")
}

async fn collected(
    server: &Arc<Server>,
    kind: &'static str,
    text: fn(&Server) -> String,
) -> Answer {
    match on_pool(server, text).await {
        Some(text) => respond(StatusCode::OK, kind, text),
        None => stopping(),
    }
}

/// Run a function on a thread that may block. `None` when the server stops.
pub(super) async fn on_pool<T: Send + 'static>(
    server: &Arc<Server>,
    function: fn(&Server) -> T,
) -> Option<T> {
    let _permit = server.reserved.acquire().await.ok()?;
    let (send, done) = oneshot::channel();
    let inner = Arc::clone(server);
    let taken = server.pool.submit(move || {
        // A client that has disconnected receives no answer.
        let _: Result<(), T> = send.send(function(&inner));
    });
    if !taken {
        return None;
    }
    done.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X3: names that an attacker can register are not local.
    #[test]
    fn only_addresses_and_localhost_are_local() {
        for local in [
            "localhost",
            "localhost:9216",
            "127.0.0.1:9216",
            "[::1]:9216",
            "[::1]",
        ] {
            assert!(is_local(local), "{local}");
        }
        for other in [
            "",
            "x",
            "evil.example:9216",
            "127.0.0.1.evil.example",
            "localhost.evil",
        ] {
            assert!(!is_local(other), "{other}");
        }
    }
}
