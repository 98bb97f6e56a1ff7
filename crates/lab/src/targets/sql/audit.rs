//! Compares the contents of a killed server with what was acknowledged before the kill. Rows are
//! read in the order of their numbers, each is generated again and compared, and every index must
//! have the same count and sum as the rows.

use stdx::time;

use super::database::Server;
use super::value::whole;
use super::verify::count;
use crate::protocol::{Audit, Told};
use crate::targets::embedded::reconcile;
use crate::targets::findings::FAULTS_MAX;

/// Compare the table with the rows acknowledged to each client, in the order of its commits.
pub(super) fn audit(server: &Server, told: &[Told]) -> Result<Audit, String> {
    let start = time::now();
    let mut wire = server.connection()?;
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    let (mut text, mut expected, mut customers) = (String::new(), Vec::new(), 0u64);
    let sales = &server.sales;
    wire.rows(&sales.everything(), Vec::new(), &mut |row| {
        let Some(id) = row.first().and_then(whole) else {
            faults.push("there is a row without a number".to_owned());
            return faults.len() < FAULTS_MAX;
        };
        let id = id.cast_unsigned();
        found.push(id);
        customers += u64::from(sales.generator.sale(id).customer);
        expected.clear();
        sales.row(id, &mut text, &mut expected);
        if row != expected && faults.len() < FAULTS_MAX {
            faults.push(format!("row {id} has a wrong value"));
        }
        true
    })?;
    for index in 1..=sales.indexes().len() {
        let (entries, sum) = count(server, wire.as_mut(), index)?;
        if (entries, sum) != (found.len() as u64, customers) {
            let rows = found.len();
            faults.push(format!(
                "index {index} has {entries} entries that do not fit the {rows} rows"
            ));
        }
    }
    let mut audit = reconcile(told, &found);
    audit.faults.extend(faults);
    audit.seconds = start.elapsed().as_secs_f64();
    Ok(audit)
}
