//! Is the table what the workload's model says? Rows and entries are counted, each by its own
//! index, with the sum of a field that all of them hold; a sample of the rows is made again and
//! compared.

use stdx::{Rng, time};

use super::database::Server;
use super::value::Value;
use super::wire::Wire;
use crate::record::Integrity;
use crate::target::database::Live;

/// Rows that are compared, drawn at random; the first and the last are always among them.
const SAMPLE: u64 = 2000;

/// Faults that are told word for word.
const FAULTS_MAX: usize = 10;

/// Compare.
pub(super) fn verify(server: &Server, live: Live) -> Integrity {
    let start = time::now();
    let mut check = Check {
        server,
        live,
        found: 0,
        faults: Vec::new(),
    };
    if let Err(message) = check.all() {
        check.fault(message);
    }
    Integrity {
        checked: true,
        rows_expected: live.rows(),
        rows_found: check.found,
        faults: check.faults,
        seconds: start.elapsed().as_secs_f64(),
    }
}

/// The rows there are by way of a part, and the sum of their customers.
pub(super) fn count(
    server: &Server,
    wire: &mut dyn Wire,
    part: usize,
) -> Result<(u64, u64), String> {
    let text = server.sales.count(part)?;
    let answer = wire.all(&text, Vec::new())?;
    let mut values = answer.iter().flatten().map(Value::int);
    match (values.next().flatten(), values.next().flatten()) {
        (Some(rows), Some(sum)) => Ok((rows.cast_unsigned(), sum.cast_unsigned())),
        _ => Err(format!("no numbers in the answer to {text}")),
    }
}

struct Check<'a> {
    server: &'a Server,
    live: Live,
    found: u64,
    faults: Vec<String>,
}

impl Check<'_> {
    fn fault(&mut self, message: String) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(message);
        }
    }

    fn all(&mut self) -> Result<(), String> {
        let rows = self.live.rows();
        let mut wire = self.server.connection()?;
        let (found, sum) = count(self.server, wire.as_mut(), 0)?;
        self.found = found;
        if found != rows {
            self.fault(format!("{found} rows, and there should be {rows}"));
        }
        if self.live.indexed {
            for index in 1..=self.server.sales.indexes().len() {
                let (entries, of_index) = count(self.server, wire.as_mut(), index)?;
                if entries != rows {
                    self.fault(format!(
                        "index {index} has {entries} entries, and there should be {rows}"
                    ));
                } else if of_index != sum {
                    self.fault(format!(
                        "index {index} does not hold the customers of the rows"
                    ));
                }
            }
        }
        self.sample(wire.as_mut())
    }

    fn sample(&mut self, wire: &mut dyn Wire) -> Result<(), String> {
        let Live { low, high, .. } = self.live;
        if low == high {
            return Ok(());
        }
        let sales = &self.server.sales;
        let mut rng = Rng::new(sales.generator.params().seed ^ high);
        let (mut text, point) = (String::new(), sales.point());
        for turn in 0..SAMPLE.min(high - low) {
            let id = match turn {
                0 => low,
                1 => high - 1,
                _ => low + rng.below(high - low),
            };
            let mut expected = Vec::new();
            sales.row(id, &mut text, &mut expected);
            match wire.all(&point, vec![sales.key(id)])?.first() {
                None => self.fault(format!("row {id} is missing")),
                Some(row) if *row != expected => {
                    self.fault(format!("row {id} has a wrong value"));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
