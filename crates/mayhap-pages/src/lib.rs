//! Runs the Rust code of the README and of the pages in `docs` as documentation tests.
//!
//! A crate of its own, because these pages are in no package: a published crate must not include them. Each published crate
//! runs the code of its own `README.md`.

/// The pages.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;
    #[doc = include_str!("../../../docs/filters.md")]
    struct Filters;
    #[doc = include_str!("../../../docs/formats.md")]
    struct Formats;
}
