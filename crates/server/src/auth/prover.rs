//! The client side of SCRAM-SHA-256: a member proves to another one that it knows the key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use query::Result;
use subtle::ConstantTimeEq as _;

use super::scram::{Mechanism, Secret, failed};

/// The most iterations that a server may ask for: half a second of work.
const ITERATIONS_MAX: u32 = 500_000;

/// The fewest: RFC 7677 wants that many.
const ITERATIONS_MIN: u32 = 4_096;

/// A proof under way.
pub(crate) struct Prover {
    bare: String,
    nonce: String,
}

/// The client's last message, and what the server must answer.
pub(crate) struct Proof {
    pub(crate) message: String,
    verifier: Secret,
}

impl Prover {
    /// Begin a proof for a user; `nonce` is new for each.
    pub(crate) fn new(user: &str, nonce: String) -> Prover {
        Prover {
            bare: format!("n={user},r={nonce}"),
            nonce,
        }
    }

    /// The first message.
    pub(crate) fn first(&self) -> String {
        format!("n,,{}", self.bare)
    }

    /// Answer the challenge.
    ///
    /// # Errors
    /// A challenge for another proof, or with fewer or more iterations than are sensible.
    pub(crate) fn prove(&self, password: &[u8], challenge: &str) -> Result<Proof> {
        let mut parts = challenge.split(',');
        let mut part = |prefix: &str| parts.next().and_then(|part| part.strip_prefix(prefix));
        let nonce = part("r=").ok_or_else(failed)?;
        let salt = part("s=").ok_or_else(failed)?;
        let rounds: u32 = part("i=").and_then(|n| n.parse().ok()).ok_or_else(failed)?;
        let ours = nonce
            .strip_prefix(&self.nonce)
            .filter(|own| !own.is_empty());
        if ours.is_none() || !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&rounds) {
            return Err(failed());
        }
        let salt = BASE64.decode(salt).map_err(|_| failed())?;
        let mechanism = Mechanism::Sha256;
        let keys = mechanism.proving_keys(password, &salt, rounds);
        let without = format!("c=biws,r={nonce}");
        let signed = format!("{},{challenge},{without}", self.bare);
        let signature = mechanism.hmac(&keys.stored, signed.as_bytes());
        let pairs = keys.client.iter().zip(signature.iter());
        let proof: Secret = Secret::new(pairs.map(|(a, b)| a ^ b).collect());
        Ok(Proof {
            message: format!("{without},p={}", BASE64.encode(proof.as_slice())),
            verifier: mechanism.hmac(&keys.server, signed.as_bytes()),
        })
    }
}

impl Proof {
    /// Whether the server's last message proves that it knows the key, too.
    pub(crate) fn accepts(&self, last: &str) -> bool {
        let verifier = last.strip_prefix("v=").map(|v| BASE64.decode(v));
        let Some(Ok(verifier)) = verifier else {
            return false;
        };
        bool::from(verifier.as_slice().ct_eq(self.verifier.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scram::{ClientFirst, Exchange};
    use super::*;

    fn exchange(first: &str, password: &str) -> Exchange {
        let mechanism = Mechanism::Sha256;
        let salt = b"0123456789abcdef0123456789ab".to_vec();
        let credential = mechanism.credential("__system", password, salt, 4_096);
        let first = ClientFirst::parse(first.as_bytes()).unwrap();
        Exchange::new(mechanism, credential.unwrap(), first, "server")
    }

    #[test]
    fn both_sides_prove_that_they_know_the_key() {
        let prover = Prover::new("__system", "client".to_owned());
        let server = exchange(&prover.first(), "secret");
        let proof = prover.prove(b"secret", &server.challenge).unwrap();
        let last = server.finish(proof.message.as_bytes()).unwrap();
        assert!(proof.accepts(&last));
        assert!(!proof.accepts("v=AAAA"));
        assert!(!proof.accepts(""));
        let wrong = prover.prove(b"other", &server.challenge).unwrap();
        server.finish(wrong.message.as_bytes()).unwrap_err();
        // A server that does not know the key.
        let other = exchange(&prover.first(), "other");
        let proof = prover.prove(b"other", &other.challenge).unwrap();
        let last = other.finish(proof.message.as_bytes()).unwrap();
        let honest = prover.prove(b"secret", &other.challenge).unwrap();
        assert!(!honest.accepts(&last));
    }

    #[test]
    fn challenges_that_make_no_sense_are_refused() {
        let prover = Prover::new("__system", "client".to_owned());
        for challenge in [
            "",
            "r=client,s=AAAA,i=4096",
            "r=other1,s=AAAA,i=4096",
            "r=client1,s=?,i=4096",
            "r=client1,s=AAAA,i=4095",
            "r=client1,s=AAAA,i=500001",
            "r=client1,s=AAAA,i=-1",
            "s=AAAA,r=client1,i=4096",
        ] {
            assert!(prover.prove(b"secret", challenge).is_err(), "{challenge}");
        }
    }
}
