//! Syncs of the log that the writes of many connections share.
//!
//! One of them leads: it syncs, for itself and for all that wait by then, then passes the lead to
//! one of those that came meanwhile. Those that wait hold no thread. One that was passed the lead
//! first lets the other ready connections of its thread run: they send the replies of the last
//! sync, and commit writes that the next sync then covers as well.
//!
//! - Y1. A sync begins after every write that it answers has committed.
//! - Y2. While any write waits, one leads or is about to: a lead that is dropped passes on.

use std::sync::Arc;

use query::{Code, Error, Result};
use stdx::sync::Mutex;
use tokio::sync::oneshot::{self, Sender};

#[derive(Clone, Default)]
pub(crate) struct Syncs(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Whether one leads.
    led: bool,
    waiting: Vec<Sender<Word>>,
}

/// What one that waits learns.
enum Word {
    /// The outcome of a sync that began after it had committed.
    Done(Result<()>),
    Lead(Lead),
}

/// The right to sync. Dropping it passes it on (Y2), unless it is empty.
struct Lead(Option<Syncs>);

impl Syncs {
    /// Wait until everything that was committed before this call is durable. `sync` makes it so; it
    /// blocks, and is called if this one leads.
    ///
    /// # Errors
    /// Those of `sync`.
    pub(crate) async fn wait(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let (send, receive) = oneshot::channel();
        let lead = {
            let mut state = self.0.lock();
            match std::mem::replace(&mut state.led, true) {
                false => Some(Lead(Some(self.clone()))),
                true => {
                    state.waiting.push(send);
                    None
                }
            }
        };
        let lead = match lead {
            Some(lead) => lead,
            None => match receive.await {
                Ok(Word::Done(outcome)) => return outcome,
                Ok(Word::Lead(lead)) => {
                    tokio::task::yield_now().await;
                    lead
                }
                Err(_) => {
                    let message = "a sync of the log failed inside the server";
                    return Err(Error::new(Code::INTERNAL_ERROR, message));
                }
            },
        };
        // Y1: they have committed.
        let followers = std::mem::take(&mut self.0.lock().waiting);
        let outcome = sync();
        for follower in followers {
            // One whose connection ended does not listen.
            let _: std::result::Result<(), Word> = follower.send(Word::Done(outcome.clone()));
        }
        drop(lead);
        outcome
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        let Some(syncs) = self.0.take() else { return };
        loop {
            let next = {
                let mut state = syncs.0.lock();
                let next = state.waiting.pop();
                state.led = next.is_some();
                next
            };
            let Some(next) = next else { return };
            match next.send(Word::Lead(Lead(Some(syncs.clone())))) {
                Err(Word::Lead(mut unread)) => {
                    // Its connection has ended. This lead stays the only one.
                    unread.0 = None;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use tokio::runtime::Builder;

    use super::*;

    /// Y1, and that syncs are shared.
    #[test]
    fn a_sync_covers_all_that_came_before_it() {
        let runtime = Builder::new_multi_thread().build().unwrap();
        let (committed, durable) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (syncs, count) = (Syncs::default(), Arc::new(AtomicU64::new(0)));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (committed, durable) = (Arc::clone(&committed), Arc::clone(&durable));
                let (syncs, count) = (syncs.clone(), Arc::clone(&count));
                runtime.spawn(async move {
                    for _ in 0..200 {
                        let own = committed.fetch_add(1, Ordering::SeqCst) + 1;
                        let sync = || {
                            let upto = committed.load(Ordering::SeqCst);
                            count.fetch_add(1, Ordering::SeqCst);
                            std::thread::yield_now();
                            durable.fetch_max(upto, Ordering::SeqCst);
                            Ok(())
                        };
                        syncs.wait(sync).await.unwrap();
                        assert!(own <= durable.load(Ordering::SeqCst), "Y1");
                    }
                })
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        let state = syncs.0.lock();
        assert!(!state.led && state.waiting.is_empty());
        assert!(count.load(Ordering::SeqCst) <= 16 * 200);
    }

    #[test]
    fn a_lead_that_is_passed_on_waits_for_the_ready_ones() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (syncs, count) = (Syncs::default(), Arc::new(AtomicU64::new(0)));
            let begin = || {
                let (syncs, count) = (syncs.clone(), Arc::clone(&count));
                tokio::spawn(async move {
                    let sync = || {
                        count.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    };
                    syncs.wait(sync).await
                })
            };
            let lead = Lead(Some(syncs.clone()));
            syncs.0.lock().led = true;
            let first = begin();
            tokio::task::yield_now().await;
            drop(lead);
            let second = begin();
            first.await.unwrap().unwrap();
            second.await.unwrap().unwrap();
            assert_eq!(count.load(Ordering::SeqCst), 1, "they share a sync");
        });
    }

    /// Y2.
    #[test]
    fn a_lead_that_is_dropped_passes_on() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let syncs = Syncs::default();
            let lead = Lead(Some(syncs.clone()));
            syncs.0.lock().led = true;
            let ok = || Ok(());
            let failing = || Err(Error::new(Code::INTERNAL_ERROR, "no disk"));
            let mut first = Box::pin(syncs.wait(ok));
            let mut second = Box::pin(syncs.wait(failing));
            tokio::select! {
                biased;
                _ = &mut first => panic!("another leads"),
                _ = &mut second => panic!("another leads"),
                () = std::future::ready(()) => {}
            }
            drop(lead);
            // The second got the lead, and ends without taking it.
            drop(second);
            first.await.unwrap();
            assert!(!syncs.0.lock().led);
            syncs.wait(failing).await.unwrap_err();
            syncs.wait(ok).await.unwrap();
        });
    }
}
