//! Certificates generated for a test.

use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, DnType,
    DnValue, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use tempfile::TempDir;

/// A certificate authority.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

/// A certificate and its key, in a file.
pub(crate) struct Certificate {
    /// Both, in PEM.
    pub(crate) pem: String,
    /// The file.
    pub(crate) path: PathBuf,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Authority { issuer, folder }
    }

    /// Its certificate in PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The file of the authority's certificate.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    fn make(&self, params: &CertificateParams, file: &str) -> Certificate {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
        let path = self.folder.path().join(file);
        std::fs::write(&path, &pem).unwrap();
        Certificate { pem, path }
    }

    /// A certificate for the test server, valid until the end of a year.
    pub(crate) fn server(&self, until: i32) -> Certificate {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(until, 12, 31);
        self.make(&params, "server.pem")
    }

    /// A certificate for a member of a replica set, with an organization in its subject.
    pub(crate) fn member(&self, organization: &str) -> Certificate {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_after = date_time_ymd(4000, 12, 31);
        let name = &mut params.distinguished_name;
        name.push(DnType::OrganizationName, organization);
        name.push(DnType::OrganizationalUnitName, "databases");
        self.make(&params, &format!("member-{organization}.pem"))
    }

    /// A client certificate.
    pub(crate) fn client(&self, common_name: &str, serial: u64, until: i32) -> Certificate {
        let mut params = CertificateParams::default();
        let name = &mut params.distinguished_name;
        name.remove(DnType::CommonName);
        let email = DnType::CustomDnType(vec![1, 2, 840, 113_549, 1, 9, 1]);
        let address = DnValue::Ia5String("who@example.com".try_into().unwrap());
        name.push(DnType::CountryName, "DE");
        name.push(DnType::StateOrProvinceName, "Hessen");
        name.push(DnType::LocalityName, "Rhein, Main");
        name.push(DnType::OrganizationName, "Kohl");
        name.push(DnType::OrganizationalUnitName, "Feld");
        name.push(DnType::CommonName, common_name);
        name.push(email, address);
        params.not_after = date_time_ymd(until, 12, 31);
        params.serial_number = Some(SerialNumber::from(serial));
        self.make(&params, &format!("client-{serial}.pem"))
    }

    /// Write a revocation list with these serial numbers.
    pub(crate) fn revoke(&self, serials: &[u64], path: &Path) {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from(*serial),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&self.issuer).unwrap();
        std::fs::write(path, list.pem().unwrap()).unwrap();
    }
}

/// The subject of an [`Authority::client`] certificate in MongoDB's form.
pub(crate) fn subject(common_name: &str) -> String {
    let rest = "OU=Feld,O=Kohl,L=Rhein\\, Main,ST=Hessen,C=DE";
    format!("emailAddress=who@example.com,CN={common_name},{rest}")
}
