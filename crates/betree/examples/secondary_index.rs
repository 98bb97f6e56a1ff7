//! A secondary index: a second tree whose keys are the indexed field followed by the primary key,
//! written in the same transaction as the row.
//!
//! `cargo run -p betree --example secondary_index`

use std::error::Error;
use std::path::Path;

use betree::{Db, Durability, Options, Tree};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    for name in run(directory.path())? {
        println!("{name} lives in Rome");
    }
    Ok(())
}

/// People by their number, and an index by city.
struct People {
    db: Db,
    rows: Tree,
    by_city: Tree,
}

/// Insert, move and remove people. Returns the names of those who live in Rome, by number.
pub(crate) fn run(directory: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let db = Db::open(directory, Options::default().with_memory(32 << 20))?;
    let people = People {
        rows: db.tree("people")?,
        by_city: db.tree("people.city")?,
        db,
    };
    people.set(1, Some(("Rome", "Ada")))?;
    people.set(2, Some(("Paris", "Blaise")))?;
    people.set(3, Some(("Rome", "Clara")))?;
    people.set(4, Some(("Romeo", "Dora")))?;
    people.set(5, Some(("Rome", "Emil")))?;
    people.set(2, Some(("Rome", "Blaise")))?; // moves
    people.set(3, None)?; // is removed

    let names = people.of("Rome")?;
    people.db.close()?;
    Ok(names)
}

impl People {
    /// Set the row of a person, or remove it, and keep the index in step.
    fn set(&self, number: u64, row: Option<(&str, &str)>) -> betree::Result<()> {
        let key = number.to_be_bytes();
        let (rows, by_city) = (self.rows.id(), self.by_city.id());
        let mut transaction = self.db.begin()?;
        // Another writer of the same person conflicts on the row. The entries of the index follow
        // from the row, so they are written without reading.
        if let Some(old) = transaction.get(rows, &key)? {
            let city = old.split(|&byte| byte == 0).next().unwrap_or_default();
            transaction.delete_blind(by_city, &entry(city, number))?;
        }
        match row {
            Some((city, name)) => {
                let value = [city.as_bytes(), &[0], name.as_bytes()].concat();
                transaction.put(rows, &key, &value)?;
                transaction.put_blind(by_city, &entry(city.as_bytes(), number), b"")?;
            }
            None => {
                transaction.delete(rows, &key)?;
            }
        }
        transaction.commit(Durability::Group)
    }

    /// The names of the people who live in `city`, by number: the entries of the index, then the
    /// rows, as of one snapshot.
    fn of(&self, city: &str) -> betree::Result<Vec<String>> {
        let snapshot = self.db.begin_read()?;
        let mut keys = Vec::new();
        // The zero byte ends the city: "Rome" does not match "Romeo".
        for found in snapshot.prefix(self.by_city.id(), [city.as_bytes(), &[0]].concat())? {
            let (entry, _) = found?;
            keys.extend(entry.last_chunk::<8>().copied());
        }
        let rows = snapshot.get_many(self.rows.id(), &keys)?;
        let name = |row: &Vec<u8>| {
            let name = row.rsplit(|&byte| byte == 0).next().unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        };
        Ok(rows.iter().flatten().map(name).collect())
    }
}

/// The entry of a person in the index: city, a zero byte, number.
fn entry(city: &[u8], number: u64) -> Vec<u8> {
    [city, &[0], &number.to_be_bytes()].concat()
}
