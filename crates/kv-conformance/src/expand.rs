//! The macros that make one test of each law.

/// Expands to a module with one `#[test]` for each law, the test `skipped_laws`, which prints the
/// missing capabilities, and the random runs against the model. The module's name is `conformance`
/// unless given.
///
/// The factory is an expression of type `&'static dyn kv::Factory` (such as `kv_lmdb::factory()`),
/// the options are an expression of type `kv::EngineOptions` (by default the engine's defaults).
/// Both may use names of the surrounding module. `seeds = 8` after the options changes the number
/// of random runs for an engine that is slow to open or to sync
/// ([`Subject::with_seeds`](crate::Subject::with_seeds)).
#[macro_export]
macro_rules! conformance_tests {
    ($factory:expr $(,)?) => {
        $crate::conformance_tests!(conformance, $factory, $crate::kv::EngineOptions::default());
    };
    ($module:ident, $factory:expr, $options:expr $(, seeds = $seeds:expr)? $(,)?) => {
        mod $module {
            #[allow(
                unused_imports,
                reason = "the expressions may need what stands outside"
            )]
            use super::*;

            fn subject() -> &'static $crate::Subject {
                static SUBJECT: ::std::sync::LazyLock<$crate::Subject> =
                    ::std::sync::LazyLock::new(|| {
                        $crate::Subject::new($factory, $options)$(.with_seeds($seeds))?
                    });
                &SUBJECT
            }

            #[test]
            fn skipped_laws() {
                $crate::print_skipped(subject());
            }

            $crate::__each_law!(__law_tests);

            mod random {
                fn run(part: u64) {
                    let (package, test) = (env!("CARGO_PKG_NAME"), module_path!());
                    $crate::random_runs(super::subject(), package, test, part);
                }

                #[test]
                fn part_0() {
                    run(0);
                }

                #[test]
                fn part_1() {
                    run(1);
                }

                #[test]
                fn part_2() {
                    run(2);
                }

                #[test]
                fn part_3() {
                    run(3);
                }
            }
        }
    };
}

/// Expands the list of laws to tests in the current module.
#[doc(hidden)]
#[macro_export]
macro_rules! __law_tests {
    ($($theme:ident { $($name:ident [$($need:ident),*])* })*) => {
        $(
            mod $theme {
                $(
                    #[test]
                    fn $name() {
                        let law = (stringify!($theme), stringify!($name));
                        $crate::run_law(super::subject(), law.0, law.1);
                    }
                )*
            }
        )*
    };
}
