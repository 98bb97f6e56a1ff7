//! The server side of SCRAM (RFC 5802, RFC 7677): the stored credential of a password, and the
//! exchange that proves knowledge of the password. No password is ever stored, and an unknown user
//! is refused after the same messages and the same work as a wrong password.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, KeyInit as _, Mac as _};
use query::{Code, Error, Result};
use sha2::Digest as _;
use subtle::ConstantTimeEq as _;
use zeroize::{Zeroize as _, Zeroizing};

/// Maximum size of a client message, in bytes.
const LONGEST: usize = 4_096;

/// Bytes that are overwritten when they are dropped.
pub(crate) type Secret = Zeroizing<Vec<u8>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// SCRAM-SHA-1, over MongoDB's own digest of the password.
    Sha1,
    /// SCRAM-SHA-256, over the password as SASLprep has it.
    Sha256,
}

/// The stored credential of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credential {
    /// Number of iterations of the password digest.
    pub(crate) iterations: u32,
    pub(crate) salt: Vec<u8>,
    /// Verifies the client's proof.
    pub(crate) stored_key: Secret,
    /// Computes the server's proof.
    pub(crate) server_key: Secret,
}

/// The keys by which a client proves that it knows a password.
pub(super) struct ProvingKeys {
    pub(super) client: Secret,
    pub(super) stored: Secret,
    pub(super) server: Secret,
}

impl Mechanism {
    /// All mechanisms, the preferred one first.
    pub(crate) const ALL: [Mechanism; 2] = [Mechanism::Sha256, Mechanism::Sha1];

    /// Its registered name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.name() == name)
    }

    /// Size of a salt in bytes. Salt and counter fill one block of the digest, as in MongoDB.
    pub(crate) fn salt_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }

    /// Default number of iterations for new passwords: MongoDB's values.
    pub(crate) fn iterations(self) -> u32 {
        match self {
            Mechanism::Sha1 => 10_000,
            Mechanism::Sha256 => 15_000,
        }
    }

    /// The server parameter that overrides the number of iterations.
    pub(crate) fn rounds_parameter(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "scramIterationCount",
            Mechanism::Sha256 => "scramSHA256IterationCount",
        }
    }

    pub(super) fn hmac(self, key: &[u8], data: &[u8]) -> Secret {
        const ANY: &str = "HMAC takes keys of any length";
        match self {
            Mechanism::Sha1 => {
                let mut mac = Hmac::<sha1::Sha1>::new_from_slice(key).expect(ANY);
                mac.update(data);
                moved(&mut mac.finalize().into_bytes())
            }
            Mechanism::Sha256 => {
                let mut mac = Hmac::<sha2::Sha256>::new_from_slice(key).expect(ANY);
                mac.update(data);
                moved(&mut mac.finalize().into_bytes())
            }
        }
    }

    fn digest(self, data: &[u8]) -> Secret {
        match self {
            Mechanism::Sha1 => moved(&mut sha1::Sha1::digest(data)),
            Mechanism::Sha256 => moved(&mut sha2::Sha256::digest(data)),
        }
    }

    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Secret {
        let bytes = match self {
            Mechanism::Sha1 => 20,
            Mechanism::Sha256 => 32,
        };
        let mut out = Zeroizing::new(vec![0; bytes]);
        match self {
            Mechanism::Sha1 => {
                pbkdf2::pbkdf2_hmac::<sha1::Sha1>(password, salt, iterations, &mut out);
            }
            Mechanism::Sha256 => {
                pbkdf2::pbkdf2_hmac::<sha2::Sha256>(password, salt, iterations, &mut out);
            }
        }
        out
    }

    /// Compute the credential of a password.
    ///
    /// # Errors
    /// A password that SASLprep does not take, for SCRAM-SHA-256.
    pub(crate) fn credential(
        self,
        user: &str,
        password: &str,
        salt: Vec<u8>,
        iterations: u32,
    ) -> Result<Credential> {
        let password = match self {
            Mechanism::Sha1 => mongo_digest(user, password),
            Mechanism::Sha256 => {
                let prepared = stringprep::saslprep(password).map_err(|_| {
                    Error::bad_value("Error preflighting UTF-8 conversion: password")
                })?;
                Zeroizing::new(prepared.into_owned())
            }
        };
        Ok(self.keys(password.as_bytes(), salt, iterations))
    }

    fn keys(self, password: &[u8], salt: Vec<u8>, iterations: u32) -> Credential {
        let salted = self.salted(password, &salt, iterations);
        Credential {
            iterations,
            stored_key: self.digest(&self.hmac(&salted, b"Client Key")),
            server_key: self.hmac(&salted, b"Server Key"),
            salt,
        }
    }

    /// The keys by which a client proves that it knows a password.
    pub(super) fn proving_keys(self, password: &[u8], salt: &[u8], iterations: u32) -> ProvingKeys {
        let salted = self.salted(password, salt, iterations);
        let client = self.hmac(&salted, b"Client Key");
        ProvingKeys {
            stored: self.digest(&client),
            client,
            server: self.hmac(&salted, b"Server Key"),
        }
    }

    /// The credential of a user that does not exist: always the same for a database and a name,
    /// with a salt like that of a real user. No password matches it.
    pub(crate) fn decoy(
        self,
        secret: &[u8],
        (database, user): (&str, &str),
        iterations: u32,
    ) -> Credential {
        // Neither a database nor a name holds a zero byte.
        let place = format!("{}\0{database}\0{user}", self.name());
        let mut salt = self.hmac(secret, place.as_bytes()).to_vec();
        salt.extend_from_slice(&self.hmac(secret, &salt));
        salt.truncate(self.salt_bytes());
        Credential {
            iterations,
            stored_key: self.hmac(secret, b"nobody's stored key"),
            server_key: self.hmac(secret, b"nobody's server key"),
            salt,
        }
    }
}

/// The password as MongoDB digests it before SCRAM-SHA-1.
fn mongo_digest(user: &str, password: &str) -> Zeroizing<String> {
    let plain = Zeroizing::new(format!("{user}:mongo:{password}"));
    let digest = moved(&mut md5::Md5::digest(plain.as_bytes()));
    // Allocated in its final size: a string that grows would leave copies of its content behind.
    let mut hex = Zeroizing::new(String::with_capacity(2 * digest.len()));
    for byte in digest.iter() {
        for half in [byte >> 4, byte & 0xF] {
            hex.extend(char::from_digit(u32::from(half), 16));
        }
    }
    hex
}

/// Move bytes from the stack to the heap, and overwrite the original.
fn moved(bytes: &mut [u8]) -> Secret {
    let moved = Zeroizing::new(bytes.to_vec());
    bytes.zeroize();
    moved
}

/// The only error of authentication: it does not reveal what was wrong.
pub(crate) fn failed() -> Error {
    Error::new(Code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn text(payload: &[u8]) -> Result<&str> {
    if payload.len() > LONGEST {
        return Err(failed());
    }
    std::str::from_utf8(payload).map_err(|_| failed())
}

/// The first message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClientFirst {
    /// The name of the user.
    pub(crate) user: String,
    header: String,
    bare: String,
    nonce: String,
}

impl ClientFirst {
    /// Parse the first message.
    ///
    /// # Errors
    /// Anything that is not a first message without channel binding.
    pub(crate) fn parse(payload: &[u8]) -> Result<ClientFirst> {
        let message = text(payload)?;
        // Channel binding: "n" means that the client does not support it, "y" that it believes the
        // server does not. An authorization identity is not accepted.
        let header = ["n,,", "y,,"]
            .into_iter()
            .find(|header| message.starts_with(header))
            .ok_or_else(failed)?;
        let bare = message.strip_prefix(header).ok_or_else(failed)?;
        let mut parts = bare.split(',');
        let name = parts.next().and_then(|part| part.strip_prefix("n="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        let (name, nonce) = name.zip(nonce).ok_or_else(failed)?;
        if nonce.is_empty() {
            return Err(failed());
        }
        Ok(ClientFirst {
            user: unescape(name)?,
            header: header.to_owned(),
            bare: bare.to_owned(),
            nonce: nonce.to_owned(),
        })
    }
}

/// Decode a user name, in which commas and equal signs are escaped.
fn unescape(name: &str) -> Result<String> {
    let mut parts = name.split('=');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (sign, rest) = if let Some(rest) = part.strip_prefix("2C") {
            (',', rest)
        } else if let Some(rest) = part.strip_prefix("3D") {
            ('=', rest)
        } else {
            return Err(failed());
        };
        plain.push(sign);
        plain.push_str(rest);
    }
    if plain.is_empty() {
        return Err(failed());
    }
    Ok(plain)
}

/// An exchange after its first two messages.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    mechanism: Mechanism,
    credential: Credential,
    first: ClientFirst,
    /// The server's first message.
    pub(crate) challenge: String,
    nonce: String,
}

impl Exchange {
    /// Answer the first message with a challenge. `nonce` is new for each exchange.
    pub(crate) fn new(
        mechanism: Mechanism,
        credential: Credential,
        first: ClientFirst,
        nonce: &str,
    ) -> Exchange {
        let nonce = format!("{}{nonce}", first.nonce);
        let salt = BASE64.encode(&credential.salt);
        let challenge = format!("r={nonce},s={salt},i={}", credential.iterations);
        Exchange {
            mechanism,
            credential,
            first,
            challenge,
            nonce,
        }
    }

    /// Verify the client's proof and return the server's proof.
    ///
    /// # Errors
    /// `AuthenticationFailed`, whatever is wrong.
    pub(crate) fn finish(&self, payload: &[u8]) -> Result<String> {
        let message = text(payload)?;
        let (without, proof) = message.rsplit_once(",p=").ok_or_else(failed)?;
        let mut parts = without.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c="));
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        let as_said = binding == Some(BASE64.encode(&self.first.header).as_str())
            && nonce == Some(self.nonce.as_str());
        // With the stored key, the proof gives the client's key away.
        let proof: Secret = Zeroizing::new(BASE64.decode(proof).map_err(|_| failed())?);
        let signed = format!("{},{},{without}", self.first.bare, self.challenge);
        let mechanism = self.mechanism;
        let signature = mechanism.hmac(&self.credential.stored_key, signed.as_bytes());
        if proof.len() != signature.len() {
            return Err(failed());
        }
        let key = proof.iter().zip(signature.iter()).map(|(a, b)| a ^ b);
        let key: Secret = Zeroizing::new(key.collect());
        let digest = mechanism.digest(&key);
        let known = digest.ct_eq(self.credential.stored_key.as_slice());
        if !bool::from(known) || !as_said {
            return Err(failed());
        }
        let proof = mechanism.hmac(&self.credential.server_key, signed.as_bytes());
        Ok(format!("v={}", BASE64.encode(proof.as_slice())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    /// The example of RFC 7677.
    fn exchange(password: &str) -> Exchange {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let credential = Mechanism::Sha256
            .credential("user", password, salt, 4_096)
            .unwrap();
        let first = ClientFirst::parse(FIRST).unwrap();
        Exchange::new(Mechanism::Sha256, credential, first, NONCE)
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let exchange = exchange("pencil");
        assert_eq!(
            exchange.challenge,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let done = exchange.finish(FINAL.as_bytes()).unwrap();
        assert_eq!(done, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    /// The example of RFC 5802: without MongoDB's digest.
    #[test]
    fn the_example_of_rfc_5802() {
        let salt = BASE64.decode("QSXCR+Q6sek8bf92").unwrap();
        let credential = Mechanism::Sha1.keys(b"pencil", salt, 4_096);
        let first = ClientFirst::parse(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL").unwrap();
        let nonce = "3rfcNHYJY1ZVvWVs7j";
        let exchange = Exchange::new(Mechanism::Sha1, credential, first, nonce);
        let done = exchange.finish(
            b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        );
        assert_eq!(done.unwrap(), "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=");
    }

    /// A1: only a proof of the right password is accepted.
    #[test]
    fn whatever_is_wrong_it_fails_in_the_same_way() {
        let right = exchange("pencil");
        for cut in 0..FINAL.len() {
            let cut = FINAL.get(..cut).unwrap();
            assert_eq!(right.finish(cut.as_bytes()).unwrap_err(), failed(), "{cut}");
        }
        assert_eq!(
            exchange("pen").finish(FINAL.as_bytes()).unwrap_err(),
            failed()
        );
        let other = FINAL.replace("rOpr", "rOps");
        assert_eq!(right.finish(other.as_bytes()).unwrap_err(), failed());
        let bound = FINAL.replace("c=biws", "c=eSws");
        assert_eq!(right.finish(bound.as_bytes()).unwrap_err(), failed());
        // A proof is valid for one challenge only.
        let salt = right.credential.clone();
        let first = ClientFirst::parse(FIRST).unwrap();
        let again = Exchange::new(Mechanism::Sha256, salt, first, "another");
        assert_eq!(again.finish(FINAL.as_bytes()).unwrap_err(), failed());
        for bad in [
            &b"p=tls,,n=user,r=x"[..],
            b"n,,n=user",
            b"n,,n=user,r=",
            b"n,,n=,r=x",
            b"n,a=x,n=user,r=x",
            b"n,,n=us=er,r=x",
            b"",
            b"\xff",
        ] {
            assert_eq!(ClientFirst::parse(bad).unwrap_err(), failed());
        }
    }

    #[test]
    fn names_are_written_without_signs() {
        let first = ClientFirst::parse(b"n,,n=a=2Cb=3Dc,r=x").unwrap();
        assert_eq!(first.user, "a,b=c");
    }

    #[test]
    fn nobody_is_always_the_same() {
        let mechanism = Mechanism::Sha256;
        let decoy = |database, user| mechanism.decoy(b"secret", (database, user), 9_000);
        let one = decoy("a", "x");
        assert_eq!(one, decoy("a", "x"));
        assert_eq!(one.salt.len(), 28);
        // Equal salts would reveal which names do not belong to users.
        let other = Mechanism::Sha1.decoy(b"secret", ("a", "x"), 9_000);
        let secret = mechanism.decoy(b"another", ("a", "x"), 9_000);
        for other in [
            decoy("a", "y"),
            decoy("b", "x"),
            decoy("", "x"),
            secret,
            other,
        ] {
            let common = one.salt.iter().zip(&other.salt).take_while(|(a, b)| a == b);
            assert!(common.count() < 8);
        }
    }
}
