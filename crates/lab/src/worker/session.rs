//! The open target, and the contents that the workload expects in it.

use lab_report::error::Result;

use super::program::Running;
use crate::protocol::Open;
use crate::targets::{self, Database, Live};
use crate::workload::iibench::Generator;

pub(super) struct Session {
    pub database: Box<dyn Database>,
    pub generator: Generator,
    pub live: Live,
    /// Whether the target stores what it receives (`null` does not).
    pub keeps: bool,
    /// The workload that declares its own tables; `None` for the insert benchmark.
    pub running: Option<Running>,
}

impl Session {
    /// Open the target; a new one has no rows.
    pub(super) fn open(request: &Open) -> Result<Session> {
        let database = targets::open(request)?;
        Ok(Session {
            keeps: database.keeps(),
            database,
            generator: Generator::new(request.rows),
            live: Live {
                high: request.rows_present,
                ..Live::default()
            },
            running: request.program.as_ref().map(Running::new),
        })
    }

    /// Expected bytes of live keys and values.
    pub(super) fn live_bytes(&self) -> u64 {
        let each = self.database.row_bytes(self.live.indexed);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive"
        )]
        let bytes = (each * self.live.rows() as f64) as u64;
        bytes
    }
}
