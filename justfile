# Recipes for what is not in `./test`. `just --list` shows them; `cargo install just` installs the program.

# All tests, as CI runs them.
test:
    ./test

# Ten million random operations per kind against a model, with all suites of the library. Static sets are rebuilt for every change, so they get a million.
promises:
    MAYHAP_OPERATIONS=10000000 cargo test --release -p mayhap --all-features --test bloom --test counting --test dual --test scalable --test scalable_cuckoo --test cuckoo --test dleft --test quotient --test growing --test window -- --nocapture
    MAYHAP_OPERATIONS=1000000 cargo test --release -p mayhap --all-features --test xor --test binary_fuse --test ribbon --test gcs -- --nocapture

# docs/accuracy.md: promised, expected and observed rates of every kind. Minutes.
accuracy:
    cargo run --release -p mayhap-bench -- accuracy

# docs/kinds.md: all kinds side by side, from their shapes and the newest record.
kinds:
    cargo run --release -p mayhap-bench -- kinds

# A static filter of 10^8 items, on a machine with nothing else to do: its memory, and work for two cores. 1.2 GB, some seconds.
large:
    MAYHAP_LARGE_ITEMS=100000000 cargo test --release -p mayhap --all-features --test large_static -- --nocapture

# Us and the rivals in one run; `just bench 1e8 0.001`.
bench items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}}

# The same, kept under bench/record/.
record items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}} --record

# Golden files that are missing are written; those that are there are never touched.
golden:
    MAYHAP_WRITE_GOLDEN=1 cargo test -p mayhap --all-features --test golden

# Licences and sources of all dependencies; `cargo install cargo-deny` installs the program.
deny:
    cargo deny check licenses bans sources
