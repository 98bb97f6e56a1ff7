//! The replication protocol of a replica set, as a state machine without I/O and without a clock.
//!
//! A *member* of the set is a [`Node`](node::Node). It takes events (a message, a durable write, a
//! timeout, a request of an operator) and returns effects (send, persist, write, roll back, ...),
//! which its caller does in order. The same events give the same effects, so the code itself is
//! explored exhaustively in small sets.
//!
//! The protocol is MongoDB's variant of Raft, after its published specifications (RaftMongo,
//! MongoReplReconfig): members *pull* the log from a source that need not be the primary; the log
//! is written before it is committed, so a former primary can have entries to undo; configurations
//! are not log entries. Deviations, and why: `docs/decisions/0042-*.md`.
//!
//! Read in this order:
//!
//! 1. [`position`]: terms and the identity of an entry; [`log`]: which entries a log contains.
//! 2. [`config`]: members and their votes; the rules of a configuration.
//! 3. [`message`] and [`event`]: everything that goes in or out.
//! 4. [`node`]: the state machine: elections, copying a log, the commit point, reconfiguration,
//!    handing over.
//! 5. [`replica`]: timers around it: when to campaign, whom to fetch from.
//!
//! What the unit tests explore, and the laws of every state, are in `explore`; `plant` lists the
//! bugs that the exploration must find.
//!
//! ```
//! use std::sync::Arc;
//!
//! use repl::config::{Config, ConfigId, Member};
//! use repl::event::{Effect, Event, Hard, State};
//! use repl::log::Log;
//! use repl::node::Node;
//! use repl::position::{MemberId, Position};
//!
//! // A set of one member elects itself as soon as its vote is durable.
//! let config = Arc::new(Config { id: ConfigId::default(), members: vec![Member::voter(1)] });
//! let hard = Hard { config, ..Hard::default() };
//! let mut node = Node::start(MemberId(1), hard, Log::default(), Position::ZERO);
//! let effects = node.step(Event::Campaign { dry_run: false, takeover: false });
//! let [Effect::Persist(vote)] = effects.as_slice() else { panic!("a vote is made durable") };
//! node.step(Event::Persisted(vote.clone()));
//! assert_eq!(node.state(), State::Primary { writable: false });
//! node.step(Event::CatchUpEnded);
//! let effects = node.step(Event::Drained { ts: 1 });
//! assert!(matches!(effects.first(), Some(Effect::WriteNoop(_))));
//! node.step(Event::Durable(node.last()));
//! assert_eq!(node.commit(), node.last());
//! ```

pub mod config;
pub mod event;
#[cfg(test)]
mod explore;
pub mod log;
pub mod message;
pub mod node;
mod plant;
pub mod position;
pub mod replica;
