//! The background threads themselves: they start, wait, wake and stop.

use betree::Durability;

use crate::books::{Books, join, tiny};
use crate::commits::drops_everything;
use crate::explore::explore;

#[test]
fn background_threads_do_the_work_and_stop() {
    explore(100, || {
        let options = tiny().with_threads(2).with_checkpoint_bytes(4 << 10);
        let books = Books::new(2, 200, &options);
        join([
            books.writer(0, 3, Durability::Group),
            books.writer(1, 3, Durability::Interval),
        ]);
        books.freeze();
        books.audit(&books.db.begin_read().unwrap());
        let image = books.disk.image(drops_everything());
        drop(books.recover(&image, &tiny(), &books.acknowledged()));
    });
}
