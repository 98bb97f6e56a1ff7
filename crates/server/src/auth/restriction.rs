//! `authenticationRestrictions`: from where, and to which address of the server, a user may
//! authenticate.
//!
//! - W1. Of the restrictions of one list one must hold, in all it says; and that for the list of
//!   the user and for the list of each role they have or inherit.
//! - W2. A stored restriction that cannot be parsed admits no client.

use std::net::{IpAddr, SocketAddr};

use bson::{Bson, Document};
use query::{Code, Error, Result};

/// A network: addresses with the same leading bits, such as `10.0.0.0/8` or `::1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    bits: u32,
}

/// One restriction. A missing part restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Restriction {
    /// `clientSource`.
    client: Option<Vec<Network>>,
    /// `serverAddress`.
    server: Option<Vec<Network>>,
}

/// The restrictions of a user or role; one of them must be satisfied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Restrictions(Vec<Restriction>);

impl Network {
    fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok())?;
        (bits <= most).then_some(Network { address, bits })
    }

    fn holds(self, other: IpAddr) -> bool {
        let equal = |own: u128, other: u128, size: u32| {
            let differ = own ^ other;
            self.bits == 0 || differ.checked_shr(size.saturating_sub(self.bits)) == Some(0)
        };
        match (self.address, other) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let (own, other) = (u32::from(own), u32::from(other));
                equal(u128::from(own), u128::from(other), 32)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => equal(u128::from(own), u128::from(other), 128),
            _ => false,
        }
    }
}

impl Restriction {
    fn parse(document: &Document) -> Result<Restriction> {
        let mut restriction = Restriction {
            client: None,
            server: None,
        };
        for (name, value) in document {
            let place = match name.as_str() {
                "clientSource" => &mut restriction.client,
                "serverAddress" => &mut restriction.server,
                _ => {
                    let message = format!("Unrecognized authentication restriction: {name}");
                    return Err(Error::new(Code::UNSUPPORTED_FORMAT, message));
                }
            };
            let Bson::Array(listed) = value else {
                let message = format!("'{name}' field must be an array");
                return Err(Error::type_mismatch(message));
            };
            let network = |value: &Bson| {
                let parsed = value.as_str().and_then(Network::parse);
                parsed.ok_or_else(|| {
                    let message = format!("{name}: {value} is no address and no CIDR range");
                    Error::bad_value(message)
                })
            };
            *place = Some(listed.iter().map(network).collect::<Result<_>>()?);
        }
        if document.is_empty() {
            let message = "a restriction needs 'clientSource' or 'serverAddress'";
            return Err(Error::bad_value(message));
        }
        Ok(restriction)
    }

    fn holds(&self, client: IpAddr, server: Option<IpAddr>) -> bool {
        let among = |listed: &Option<Vec<Network>>, address: Option<IpAddr>| match listed {
            None => true,
            Some(listed) => {
                address.is_some_and(|address| listed.iter().any(|one| one.holds(address)))
            }
        };
        among(&self.client, Some(client)) && among(&self.server, server)
    }
}

impl Restrictions {
    /// Parse a list of restrictions.
    ///
    /// # Errors
    /// `BadValue`, `TypeMismatch` or `UnsupportedFormat` for a value that is no restriction.
    pub(crate) fn parse(list: &[Bson]) -> Result<Restrictions> {
        let one = |value: &Bson| match value {
            Bson::Document(document) => Restriction::parse(document),
            _ => Err(Error::type_mismatch(
                "authenticationRestrictions must be an array of objects",
            )),
        };
        list.iter()
            .map(one)
            .collect::<Result<_>>()
            .map(Restrictions)
    }

    /// Parse the restrictions of a stored user or role (W2).
    pub(crate) fn of(document: &Document) -> Restrictions {
        let none = || {
            Restrictions(vec![Restriction {
                client: Some(Vec::new()),
                server: None,
            }])
        };
        match document.get("authenticationRestrictions") {
            None => Restrictions::default(),
            Some(Bson::Array(list)) => Restrictions::parse(list).unwrap_or_else(|_| none()),
            Some(_) => none(),
        }
    }

    /// Whether there are no restrictions.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them lets a connection in. A client of a Unix socket has no address, so no
    /// restriction holds for it.
    pub(crate) fn permit(&self, peer: Option<SocketAddr>, local: Option<SocketAddr>) -> bool {
        // A dual-stack socket reports IPv4 addresses as mapped IPv6 addresses.
        let plain = |address: SocketAddr| address.ip().to_canonical();
        let holds = |client: SocketAddr| {
            let (client, server) = (plain(client), local.map(plain));
            self.0.iter().any(|one| one.holds(client, server))
        };
        self.0.is_empty() || peer.is_some_and(holds)
    }
}

#[cfg(test)]
mod tests {
    use bson::doc;

    use super::*;

    fn permit(list: &[Document], peer: &str, local: &str) -> bool {
        let list: Vec<Bson> = list.iter().cloned().map(Bson::Document).collect();
        let restrictions = Restrictions::parse(&list).unwrap();
        restrictions.permit(peer.parse().ok(), local.parse().ok())
    }

    #[test]
    fn addresses_are_compared_by_their_first_bits() {
        let from = |text: &str| [doc! {"clientSource": [text]}];
        for (network, address, holds) in [
            ("10.1.0.0/16", "10.1.255.3:9", true),
            ("10.1.0.0/16", "10.2.0.1:9", false),
            ("10.1.2.3", "10.1.2.3:9", true),
            ("10.1.2.3", "10.1.2.2:9", false),
            ("0.0.0.0/0", "200.1.2.3:9", true),
            ("0.0.0.0/0", "[::1]:9", false),
            ("::/0", "[::1]:9", true),
            ("::1", "[::1]:9", true),
            ("fe80::/10", "[fe80::7]:9", true),
            ("fe80::/10", "[fd00::7]:9", false),
            ("10.1.2.3/31", "[::ffff:10.1.2.2]:9", true),
        ] {
            let found = permit(&from(network), address, "127.0.0.1:1");
            assert_eq!(found, holds, "{address} in {network}");
        }
    }

    /// W1: one restriction of a list must be satisfied.
    #[test]
    fn one_restriction_must_hold_in_all_it_says() {
        let both = doc! {"clientSource": ["10.0.0.1"], "serverAddress": ["10.0.0.9", "::1"]};
        let one = [both.clone()];
        assert!(permit(&one, "10.0.0.1:5", "10.0.0.9:27017"));
        assert!(!permit(&one, "10.0.0.1:5", "10.0.0.8:27017"));
        assert!(!permit(&one, "10.0.0.2:5", "10.0.0.9:27017"));
        assert!(!permit(&one, "10.0.0.1:5", "unknown"));
        let two = [both, doc! {"clientSource": ["10.0.0.2"]}];
        assert!(permit(&two, "10.0.0.2:5", "10.0.0.8:27017"));
        assert!(permit(&[], "10.0.0.2:5", "unknown"));
        assert!(!permit(&two, "a Unix socket", "a Unix socket"));
        assert!(permit(&[], "a Unix socket", "a Unix socket"));
    }

    /// W2: a restriction that cannot be parsed admits no client.
    #[test]
    fn what_is_no_restriction_is_refused_and_lets_nobody_in() {
        for bad in [
            doc! {},
            doc! {"clientSource": "10.0.0.1"},
            doc! {"clientSource": [1]},
            doc! {"clientSource": ["10.0.0.1/33"]},
            doc! {"clientSource": ["host"]},
            doc! {"serverAddress": ["::1/129"]},
            doc! {"from": ["::1"]},
        ] {
            assert!(Restrictions::parse(&[bad.clone().into()]).is_err(), "{bad}");
            let stored = doc! {"authenticationRestrictions": [bad]};
            let peer = "10.0.0.1:9".parse().ok();
            assert!(!Restrictions::of(&stored).permit(peer, None));
        }
        assert!(Restrictions::of(&doc! {}).is_empty());
    }
}
