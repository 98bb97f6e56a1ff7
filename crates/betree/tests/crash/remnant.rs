//! What other times have left in the directory of an encrypted store.

use std::path::Path;

use sim::{Crash, Outcome, Profile};
use vfs::{Open, Site, Vfs};

use crate::rig::{DIRECTORY, Step, World};

const SITE: Site = Site("test.remnant");

/// A key file whose data file and log were moved away.
pub(crate) fn keys_alone(w: &mut World) -> Step {
    w.open()?;
    w.abandon();
    for (path, _) in w.vfs.files() {
        if !path.ends_with("keys.betree") {
            w.vfs.remove(SITE, &path).expect("nothing fails yet");
        }
    }
    settle(w);
    Ok(())
}

/// A store with a key file whose writing did not finish.
pub(crate) fn half_a_rotation(w: &mut World) -> Step {
    w.open()?;
    w.create("a")?;
    w.abandon();
    let path = Path::new(DIRECTORY).join("keys.betree.new");
    let how = Open {
        create: true,
        direct: false,
    };
    let file = w.vfs.open(SITE, &path, how).expect("nothing fails yet");
    file.write_at(SITE, b"half a key file", 0)
        .and_then(|()| file.sync(SITE))
        .expect("nothing fails yet");
    drop(file);
    settle(w);
    Ok(())
}

/// Make names durable, and forget the calls so far: those of tests are none of the engine.
fn settle(w: &mut World) {
    let directory = Path::new(DIRECTORY);
    w.vfs.sync_dir(SITE, directory).expect("nothing fails yet");
    w.vfs = w.vfs.image(Crash {
        profile: Profile::Atomic512,
        outcome: Outcome::Random,
        seed: 1,
    });
}
