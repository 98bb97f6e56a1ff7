//! Events that are too large for a batch, and the stage `$changeStreamSplitLargeEvent`.
//!
//! A large event is split into fragments: documents with the token of the fragment as `_id`,
//! `splitEvent: {fragment, of}` (the first fragment is 1), and some fields of the event. A field is
//! not split. The smallest fields come first, so the first fragment has as many as possible; equal
//! events are split equally, so a stream can resume after a fragment.

use bson::raw::{RawElement, cstr};
use bson::{RawDocument, RawDocumentBuf};
use query::{Code, Error, Result};

use super::token::Token;
use crate::limits::RESULT_MAX;

/// Checks that an event fits into a batch.
///
/// # Errors
/// `BSONObjectTooLarge`.
pub fn check(event: &RawDocument) -> Result<()> {
    let size = event.as_bytes().len();
    if size <= RESULT_MAX {
        return Ok(());
    }
    let message = format!(
        "BSONObj size: {size} ({size:#X}) is invalid. Size must be between 0 and {RESULT_MAX}\
         (16MB): use $changeStreamSplitLargeEvent for large events"
    );
    Err(Error::new(Code::BSON_OBJECT_TOO_LARGE, message))
}

/// The last stage of a stream with `$changeStreamSplitLargeEvent`.
#[derive(Debug)]
pub struct Splitter {
    /// The fragment after which the stream resumes.
    resume: Option<Token>,
    limit: usize,
}

impl Splitter {
    /// A splitter for a stream that starts after a token, if any.
    #[must_use]
    pub fn new(start: Option<&Token>) -> Splitter {
        let is_fragment = |token: &&Token| {
            token
                .stands_for()
                .is_some_and(|event| event.fragment.is_some())
        };
        Splitter {
            resume: start.filter(is_fragment).cloned(),
            limit: RESULT_MAX,
        }
    }

    /// A splitter into fragments of at most `limit` bytes.
    #[cfg(test)]
    pub(super) fn with_limit(start: Option<&Token>, limit: usize) -> Splitter {
        Splitter {
            limit,
            ..Splitter::new(start)
        }
    }

    /// The event, or the fragments of a large one with their tokens. Of the event in whose middle
    /// the stream resumes, only the fragments that follow.
    ///
    /// # Errors
    /// `InvalidBSON`; 7182500 for a field that is larger than a fragment, 7182502 for an event
    /// without fields.
    pub fn split(
        &mut self,
        token: &Token,
        event: RawDocumentBuf,
    ) -> Result<Vec<(Token, RawDocumentBuf)>> {
        let skipped = match self.resume.take() {
            Some(resume) if resume.with_fragment(None) == *token => {
                let number = resume.stands_for().and_then(|event| event.fragment);
                usize::try_from(number.unwrap_or(0)).map_or(usize::MAX, |number| number + 1)
            }
            _ if event.as_bytes().len() <= self.limit => return Ok(vec![(token.clone(), event)]),
            _ => 0,
        };
        let mut all = fragments(token, &event, self.limit)?;
        Ok(all.split_off(skipped.min(all.len())))
    }
}

/// The fragments of an event.
fn fragments(
    token: &Token,
    event: &RawDocument,
    limit: usize,
) -> Result<Vec<(Token, RawDocumentBuf)>> {
    let mut fields = Vec::new();
    for element in event.iter_elements() {
        let element = element?;
        if element.key().as_str() != "_id" {
            // The type byte, the name, and the zero that ends it.
            fields.push((element.size() + element.key().len() + 2, element));
        }
    }
    if fields.is_empty() {
        let message = "Cannot split an empty event or an event containing solely '_id' field";
        return Err(Error::location(7_182_502, message));
    }
    fields.sort_by_key(|(size, element)| (*size, element.key().as_str()));
    let mut lists: Vec<Vec<RawElement<'_>>> = Vec::new();
    let mut room = 0;
    for (size, element) in fields {
        match lists.last_mut() {
            Some(list) if size <= room => list.push(element),
            _ => {
                let around = around(token, lists.len());
                room = limit.saturating_sub(around);
                if room < size {
                    let message = format!(
                        "Splitting change event failed: fragment size {} is greater than maximum \
                         allowed fragment size {limit}",
                        around + size
                    );
                    return Err(Error::location(7_182_500, message));
                }
                lists.push(vec![element]);
            }
        }
        room -= size;
    }
    let of = lists.len();
    let fragment = |(number, list)| one(token, (number, of), list);
    lists.into_iter().enumerate().map(fragment).collect()
}

/// Bytes of a fragment without fields of the event.
fn around(token: &Token, number: usize) -> usize {
    begun(token, number, 0).1.as_bytes().len()
}

fn begun(token: &Token, number: usize, of: usize) -> (Token, RawDocumentBuf) {
    let integer = |number| i32::try_from(number).unwrap_or(i32::MAX);
    let token = token.with_fragment(Some(i64::from(integer(number))));
    let mut split = RawDocumentBuf::new();
    split.append(cstr!("fragment"), integer(number).saturating_add(1));
    split.append(cstr!("of"), integer(of));
    let mut out = RawDocumentBuf::new();
    out.append(cstr!("_id"), token.to_document());
    out.append(cstr!("splitEvent"), split);
    (token, out)
}

fn one(
    token: &Token,
    (number, of): (usize, usize),
    list: Vec<RawElement<'_>>,
) -> Result<(Token, RawDocumentBuf)> {
    let (token, mut out) = begun(token, number, of);
    for element in list {
        out.append(element.key(), element.value()?);
    }
    Ok((token, out))
}

#[cfg(test)]
mod tests {
    use bson::{Document, Timestamp, doc, rawdoc};

    use super::*;
    use crate::change::token::Event;

    fn token() -> Token {
        let event = Event {
            index: 3,
            invalidate: false,
            uuid: None,
            fragment: None,
        };
        let time = Timestamp {
            time: 5,
            increment: 1,
        };
        Token::event(time, event, &rawdoc! { "operationType": "update" }).unwrap()
    }

    fn event(fields: &Document) -> RawDocumentBuf {
        let mut out = RawDocumentBuf::new();
        out.append(cstr!("_id"), token().to_document());
        for element in &RawDocumentBuf::try_from(fields).unwrap() {
            let (name, value) = element.unwrap();
            out.append(name, value);
        }
        out
    }

    fn shown(fragments: Vec<(Token, RawDocumentBuf)>) -> Vec<Document> {
        let one = |(token, raw): (Token, RawDocumentBuf)| {
            let mut document = Document::try_from(&*raw).unwrap();
            let id = document.remove("_id").unwrap();
            assert_eq!(
                Token::parse(raw.get_document("_id").unwrap()).unwrap(),
                token,
                "{id}"
            );
            document
        };
        fragments.into_iter().map(one).collect()
    }

    fn fields() -> Document {
        let text = |letter: &str, count| letter.repeat(count);
        doc! {
            "a": text("x", 3_000), "b": text("y", 2_000), "c": 1, "d": text("z", 1_500), "e": 2,
        }
    }

    fn expected() -> Vec<Document> {
        let split = |fragment: i32| doc! { "fragment": fragment, "of": 3 };
        vec![
            doc! { "splitEvent": split(1), "c": 1, "e": 2, "d": "z".repeat(1_500) },
            doc! { "splitEvent": split(2), "b": "y".repeat(2_000) },
            doc! { "splitEvent": split(3), "a": "x".repeat(3_000) },
        ]
    }

    #[test]
    fn a_large_event_is_split_at_its_fields() {
        let mut splitter = Splitter::with_limit(None, 3_400);
        let small = event(&doc! { "a": 1 });
        let one = splitter.split(&token(), small.clone()).unwrap();
        assert_eq!(one, [(token(), small)]);
        let fragments = splitter.split(&token(), event(&fields())).unwrap();
        let mut last = token();
        for (number, (token, fragment)) in (0..).zip(&fragments) {
            assert!(fragment.as_bytes().len() <= 3_400);
            assert!(last < *token, "fragments are in the order of their tokens");
            assert_eq!(token.stands_for().unwrap().fragment, Some(number));
            assert_eq!(token.with_fragment(None), super::tests::token());
            last = token.clone();
        }
        assert_eq!(shown(fragments), expected());
        let error = splitter.split(&token(), event(&doc! { "a": "x".repeat(3_400) }));
        assert_eq!(error.unwrap_err().code.0, 7_182_500);
        let mut none = Splitter::with_limit(None, 4);
        let error = none.split(&token(), event(&doc! {})).unwrap_err();
        assert_eq!(error.code.0, 7_182_502);
    }

    #[test]
    fn a_stream_resumes_within_a_split_event() {
        for after in 0..3_usize {
            let number = i64::try_from(after).unwrap();
            let resume = token().with_fragment(Some(number));
            let mut splitter = Splitter::with_limit(Some(&resume), 3_400);
            let rest = splitter.split(&token(), event(&fields())).unwrap();
            assert_eq!(shown(rest), expected()[after + 1..]);
            let next = splitter.split(&token(), event(&fields())).unwrap();
            assert_eq!(next.len(), 3, "only the first event is in its middle");
        }
        let mut splitter = Splitter::with_limit(Some(&token()), 3_400);
        assert_eq!(splitter.split(&token(), event(&fields())).unwrap().len(), 3);
    }

    #[test]
    fn an_event_beyond_the_limit_of_replies_is_refused() {
        check(&event(&fields())).unwrap();
        let error = check(&event(&doc! { "a": "x".repeat(RESULT_MAX) })).unwrap_err();
        assert_eq!(error.code, Code::BSON_OBJECT_TOO_LARGE);
    }
}
