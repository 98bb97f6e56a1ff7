//! Rows and their index keys.

use stdx::rng::mix64;

use super::RowParams;
use super::payload::Payload;
use super::shape::Shape;
use crate::workload::scatter;

const REGISTERS: u64 = 1000;
const CUSTOMERS: u64 = 100_000;
const PRODUCTS: u64 = 10_000;

/// The date of row 0: 2014-01-01 UTC in milliseconds. Each row is one millisecond later.
const EPOCH_MS: u64 = 1_388_534_400_000;

/// Bytes of the fields before the payload: date 8, register 4, customer 4, product 4, price 8.
const FIELDS: usize = 28;

/// An encoded row. It is reused from row to row to save allocations.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The primary key; by default the row's number, big-endian.
    pub key: [u8; 8],
    /// The fields and the payload.
    pub value: Vec<u8>,
    keys: [[u8; 28]; 3],
    lengths: [usize; 3],
    indexes: usize,
}

impl Row {
    /// The keys of the row's entries in the index trees (the values of the entries are empty).
    pub fn index_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys
            .iter()
            .zip(self.lengths)
            .take(self.indexes)
            .map(|(key, length)| key.get(..length).unwrap_or(key))
    }
}

/// The fields of a row, before they are encoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sale {
    /// Milliseconds since 1970.
    pub date: u64,
    /// Cash register, below 1000.
    pub register: u32,
    /// Customer, below 100,000.
    pub customer: u32,
    /// Product, below 10,000.
    pub product: u32,
    /// The price as it is stored in the row, and as index keys contain it.
    pub price: f64,
    /// The price as an integer below 500, which shape `current` uses.
    pub price_int: u32,
    /// The leading fields of the indexes of shape `uniform`; zeros in other shapes.
    pub random: [u64; 3],
}

/// Generates rows. Cheap to clone; every thread has a generator of its own.
#[derive(Clone, Debug)]
pub struct Generator {
    params: RowParams,
    constant: Vec<u8>,
}

impl Generator {
    /// A generator for rows with these parameters.
    #[must_use]
    pub fn new(params: RowParams) -> Generator {
        let pattern = b"Caulis florens romanus: self-similar, and no two alike. ";
        let longest = params.payload.max as usize;
        let constant = pattern.iter().copied().cycle().take(longest).collect();
        Generator { params, constant }
    }

    /// The parameters of the rows.
    #[must_use]
    pub fn params(&self) -> &RowParams {
        &self.params
    }

    /// Average bytes of keys and values of a row and its index entries.
    #[must_use]
    pub fn logical_bytes(&self, indexes: bool) -> f64 {
        let entries = if indexes { self.entry_bytes() } else { 0 };
        (8 + FIELDS + entries) as f64 + self.params.payload.mean_bytes()
    }

    /// Bytes of the index entries of a row on an embedded engine. Servers store them in other
    /// forms; there, too, they count as these bytes.
    #[must_use]
    pub fn entry_bytes(&self) -> usize {
        let keys = self.params.shape.key_bytes();
        keys.iter().take(usize::from(self.params.indexes)).sum()
    }

    /// Whether primary keys and row numbers have different orders.
    #[must_use]
    pub fn scattered(&self) -> bool {
        self.params.shape == Shape::Hashed
    }

    /// The primary key of row `id`.
    #[must_use]
    pub fn key(&self, id: u64) -> u64 {
        if self.scattered() {
            return scatter::key(id, self.params.seed);
        }
        id
    }

    /// The number of the row with this primary key.
    #[must_use]
    pub fn id(&self, key: u64) -> u64 {
        if self.scattered() {
            return scatter::id(key, self.params.seed);
        }
        key
    }

    /// Generate row `id` into `row`.
    pub fn row(&self, id: u64, row: &mut Row) {
        let base = mix64(self.params.seed ^ mix64(id));
        let fields = self.fields(base, EPOCH_MS.wrapping_add(id));
        row.key = self.key(id).to_be_bytes();
        self.value(base, &fields, &mut row.value);
        row.indexes = usize::from(self.params.indexes);
        row.lengths = self.keys(&fields, row.key, &mut row.keys);
    }

    /// The fields of row `id`.
    #[must_use]
    pub fn sale(&self, id: u64) -> Sale {
        let base = mix64(self.params.seed ^ mix64(id));
        self.fields(base, EPOCH_MS.wrapping_add(id))
    }

    /// Generate the payload of row `id` as text, with the same length as in an encoded row: first
    /// the random part in 64 different letters, digits and signs, then the constant part.
    pub fn text(&self, id: u64, text: &mut String) {
        text.clear();
        let base = mix64(self.params.seed ^ mix64(id));
        let (random, fixed) = self.lengths(base);
        let mut counter = base;
        while text.len() < random {
            counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let bytes = mix64(counter).to_le_bytes();
            let letters = bytes.iter().map(|b| letter(*b));
            text.extend(letters.take(random - text.len()));
        }
        let constant = self.constant.iter().take(fixed);
        text.extend(constant.map(|b| char::from(*b)));
    }

    /// Start of a range query: the fields of a row, drawn from `random`, with the date of row `id`.
    #[must_use]
    pub fn query_sale(&self, random: u64, id: u64) -> Sale {
        self.fields(mix64(random), EPOCH_MS.wrapping_add(id))
    }

    /// Start of a range query: a key of index `index` whose fields are drawn from `random` as for a
    /// row, with the date of row `id` and the lowest primary key.
    #[must_use]
    pub fn query_key(&self, index: usize, random: u64, id: u64) -> Vec<u8> {
        let fields = self.fields(mix64(random), EPOCH_MS.wrapping_add(id));
        let mut keys = [[0; 28]; 3];
        let lengths = self.keys(&fields, [0; 8], &mut keys);
        let (key, length) = (keys.get(index % 3), lengths.get(index % 3));
        let (Some(key), Some(&length)) = (key, length) else {
            return Vec::new();
        };
        key.iter().copied().take(length).collect()
    }

    #[inline]
    fn fields(&self, base: u64, date: u64) -> Sale {
        let a = mix64(base ^ 1);
        let b = mix64(base ^ 2);
        let register = scale(a & 0xFFFF_FFFF, REGISTERS);
        let customer = scale(a >> 32, CUSTOMERS);
        let product = scale(b & 0xFFFF_FFFF, PRODUCTS);
        let unit = (b >> 32) as f64 / 4_294_967_296.0;
        let price = match self.params.shape {
            Shape::Classic | Shape::Uniform | Shape::Hashed => {
                (unit * 500.0 + f64::from(customer)) / 100.0
            }
            Shape::Current => (unit * 500.0).floor(),
        };
        let random = match self.params.shape {
            Shape::Uniform | Shape::Hashed => [mix64(base ^ 3), mix64(base ^ 4), mix64(base ^ 5)],
            Shape::Classic | Shape::Current => [0; 3],
        };
        let price_int = scale(b >> 32, 500);
        Sale {
            date,
            register,
            customer,
            product,
            price,
            price_int,
            random,
        }
    }

    /// The bytes of the random part and of the constant part of a payload.
    #[inline]
    fn lengths(&self, base: u64) -> (usize, usize) {
        let Payload { min, max, constant } = self.params.payload;
        let length = min + scale(mix64(base ^ 6) >> 32, u64::from(max - min) + 1);
        let length = length as usize;
        let fixed = length * usize::from(constant) / 100;
        (length - fixed, fixed)
    }

    #[inline]
    fn value(&self, base: u64, fields: &Sale, value: &mut Vec<u8>) {
        value.clear();
        value.extend_from_slice(&fields.date.to_be_bytes());
        value.extend_from_slice(&fields.register.to_be_bytes());
        value.extend_from_slice(&fields.customer.to_be_bytes());
        value.extend_from_slice(&fields.product.to_be_bytes());
        value.extend_from_slice(&fields.price.to_be_bytes());
        let (random, fixed) = self.lengths(base);
        let end = FIELDS + random;
        let mut counter = base;
        while value.len() + 8 <= end {
            counter = counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            value.extend_from_slice(&mix64(counter).to_le_bytes());
        }
        let rest = mix64(counter ^ 7).to_le_bytes();
        let missing = end.saturating_sub(value.len());
        value.extend_from_slice(rest.get(..missing).unwrap_or(&rest));
        value.extend_from_slice(self.constant.get(..fixed).unwrap_or(&self.constant));
    }

    #[inline]
    fn keys(&self, f: &Sale, primary: [u8; 8], keys: &mut [[u8; 28]; 3]) -> [usize; 3] {
        let price = f.price.to_be_bytes();
        let price_int = f.price_int.to_be_bytes();
        let customer = f.customer.to_be_bytes();
        let register = f.register.to_be_bytes();
        let product = f.product.to_be_bytes();
        let date = f.date.to_be_bytes();
        let [r1, r2, r3] = f.random.map(u64::to_be_bytes);
        let [k1, k2, k3] = keys;
        match self.params.shape {
            Shape::Classic => [
                join(k1, &[&price, &customer, &primary]),
                join(k2, &[&register, &price, &customer, &primary]),
                join(k3, &[&price, &date, &customer, &primary]),
            ],
            Shape::Current => [
                join(k1, &[&product, &customer, &price_int, &primary]),
                join(k2, &[&register, &customer, &price_int, &primary]),
                join(k3, &[&price_int, &date, &customer, &primary]),
            ],
            Shape::Uniform | Shape::Hashed => [
                join(k1, &[&r1, &customer, &primary]),
                join(k2, &[&r2, &register, &customer, &primary]),
                join(k3, &[&r3, &date, &customer, &primary]),
            ],
        }
    }
}

/// A uniform number below `limit` (at most 2^32), from 32 uniform random bits.
#[inline]
fn scale(bits: u64, limit: u64) -> u32 {
    debug_assert!(bits <= u64::from(u32::MAX) && limit <= 1 << 32);
    u32::try_from((bits * limit) >> 32).unwrap_or(u32::MAX)
}

/// One of 64 characters that need no escapes.
fn letter(byte: u8) -> char {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let found = LETTERS.get(usize::from(byte & 63));
    char::from(found.copied().unwrap_or(b'A'))
}

#[inline]
fn join(key: &mut [u8; 28], parts: &[&[u8]]) -> usize {
    let mut at = 0;
    for part in parts {
        if let Some(place) = key.get_mut(at..at + part.len()) {
            place.copy_from_slice(part);
        }
        at += part.len();
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generator(shape: Shape, payload: Payload) -> Generator {
        Generator::new(RowParams {
            seed: 42,
            shape,
            payload,
            indexes: 3,
        })
    }

    #[test]
    fn a_row_is_a_function_of_its_number() {
        let g = generator(Shape::Classic, Payload::CLASSIC);
        let (mut a, mut b) = (Row::default(), Row::default());
        g.row(7, &mut a);
        g.row(8, &mut b);
        g.row(7, &mut b);
        assert_eq!((a.key, &a.value), (b.key, &b.value), "D2: the same row");
        assert!(a.index_keys().eq(b.index_keys()), "D2: the same entries");
    }

    #[test]
    fn sizes_are_as_documented() {
        for (shape, payload, total) in [
            (Shape::Classic, Payload::CLASSIC, 236.0),
            (Shape::Uniform, Payload::CLASSIC, 236.0),
            (Shape::Current, Payload::CURRENT, 115.0),
        ] {
            let g = generator(shape, payload);
            assert!((g.logical_bytes(true) - total).abs() < 1e-9);
            let mut row = Row::default();
            let mut sum = 0;
            for id in 0..1000 {
                g.row(id, &mut row);
                sum += row.key.len() + row.value.len();
                sum += row.index_keys().map(<[u8]>::len).sum::<usize>();
                assert!(row.index_keys().map(<[u8]>::len).eq(shape.key_bytes()));
                assert!(row.index_keys().all(|k| k.ends_with(&row.key)));
            }
            let mean = sum as f64 / 1000.0;
            assert!((mean / total - 1.0).abs() < 0.01, "{shape}: {mean} bytes");
        }
    }

    #[test]
    fn the_classic_price_follows_the_customer() {
        let g = generator(Shape::Classic, Payload::CLASSIC);
        let mut row = Row::default();
        for id in 0..500 {
            g.row(id, &mut row);
            let customer = u32::from_be_bytes(row.value[12..16].try_into().unwrap());
            let price = f64::from_be_bytes(row.value[20..28].try_into().unwrap());
            let low = f64::from(customer) / 100.0;
            assert!(
                (low..low + 5.0).contains(&price),
                "customer {customer}, price {price}"
            );
            assert!(customer < 100_000);
        }
    }

    #[test]
    fn half_of_the_payload_is_constant() {
        let g = generator(Shape::Uniform, Payload::CLASSIC);
        let (mut a, mut b) = (Row::default(), Row::default());
        g.row(1, &mut a);
        g.row(2, &mut b);
        assert_eq!(a.value[FIELDS + 64..], b.value[FIELDS + 64..]);
        assert_ne!(a.value[FIELDS..FIELDS + 64], b.value[FIELDS..FIELDS + 64]);
    }

    #[test]
    fn a_text_is_as_long_as_the_payload_and_half_of_it_constant() {
        let g = generator(Shape::Current, Payload::CURRENT);
        let (mut row, mut text, mut other) = (Row::default(), String::new(), String::new());
        for id in 0..100 {
            g.row(id, &mut row);
            g.text(id, &mut text);
            g.text(id + 1, &mut other);
            assert_eq!(row.value.len() - FIELDS, text.len());
            assert!(text.is_ascii() && text != other);
            let fixed = text.len() / 2;
            assert!(
                g.constant
                    .starts_with(&text.as_bytes()[text.len() - fixed..])
            );
        }
        assert_eq!(g.sale(7), g.fields(mix64(42 ^ mix64(7)), EPOCH_MS + 7));
    }

    #[test]
    fn uniform_keys_spread_over_the_whole_space() {
        let g = generator(Shape::Uniform, Payload::CLASSIC);
        let mut row = Row::default();
        let mut seen = [[false; 16]; 3];
        for id in 0..1000 {
            g.row(id, &mut row);
            for (index, key) in row.index_keys().enumerate() {
                seen[index][usize::from(key[0] >> 4)] = true;
            }
        }
        assert!(seen.iter().flatten().all(|&s| s));
    }
}
