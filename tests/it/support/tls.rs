//! TLS in front of a fake, with a certificate of an authority that only this test knows.

use std::net::SocketAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::loopback::install_ring;

/// An authority and a certificate of it for `localhost`.
pub struct Authority {
    /// Its own certificate, for whoever shall trust it.
    pub pem: String,
    server: Arc<ServerConfig>,
}

impl Authority {
    /// A new one.
    pub fn new() -> Self {
        install_ring();
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
        let key = KeyPair::generate().expect("a key");
        let names = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let certificate = names.signed_by(&key, &issuer).expect("a certificate");
        let secret = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], secret)
            .expect("a certificate and its key");
        Self {
            pem: issuer.pem(),
            server: Arc::new(server),
        }
    }

    /// Speaks TLS on a port of its own and passes the bytes on to `target`.
    pub async fn front(&self, target: SocketAddr) -> Front {
        let listener = TcpListener::bind(("127.0.0.1", 0))
            .await
            .expect("a free loopback port");
        let port = listener.local_addr().expect("a bound address").port();
        let task = tokio::spawn(pass(
            listener,
            TlsAcceptor::from(Arc::clone(&self.server)),
            target,
        ));
        Front { port, task }
    }
}

/// A door with TLS; it closes with the value.
#[derive(Debug)]
pub struct Front {
    /// On `localhost`.
    pub port: u16,
    task: JoinHandle<()>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pass(listener: TcpListener, acceptor: TlsAcceptor, target: SocketAddr) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            // A client that does not trust the certificate goes away here.
            let Ok(mut outside) = acceptor.accept(stream).await else {
                return;
            };
            let Ok(mut inside) = TcpStream::connect(target).await else {
                return;
            };
            let _gone = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
        });
    }
}
