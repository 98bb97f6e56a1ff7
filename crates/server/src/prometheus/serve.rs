//! The endpoint: plain HTTP on a separate address.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bson::doc;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};

use super::collect::collect;
use crate::limits::SCRAPERS;
use crate::server::Server;

/// The content type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(50);

/// Serve until the server stops.
pub(crate) async fn serve(server: Arc<Server>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(SCRAPERS));
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
        // Connections beyond the limit are closed at once.
        if let Ok(place) = Arc::clone(&places).try_acquire_owned() {
            let server = Arc::clone(&server);
            tokio::spawn(async move {
                talk(server, stream).await;
                drop(place);
            });
        }
    }
}

async fn talk(server: Arc<Server>, stream: TcpStream) {
    let mut stopping = server.stopping();
    let service = service_fn(|request| answer(Arc::clone(&server), request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        done = connection => if let Err(error) = done {
            let attributes = doc! {"error": error.to_string()};
            let message = "A connection for metrics ended early";
            server.log.info("NETWORK", 22_988, "prometheus", message, attributes);
        },
        _ = stopping.wait_for(|stopping| *stopping) => {}
    }
}

fn respond(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static(kind);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

async fn answer(
    server: Arc<Server>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let plain = |status, text: &str| respond(status, "text/plain", text.to_owned());
    if request.method() != Method::GET {
        let text = "only GET is answered here\n";
        return Ok(plain(StatusCode::METHOD_NOT_ALLOWED, text));
    }
    if request.uri().path() != "/metrics" {
        let text = "there is nothing here but /metrics\n";
        return Ok(plain(StatusCode::NOT_FOUND, text));
    }
    Ok(match metrics(server).await {
        Some(text) => respond(StatusCode::OK, TEXT, text),
        None => plain(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping\n"),
    })
}

/// The metrics in text, collected on a thread that may block.
async fn metrics(server: Arc<Server>) -> Option<String> {
    let _permit = server.reserved.acquire().await.ok()?;
    let (send, collected) = oneshot::channel();
    let inner = Arc::clone(&server);
    let taken = server.pool.submit(move || {
        // A client that has disconnected receives no answer.
        let _: Result<(), String> = send.send(collect(&inner));
    });
    if !taken {
        return None;
    }
    collected.await.ok()
}
