//! Which commits end the waits of change streams, counted.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use bson::{Document, doc};
use docdb::{Awaiting, Batch, Namespace};
use stdx::sync::atomic::{AtomicUsize, Ordering};

use super::store::{ids, more, resume, stream, watch};
use super::{everything, on};
use crate::lab::{Lab, is_ready, ns, on_each, op};

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn waits(self: &Arc<Self>, awaiting: &mut Awaiting) -> bool {
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        Pin::new(awaiting).poll(&mut context).is_pending()
    }
}

/// A stream on a namespace, and the batch with its wait.
fn waiting(lab: &Lab, ns: &Namespace, options: Document) -> (Batch, Batch) {
    let first = watch(lab, ns, &stream(options)).unwrap();
    let batch = lab.more_waiting(&first, false);
    (first, batch)
}

/// `writes::streams`: N1, N2.
#[test]
fn writes_to_a_collection_wake_none_of_the_streams_on_others() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": -1 }]);
        let woken: Arc<Woken> = Arc::default();
        let mut others: Vec<(Batch, Batch)> = (0..300)
            .map(|n| match n {
                0 => waiting(lab, &Namespace::collectionless("elsewhere"), doc! {}),
                _ => waiting(lab, &on(&format!("c{n}")), doc! {}),
            })
            .collect();
        for (_, batch) in &mut others {
            assert!(woken.waits(batch.awaits.as_mut().unwrap()));
        }
        let (first, mut batch) = waiting(lab, &on("c"), doc! {});
        let (mut got, mut wakes) = (Vec::new(), 0);
        for id in 0..1_000 {
            let own: Arc<Woken> = Arc::default();
            assert!(own.waits(batch.awaits.as_mut().unwrap()));
            lab.insert(&ns("c"), &[doc! { "_id": id }]);
            wakes += own.count();
            batch = lab.more_waiting(&first, true);
            got.extend(ids(&batch));
            batch = lab.more_waiting(&first, false);
        }
        assert_eq!((got, wakes), ((0..1_000).collect(), 1_000));
        assert_eq!(woken.count(), 0, "N2");
        // At the end of its time a stream that was not woken has a later token all the same.
        let (other, before) = &others[1];
        lab.store.release_cursor(other.id);
        let after = more(lab, other, 9);
        assert_eq!(after.documents.len(), 0);
        let data = |token: Document| token.get_str("_data").unwrap().to_owned();
        assert!(data(resume(before)) < data(resume(&after)), "the token");
    });
}

/// `writes::streams`: what writes, changes of the catalog and notes wake.
#[test]
fn streams_on_databases_and_all_of_them_are_woken_as_well() {
    on_each(|lab| {
        let far = Namespace::new("far", "c").unwrap();
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        lab.insert(&far, &[doc! { "_id": 0 }]);
        let all = || {
            let whole = doc! { "allChangesForCluster": true };
            [
                waiting(lab, &on("c"), doc! {}),
                waiting(lab, &on("d"), doc! {}),
                waiting(lab, &on(""), doc! {}),
                waiting(lab, &everything(), whole),
                waiting(lab, &far, doc! {}),
            ]
            .map(|(first, batch)| (first.id, batch.awaits.unwrap()))
        };
        let expect = |change: &dyn Fn(), woken: [bool; 5]| {
            let mut waits = all();
            for (_, wait) in &mut waits {
                assert!(!is_ready(wait));
            }
            change();
            let found = waits.each_mut().map(|(_, wait)| is_ready(wait));
            assert_eq!(found, woken);
            for (id, _) in waits {
                lab.store.end_cursor(id);
            }
        };
        expect(
            &|| drop(lab.insert(&ns("c"), &[doc! { "_id": 1 }])),
            [true, false, true, true, false],
        );
        expect(
            &|| drop(lab.insert(&far, &[doc! { "_id": 1 }])),
            [false, false, false, true, true],
        );
        let rename = |from: &Namespace, to: &Namespace| {
            lab.store.rename(&op(), from, to, false).unwrap();
        };
        expect(
            &|| rename(&ns("c"), &ns("d")),
            [true, true, true, true, false],
        );
        expect(
            &|| rename(&ns("d"), &ns("c")),
            [true, true, true, true, false],
        );
        expect(
            &|| assert!(lab.store.drop_collection(&op(), &ns("c")).unwrap()),
            [true, false, true, true, false],
        );
        expect(
            &|| {
                let note = bson::rawdoc! { "msg": "periodic noop" };
                lab.store.append_oplog_note(&op(), &note).unwrap();
            },
            [false; 5],
        );
    });
}

/// A member of a replica set shows what is committed only, and wakes the streams for it then.
#[test]
fn members_show_what_is_committed() {
    on_each(|lab| {
        lab.insert(&ns("c"), &[doc! { "_id": 0 }]);
        let replica = lab.store.replica().unwrap();
        replica.keep_undo(&op(), true).unwrap();
        replica.set_committed(replica.written());
        let (first, mut batch) = waiting(lab, &on("c"), doc! {});
        let token = resume(&batch);
        lab.insert(&ns("c"), &[doc! { "_id": 1 }]);
        let one = replica.written();
        lab.insert(&ns("c"), &[doc! { "_id": 2 }]);
        assert!(!is_ready(batch.awaits.as_mut().unwrap()), "not committed");
        lab.store.release_cursor(first.id);
        let looked = more(lab, &first, 9);
        assert_eq!((ids(&looked), resume(&looked)), (Vec::new(), token.clone()));
        batch = lab.more_waiting(&first, false);
        replica.set_committed(one);
        assert!(is_ready(batch.awaits.as_mut().unwrap()), "N1");
        let shown = lab.more_waiting(&first, true);
        assert_eq!(ids(&shown), [1]);
        assert!(resume(&shown) != token, "it has moved");
        replica.set_committed(replica.written());
        assert_eq!(ids(&more(lab, &first, 9)), [2]);
    });
}
