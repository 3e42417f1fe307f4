use super::*;
use crate::certificates::{Authority, Current};
use axum::routing::get;
use jiff::Timestamp;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;

const NAME: &str = "spillway-admission.liqo.svc";

async fn fetch(address: SocketAddr, trusts: &Authority) -> anyhow::Result<String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&trusts.bundle()) {
        roots.add(certificate?)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    let mut stream = TlsConnector::from(Arc::new(client)).connect(ServerName::try_from(NAME)?, stream).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}

#[tokio::test]
async fn the_certificate_changes_while_it_is_served_and_is_trusted_through_the_bundle() {
    let now = Timestamp::now();
    let (first, stranger) = (Authority::generate(now).unwrap(), Authority::generate(now).unwrap());
    let current = Arc::new(Current::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let router = Router::new().route("/", get(|| std::future::ready("hello")));
    let server = tokio::spawn(serve(listener, tls(current.clone()).unwrap(), router, stop.clone()));

    assert!(fetch(address, &first).await.is_err(), "there is no certificate yet");
    current.set(first.serving(NAME, now).unwrap());
    assert!(fetch(address, &first).await.unwrap().ends_with("hello"));
    assert!(fetch(address, &stranger).await.is_err());

    let second = first.renewed(now).unwrap();
    assert!(fetch(address, &second).await.unwrap().ends_with("hello"), "the new bundle trusts the old certificate");
    current.set(second.serving(NAME, now).unwrap());
    assert!(fetch(address, &second).await.unwrap().ends_with("hello"));
    assert!(fetch(address, &first).await.is_err(), "what only knows the old authority does not trust the new one");

    stop.cancel();
    assert!(fetch(address, &second).await.is_ok(), "it lingers for those who still come");
    tokio::time::pause();
    server.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}
