//! The operations of a client.

use lab_report::record::ycsb::{Core, KINDS, Requests};
use stdx::Rng;
use stdx::rng::mix64;

use super::{FIELDS, Ycsb};
use crate::workload::program::{Client, ClientSlot, Done};
use crate::workload::table::{Row, Value, at};
use crate::workload::tables::{Answer, Lock, Range, TableClient};
use crate::workload::zipf::Zipf;

/// Zipf's exponent.
const THETA: f64 = 0.99;

/// Of 100 operations of the distribution `hotspot`, how many request hot records; and of 100
/// records, how many are hot.
const HOT_OPERATIONS: u64 = 80;
const HOT_RECORDS: u64 = 20;

/// Maximum number of records of a scan.
const SCAN_MAX: u64 = 100;

/// The inputs of an operation.
#[derive(Clone, Debug, Default)]
struct Input {
    kind: usize,
    key: Vec<Value>,
    /// The field that is changed, or that is checked after a read.
    field: usize,
    value: Value,
    /// Maximum number of records of a scan.
    length: u64,
    /// The record to insert.
    rows: Vec<Row>,
    /// Its number.
    number: Option<u64>,
}

pub(super) struct Requester<'a> {
    program: &'a Ycsb,
    core: Core,
    requests: Requests,
    zipf: Zipf,
    /// Number of records when the step began.
    records: u64,
    rng: Rng,
    input: Input,
    row: Row,
}

impl<'a> Requester<'a> {
    pub(super) fn new(program: &'a Ycsb, slot: ClientSlot<'a>, core: Core) -> Requester<'a> {
        program.numbers.begin(slot.rows);
        let records = program.numbers.visible();
        let requests = match core {
            Core::D => Requests::Latest,
            _ => program.params.requests,
        };
        Requester {
            program,
            core,
            requests,
            zipf: Zipf::new(records, THETA),
            records,
            // Steps with equal numbers of records must not draw the same operations.
            rng: Rng::new(slot.seed(program.params.seed ^ mix64(core as u64))),
            input: Input::default(),
            row: Row::new(),
        }
    }

    fn kind(&mut self) -> usize {
        let mut left = self.rng.below(100);
        for (kind, weight) in self.core.weights().into_iter().enumerate() {
            if left < weight {
                return kind;
            }
            left -= weight;
        }
        0
    }

    /// The number of the record to request.
    fn number(&mut self) -> u64 {
        let records = self.records.max(1);
        let rng = &mut self.rng;
        let number = match self.requests {
            Requests::Zipfian => self.zipf.scattered(rng),
            Requests::Uniform => rng.below(records),
            Requests::Latest => {
                let newest = self.program.numbers.visible().saturating_sub(1);
                newest.saturating_sub(self.zipf.rank(rng))
            }
            Requests::Hotspot => {
                let hot = (records * HOT_RECORDS / 100).max(1);
                if rng.below(100) < HOT_OPERATIONS || hot == records {
                    rng.below(hot)
                } else {
                    hot + rng.below(records - hot)
                }
            }
        };
        // Zipf's law is over two numbers at least.
        number.min(records.max(self.program.numbers.visible()) - 1)
    }

    fn version(&mut self) -> u32 {
        // The version 0 is that of the load.
        u32::try_from(self.rng.below(u64::from(u32::MAX))).unwrap_or(0) + 1
    }

    fn read(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let mut done = Done {
            entries: 1,
            ..Done::default()
        };
        let Input { key, field, .. } = &self.input;
        let found = client.get(0, key, Lock::None, &mut self.row)?;
        if !found || !self.program.holds(&self.row, *field) {
            let key = at(key, 0).text();
            done.wrong = Some(format!("record {key:?} is missing or wrong"));
        }
        Ok(done)
    }

    fn update(&mut self, client: &mut dyn TableClient) -> Answer<()> {
        let Input {
            key, field, value, ..
        } = &self.input;
        client.set(0, key, 1 + field, value)
    }

    fn insert(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        client.insert(0, &self.input.rows)?;
        if let Some(number) = self.input.number.take() {
            self.program.numbers.inserted(number);
        }
        Ok(Done::default())
    }

    fn scan(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        let (program, input) = (self.program, &self.input);
        let range = Range {
            from: input.key.first(),
            ..Range::by_key(0, &[]).limit(input.length)
        };
        let mut last = at(&input.key, 0).text().to_owned();
        let (mut first, mut wrong) = (true, false);
        let entries = client.range(&range, &mut |row| {
            let key = at(row, 0).text();
            let ordered = if first {
                last == key
            } else {
                last.as_str() < key
            };
            wrong |= !ordered || !program.holds(row, input.field);
            first = false;
            key.clone_into(&mut last);
            true
        })?;
        let wrong = wrong || first || input.length < entries;
        let wrong = wrong.then(|| {
            let key = at(&self.input.key, 0).text();
            format!("a scan from {key:?} has a wrong record, a wrong order or no first record")
        });
        Ok(Done {
            entries,
            wrong,
            ..Done::default()
        })
    }
}

impl Client for Requester<'_> {
    fn next(&mut self) -> Option<usize> {
        let kind = self.kind();
        self.input.kind = kind;
        self.input.field = usize::try_from(self.rng.below(FIELDS as u64)).unwrap_or(0);
        let name = KINDS.get(kind).copied().unwrap_or_default();
        if name == "insert" {
            let number = self.program.numbers.take();
            let version = self.version();
            self.input.number = Some(number);
            self.input.rows = vec![self.program.record(number, version)];
            return Some(kind);
        }
        let number = self.number();
        let key = self.program.key(number);
        if matches!(name, "update" | "read_modify_write") {
            let version = self.version();
            self.input.value = self.program.value(&key, self.input.field, version);
        }
        self.input.length = 1 + self.rng.below(SCAN_MAX);
        self.input.key = vec![Value::Text(key)];
        Some(kind)
    }

    fn run(&mut self, client: &mut dyn TableClient) -> Answer<Done> {
        match KINDS.get(self.input.kind).copied().unwrap_or_default() {
            "update" => self.update(client).map(|()| Done::default()),
            "insert" => self.insert(client),
            "scan" => self.scan(client),
            "read_modify_write" => {
                let done = self.read(client)?;
                self.update(client)?;
                Ok(done)
            }
            _ => self.read(client),
        }
    }
}

impl Drop for Requester<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.input.number {
            self.program.numbers.give_back(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::super::tests::program;
    use super::*;

    /// How often each record is requested in `draws` draws.
    fn drawn(requests: Requests, core: Core, draws: u32) -> Vec<u32> {
        let (program, taken) = (program(requests), AtomicU64::new(0));
        let slot = ClientSlot {
            client: 0,
            clients: 1,
            rows: 1000,
            salt: 3,
            taken: &taken,
            operations: 0,
        };
        let mut requester = Requester::new(&program, slot, core);
        let mut all = vec![0; 1000];
        for _ in 0..draws {
            all[usize::try_from(requester.number()).unwrap()] += 1;
        }
        all
    }

    #[test]
    fn records_are_requested_as_often_as_their_distribution_wants() {
        let share = |all: &[u32]| f64::from(all.iter().sum::<u32>()) / 100_000.0;
        let uniform = drawn(Requests::Uniform, Core::A, 100_000);
        assert!(uniform.iter().all(|n| (40..200).contains(n)), "{uniform:?}");
        let hot = drawn(Requests::Hotspot, Core::A, 100_000);
        assert!((share(&hot[..200]) - 0.8).abs() < 0.01);
        // The share of the first of 1000 ranks is 1 / 7.5.
        let latest = drawn(Requests::Latest, Core::A, 100_000);
        assert!(
            (share(&latest[999..]) - 0.13).abs() < 0.02,
            "{}",
            latest[999]
        );
        assert!(latest[998] < latest[999] && share(&latest[..500]) < 0.12);
        let mut zipfian = drawn(Requests::Zipfian, Core::A, 100_000);
        assert!(
            share(&zipfian[999..]) < 0.1,
            "popular records are scattered"
        );
        zipfian.sort_unstable_by(|a, b| b.cmp(a));
        assert!((share(&zipfian[..1]) - 0.13).abs() < 0.02, "{}", zipfian[0]);
        // Workload D requests the newest records, whatever the others request.
        let newest = drawn(Requests::Uniform, Core::D, 100_000);
        assert!((share(&newest[999..]) - 0.13).abs() < 0.02);
    }

    #[test]
    fn kinds_have_their_shares() {
        let taken = AtomicU64::new(0);
        for core in Core::ALL {
            let program = program(Requests::Zipfian);
            let slot = ClientSlot {
                client: 0,
                clients: 1,
                rows: 1000,
                salt: 3,
                taken: &taken,
                operations: 0,
            };
            let mut requester = Requester::new(&program, slot, core);
            let mut counts = [0u32; KINDS.len()];
            for _ in 0..20_000 {
                counts[requester.kind()] += 1;
            }
            for (count, weight) in counts.iter().zip(core.weights()) {
                let expected = 200.0 * weight as f64;
                assert!(
                    (f64::from(*count) - expected).abs() < 300.0,
                    "{core:?}: {counts:?}"
                );
                assert_eq!(*count == 0, weight == 0, "{core:?}");
            }
        }
    }
}
