//! The requests of LinkBench, by the names their counts and latencies are recorded under.

use serde::{Deserialize, Serialize};

/// The kinds of requests, in the order of [`Mix::weights`].
pub const KINDS: [&str; 10] = [
    "getlinklist",
    "getnode",
    "addlink",
    "updatelink",
    "updatenode",
    "countlink",
    "deletelink",
    "addnode",
    "deletenode",
    "getlink",
];

/// The frequency of each request, and the sizes of nodes and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// The mix of the paper (`FBWorkload.properties`).
    Facebook,
    /// Callaghan's later configuration: more point reads, larger values. The shares of the six
    /// requests it is not published with are those of the paper among each other.
    Callaghan,
}

impl Mix {
    /// Shares of the requests in per cent, in the order of [`KINDS`].
    #[must_use]
    pub fn weights(self) -> [f64; 10] {
        match self {
            Mix::Facebook => [50.71, 12.93, 8.99, 8.01, 7.37, 4.89, 2.99, 2.57, 1.01, 0.53],
            Mix::Callaghan => [
                22.57, 43.99, 5.35, 4.76, 4.38, 2.90, 1.78, 1.52, 0.60, 12.15,
            ],
        }
    }

    /// Bytes of a node's data and of a link's.
    #[must_use]
    pub fn bytes(self) -> (usize, usize) {
        match self {
            Mix::Facebook => (128, 8),
            Mix::Callaghan => (168, 23),
        }
    }
}
