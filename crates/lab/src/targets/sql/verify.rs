//! Compares the table with the workload's model. Rows and entries are counted, each by its own
//! index, with the sum of a field that all of them hold; a sample of the rows is generated again
//! and compared.

use lab_report::record::Integrity;

use super::database::Server;
use super::value::whole;
use super::wire::Wire;
use crate::targets::database::Live;
use crate::targets::findings::{Findings, Found};

/// Compare the table with the model.
pub(super) fn verify(server: &Server, live: Live) -> Integrity {
    Findings::of(live, |findings| {
        let mut wire = server.connection()?;
        let (found, sum) = count(server, wire.as_mut(), 0)?;
        findings.rows(found, live);
        let sales = &server.sales;
        if live.indexed {
            for index in 0..sales.indexes().len() {
                let (entries, of_index) = count(server, wire.as_mut(), index + 1)?;
                if findings.entries(index, entries, live) && of_index != sum {
                    let name = index + 1;
                    findings.fault(format!(
                        "index {name} does not hold the customers of the rows"
                    ));
                }
            }
        }
        let (mut text, point) = (String::new(), sales.point());
        findings.sample(live, sales.generator.params().seed, |id| {
            let mut expected = Vec::new();
            sales.row(id, &mut text, &mut expected);
            Ok(match wire.all(&point, vec![sales.key(id)])?.first() {
                None => Found::Missing,
                Some(row) if *row != expected => Found::Wrong,
                Some(_) => Found::Right,
            })
        })
    })
}

/// The number of rows by the primary key or an index, and the sum of their customers.
pub(super) fn count(
    server: &Server,
    wire: &mut dyn Wire,
    part: usize,
) -> Result<(u64, u64), String> {
    let text = server.sales.count(part)?;
    let answer = wire.all(&text, Vec::new())?;
    let mut values = answer.iter().flatten().map(whole);
    match (values.next().flatten(), values.next().flatten()) {
        (Some(rows), Some(sum)) => Ok((rows.cast_unsigned(), sum.cast_unsigned())),
        _ => Err(format!("no numbers in the answer to {text}")),
    }
}
