//! An authority of our own, and what it signs. Pure: time is a parameter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};

const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(2 * 365 * 24);
const SERVING_LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A certificate is valid from a little before it is made: clocks differ.
const CLOCK_SKEW: SignedDuration = SignedDuration::from_hours(1);

/// The keys of the Secret. The first two are those of every Secret of type `kubernetes.io/tls`.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const EXPIRES: &str = "expires";
const PREVIOUS: &str = "previous.crt";

/// What signs the certificates of all replicas.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    certificate: String,
    key: String,
    expires: Timestamp,
    /// The certificate of the authority before this one, still trusted: replicas do not change over at the same moment.
    previous: Option<String>,
}

/// The certificate of one process, with its key.
pub struct Serving {
    pub key: Arc<CertifiedKey>,
    pub renew_at: Timestamp,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    #[error("cannot use a certificate that was just made: {0}")]
    Use(#[from] rustls::Error),
}

impl Authority {
    pub fn generate(now: Timestamp) -> Result<Self, Error> {
        let (key, expires) = (KeyPair::generate()?, now + AUTHORITY_LIFE);
        let mut params = params();
        params.not_before = SystemTime::from(now - CLOCK_SKEW).into();
        params.not_after = SystemTime::from(expires).into();
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self { certificate, key: key.serialize_pem(), expires, previous: None })
    }

    /// The one that follows.
    pub fn renewed(&self, now: Timestamp) -> Result<Self, Error> {
        Ok(Self { previous: Some(self.certificate.clone()), ..Self::generate(now)? })
    }

    /// When a third of its life is left.
    pub fn renew_at(&self) -> Timestamp {
        self.expires - AUTHORITY_LIFE / 3
    }

    /// What API servers are to trust.
    pub fn bundle(&self) -> Vec<u8> {
        [&*self.certificate, self.previous.as_deref().unwrap_or_default()].concat().into_bytes()
    }

    /// A certificate for the Service of this name. It ends before the authority does, which is renewed long before its end.
    pub fn serving(&self, dns_name: &str, now: Timestamp) -> Result<Serving, Error> {
        let (key, expires) = (KeyPair::generate()?, now + SERVING_LIFE);
        let mut leaf = CertificateParams::new([dns_name.to_owned()])?;
        leaf.distinguished_name = subject("spillway-admission");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        leaf.not_before = SystemTime::from(now - CLOCK_SKEW).into();
        leaf.not_after = SystemTime::from(expires).into();
        let certificate = leaf.signed_by(&key, &Issuer::new(params(), KeyPair::from_pem(&self.key)?))?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let key =
            CertifiedKey::from_der(vec![certificate.der().clone()], key, &rustls::crypto::ring::default_provider())?;
        Ok(Serving { key: Arc::new(key), renew_at: expires - SERVING_LIFE / 3 })
    }

    /// What a Secret holds; an error says why it is of no use.
    pub fn read(data: &BTreeMap<String, ByteString>) -> Result<Self, String> {
        let text = |key: &str| {
            let bytes = data.get(key).ok_or_else(|| format!("it has no {key}"))?;
            String::from_utf8(bytes.0.clone()).map_err(|_| format!("{key} is not text"))
        };
        let (certificate, key, expires) = (text(CERTIFICATE)?, text(KEY)?, text(EXPIRES)?);
        let expires = expires.parse().map_err(|error| format!("{EXPIRES} is not a time: {error}"))?;
        let parsed = CertificateDer::from_pem_slice(certificate.as_bytes())
            .map_err(|error| format!("{CERTIFICATE} is not a certificate: {error}"))?;
        let signer =
            PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| format!("{KEY} is no key: {error}"))?;
        CertifiedKey::from_der(vec![parsed], signer, &rustls::crypto::ring::default_provider())
            .map_err(|error| format!("{CERTIFICATE} and {KEY} do not belong together: {error}"))?;
        let previous = data.contains_key(PREVIOUS).then(|| text(PREVIOUS)).transpose()?;
        if let Some(previous) = &previous {
            CertificateDer::from_pem_slice(previous.as_bytes())
                .map_err(|error| format!("{PREVIOUS} is not a certificate: {error}"))?;
        }
        Ok(Self { certificate, key, expires, previous })
    }

    /// What makes a merge patch of the Secret's data: all that it is to hold, and nothing that it held before.
    pub fn data_patch(&self) -> Value {
        let mut data = json!(self.data());
        if self.previous.is_none() {
            data[PREVIOUS] = Value::Null;
        }
        data
    }

    /// What goes into the Secret.
    pub fn data(&self) -> BTreeMap<String, ByteString> {
        let texts = [(CERTIFICATE, &self.certificate), (KEY, &self.key), (EXPIRES, &self.expires.to_string())];
        let previous = self.previous.iter().map(|previous| (PREVIOUS, previous));
        let all = texts.into_iter().chain(previous);
        all.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes()))).collect()
    }
}

/// All that an authority needs besides its key to be itself again. Its name never changes: those of two lives differ by
/// their keys.
fn params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject("spillway-admission-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let first = Authority::generate(now()).unwrap();
        let second = first.renewed(now()).unwrap();
        for authority in [&first, &second] {
            assert!(Authority::read(&authority.data()) == Ok(authority.clone()));
        }
        assert_eq!(first.bundle(), first.certificate.as_bytes());
        assert_eq!(second.bundle(), [second.certificate.as_bytes(), first.certificate.as_bytes()].concat());
    }

    #[test]
    fn a_secret_of_no_use_says_why() {
        let (ours, other) = (Authority::generate(now()).unwrap(), Authority::generate(now()).unwrap());
        let with = |key: &str, value: &[u8]| {
            let mut data = ours.data();
            data.insert(key.to_owned(), ByteString(value.to_vec()));
            data
        };
        for (data, said) in [
            (BTreeMap::new(), "no tls.crt"),
            (with(CERTIFICATE, b""), "not a certificate"),
            (with(KEY, b"none"), "no key"),
            (with(KEY, b"\xff"), "not text"),
            (with(KEY, other.key.as_bytes()), "do not belong together"),
            (with(EXPIRES, b"soon"), "not a time"),
            (with(PREVIOUS, b"none"), "previous.crt is not a certificate"),
        ] {
            let reason = Authority::read(&data).err().unwrap();
            assert!(reason.contains(said), "{said}: {reason}");
        }
    }

    #[test]
    fn a_patch_leaves_nothing_of_what_was_there() {
        let first = Authority::generate(now()).unwrap();
        assert_eq!(first.data_patch()[PREVIOUS], Value::Null);
        assert_eq!(first.renewed(now()).unwrap().data_patch()[PREVIOUS], first.data_patch()[CERTIFICATE]);
    }

    #[test]
    fn nothing_signed_outlives_its_authority() {
        let authority = Authority::generate(now()).unwrap();
        let last = authority.serving("a.b.svc", authority.renew_at()).unwrap();
        assert!(last.renew_at + SERVING_LIFE / 3 < authority.expires);
    }
}
