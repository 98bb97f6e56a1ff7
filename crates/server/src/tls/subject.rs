//! The subject and the validity of a certificate.

use std::collections::BTreeSet;

use tokio_rustls::rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::Decode as _;
use x509_cert::name::RdnSequence;

/// The parts of a certificate that the server uses.
pub(super) struct Read {
    /// The subject in the form of RFC 2253, the most specific part first, without spaces.
    pub(super) subject: String,
    /// The attributes O, OU and DC of the subject, by which members of a replica set recognize each
    /// other.
    pub(super) organization: BTreeSet<String>,
    /// The first second at which it is valid, since 1970.
    pub(super) from: u64,
    /// The last second at which it is valid, since 1970.
    pub(super) until: u64,
}

/// Parse a certificate.
///
/// # Errors
/// Why the bytes are no certificate.
pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Read, String> {
    let read = Certificate::from_der(certificate).map_err(|error| error.to_string())?;
    let own = &read.tbs_certificate;
    Ok(Read {
        subject: name(&own.subject),
        organization: organization(&own.subject),
        from: own.validity.not_before.to_unix_duration().as_secs(),
        until: own.validity.not_after.to_unix_duration().as_secs(),
    })
}

fn name(subject: &RdnSequence) -> String {
    let parts = subject.0.iter().rev().map(|part| {
        let attributes: Vec<String> = part.0.iter().map(attribute).collect();
        attributes.join("+")
    });
    parts.collect::<Vec<String>>().join(",")
}

fn organization(subject: &RdnSequence) -> BTreeSet<String> {
    let attributes = subject.0.iter().flat_map(|part| part.0.iter());
    let of_members = |text: &String| {
        let kinds = ["O=", "OU=", "DC="];
        kinds.iter().any(|kind| text.starts_with(kind))
    };
    attributes.map(attribute).filter(of_members).collect()
}

/// Attribute types are in capitals, except one that OpenSSL, and therefore MongoDB, writes
/// differently: the result must equal the name under which users are created.
fn attribute(attribute: &AttributeTypeAndValue) -> String {
    let text = attribute.to_string();
    match text.strip_prefix("EMAIL=") {
        Some(address) => format!("emailAddress={address}"),
        None => text,
    }
}
