//! A message and the fields of its body, which borrow from it.
//!
//! - Q1. A command is parsed once. What it is authorized by and what it runs with are the same
//!   fields.

use query::{Error, Result};
use wire::Message;
use yoke::Yoke;

use super::fields::Arguments;

/// A message with its parsed body.
pub(crate) struct Parsed(Yoke<Arguments<'static>, Box<Message>>);

impl Parsed {
    /// Parse the body of a message.
    ///
    /// # Errors
    /// `FailedToParse` for a body without fields; those of [`Arguments::of`].
    pub(crate) fn of(message: Message) -> Result<Parsed> {
        let yoke = Yoke::try_attach_to_cart(Box::new(message), |message: &Message| {
            let body = message.body();
            let first = body.iter_elements().next().transpose()?;
            let name = first.ok_or_else(|| Error::parse("empty command"))?.key();
            Arguments::of(name.as_str(), body)
        });
        yoke.map(Parsed)
    }

    pub(crate) fn message(&self) -> &Message {
        self.0.backing_cart()
    }

    /// The fields of its body; the first names the command.
    pub(crate) fn arguments(&self) -> &Arguments<'_> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawDocumentBuf, doc};
    use wire::{Decoder, Parts};

    use super::*;

    fn message(body: bson::Document) -> Message {
        let body = RawDocumentBuf::try_from(&body).unwrap();
        let parts = Parts {
            request_id: 1,
            response_to: 0,
            flags: 0,
        };
        let mut decoder = Decoder::new();
        decoder.push(&wire::encode(parts, &body, &[]));
        Message::decode(decoder.frame().unwrap().unwrap()).unwrap()
    }

    #[test]
    fn fields_live_as_long_as_their_message() {
        let parsed = Parsed::of(message(doc! {"find": "c", "limit": 3, "$db": "d"})).unwrap();
        let parsed = Box::new(parsed);
        let arguments = parsed.arguments();
        assert_eq!(arguments.name(), "find");
        assert_eq!(arguments.target().as_str(), Some("c"));
        assert_eq!(arguments.long("limit").unwrap(), Some(3));
        // Q1: the fields borrow the received bytes.
        let body = parsed.message().body().as_bytes().as_ptr_range();
        assert!(body.contains(&arguments.string("$db").unwrap().unwrap().as_ptr()));
        assert!(Parsed::of(message(doc! {})).is_err());
    }
}
