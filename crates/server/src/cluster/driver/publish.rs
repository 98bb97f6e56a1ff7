//! Shows clients and writers what the member is.

use std::collections::BTreeMap;
use std::sync::Arc;

use bson::doc;
use docdb::plant::{Plant, planted};
use repl::event::State;
use repl::position::MemberId;

use super::effects::others;
use super::{Driver, Gate};
use crate::cluster::standing::Standing;
use crate::cluster::view::{Progress, View};

impl Driver {
    /// Replace the values that others see, if they have changed.
    pub(super) fn publish(&mut self) {
        let view = self.view();
        let primary = view.primary;
        if *self.view.load_full() != view {
            self.view.store(Arc::new(view));
            self.host.changed();
        }
        let progress = self.progress();
        self.progress.send_replace(progress);
        self.log_primary(primary);
    }

    fn view(&self) -> View {
        let Some(seat) = &self.seat else {
            return View {
                halted: self.halted.clone(),
                ..View::startup()
            };
        };
        let node = seat.replica.node();
        let writable = matches!(seat.gate, Gate::Open) && self.halted.is_none();
        let standing = match Standing::of(node.state()) {
            _ if self.halted.is_some() => Standing::Recovering,
            Standing::Primary if !writable => Standing::Secondary,
            Standing::Secondary if seat.shows_nothing() => Standing::Startup2,
            other => other,
        };
        let known = seat.replica.primary(self.now()).map(|primary| primary.0);
        let accepts = |id: &u32| {
            let report = seat.reports.get(id);
            report.is_some_and(|report| report.note.standing == Standing::Primary)
        };
        View {
            standing,
            config: Some(Arc::clone(&seat.config)),
            me: Some(seat.me),
            term: node.term().0,
            primary: match standing {
                Standing::Primary => Some(seat.me),
                Standing::Secondary | Standing::Arbiter => known.filter(accepts),
                _ => None,
            },
            halted: self.halted.clone(),
        }
    }

    fn progress(&self) -> Progress {
        let Some(seat) = &self.seat else {
            return Progress::none();
        };
        let node = seat.replica.node();
        let writable = matches!(node.state(), State::Primary { writable: true });
        let leads = writable && seat.gate.may_put() && self.halted.is_none();
        let durable_of = |id: MemberId| (id.0, node.durable_of(id));
        let durable_of: BTreeMap<_, _> = others(&seat.config, seat.me).map(durable_of).collect();
        Progress {
            leads: leads.then_some(node.term().0),
            last: node.last(),
            durable: node.durable(),
            commit: match planted(Plant::CommitFromTheFuture) {
                true => node.last(),
                false => node.commit(),
            },
            applied: seat.applied,
            durable_of,
            reports: seat.reports.clone(),
            lags: Arc::clone(&seat.lags.of),
            uncommitted: seat.lags.uncommitted,
            source: node.source().map(|source| source.0),
            elected: seat.elected,
            election: seat.election.clone(),
            vote: seat.vote.clone(),
            info: match node.state() {
                State::Recovering | State::Startup2 => seat.info.clone(),
                _ => String::new(),
            },
        }
    }

    fn log_primary(&mut self, primary: Option<u32>) {
        let Some(seat) = &mut self.seat else { return };
        if seat.seen_primary == primary {
            return;
        }
        seat.seen_primary = primary;
        let host = primary.map(|id| seat.config.host(id).to_owned());
        let attributes = doc! {"primary": host};
        self.log(9_100_050, "Primary of the replica set", attributes);
    }
}
