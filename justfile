# Slow suites, measurements and generators that are not in `./test`. `just --list` shows them; `cargo install just` installs the program.

# All tests, as CI runs them.
test:
    ./test

# Runs ten million random operations per kind against a model. Static sets are rebuilt for every change, so they get one million.
promises:
    MAYHAP_OPERATIONS=10000000 cargo test --release -p mayhap --all-features --test bloom --test counting --test dual --test scalable --test scalable_cuckoo --test cuckoo --test dleft --test quotient --test growing --test window --test fingerprints -- --nocapture
    MAYHAP_OPERATIONS=1000000 cargo test --release -p mayhap --all-features --test xor_fuse --test ribbon --test gcs -- --nocapture

# Simulates disk states after a crash and recovers each: ten million of the log alone, eight million of the engine with snapshots. 20 minutes on two cores.
crash-states log="10000000" engine="8000000":
    MAYHAP_CRASH_STATES={{log}} cargo test --release -p mayhap-engine --test log_crashes -- --nocapture
    MAYHAP_CRASH_STATES={{engine}} cargo test --release -p mayhap-engine --test engine_crashes acknowledged -- --nocapture

# Runs random histories of names whose generations change, against a model: the commands alone, an engine with restarts, and 1 % of them in a host with a replica. Minutes.
generations histories="100000":
    MAYHAP_GENERATIONS={{histories}} cargo test --release -p mayhap-command --lib no_false_negative_during -- --nocapture
    MAYHAP_GENERATIONS={{histories}} cargo test --release -p mayhap-engine --lib no_false_negative_after -- --nocapture
    MAYHAP_GENERATIONS=$(({{histories}} / 100)) cargo test -p mayhap-module --test in_a_host items_added_during -- --nocapture

# Flips one bit at each of N places of a folder's log and snapshot. The start must fail with file and offset, or all data must be intact. Minutes.
flipped-bits bits="10000":
    MAYHAP_FLIPPED_BITS={{bits}} cargo test --release -p mayhap-engine --test flipped_bits -- --nocapture

# Writes docs/accuracy.md: promised, expected and observed rates of every kind. Minutes.
accuracy:
    cargo run --release -p mayhap-bench -- accuracy

# Writes docs/kinds.md: all kinds compared, from their shapes and the newest record.
kinds:
    cargo run --release -p mayhap-bench -- kinds

# Writes the table of figures in README.md and README.zh-CN.md from the newest record of 10^6 items at 1 %.
readme:
    cargo run --release -p mayhap-bench -- readme

# Measures every hash function (speed, avalanche) and writes docs/hash-functions.md. Half a minute.
hashes:
    cargo run --release -p mayhap-bench -- hashes

# Writes docs/commands.md and the table of settings in docs/server.md from the tables in the code.
manual:
    MAYHAP_WRITE_MANUAL=1 cargo test -p mayhap-server --test manual

# Tests the server's limits at full size: 1,000 unread replies of 1 MiB, 9,000 partial requests and 6,200 slow HTTP connections for 30 s, 1,000 unauthenticated clients. Minutes.
limits:
    ulimit -n 20000 && MAYHAP_LIMITS=long cargo test --release -p mayhap-cli --test serve_limits -- --nocapture --test-threads 1

# Measures how long snapshots delay writers (300,000 names, four values of 256 MiB) and how long a restart takes. 4 GB of memory and disk, minutes.
snapshots:
    MAYHAP_SNAPSHOTS=long cargo test --release -p mayhap-cli --test serve_snapshots -- --nocapture --test-threads 1

# Builds a static filter of 10^8 items on an idle machine and checks its memory and parallel speed. 1.2 GB, seconds.
large:
    MAYHAP_LARGE_ITEMS=100000000 cargo test --release -p mayhap --all-features --test large_static -- --nocapture

# Compares our filters with other crates in one run: `just bench 1e8 0.001`.
bench items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}}

# The same, stored in bench/record/.
record items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}} --record

# Compares our server with Debian's Redis in one run: CPU per request and per item. `just bench-server 100000` uses a filter of 10^8 items.
bench-server thousand_items="1000":
    cargo build --release -p mayhap-cli
    cargo run --release -p mayhap-bench -- server --mayhap "${CARGO_TARGET_DIR:-target}/release/mayhap" --thousand-items {{thousand_items}} --redis-benchmark

# Measures the module in Debian's Redis: CPU of its commands compared with GETBIT in the same run. `just bench-module 100000` uses filters of 10^8 items.
bench-module thousand_items="1000":
    tools/libclang
    cargo build --release -p mayhap-module
    cargo run --release -p mayhap-bench -- server --module "${CARGO_TARGET_DIR:-target}/release/libmayhap_module.so" --thousand-items {{thousand_items}}

# Runs the module's tests in more servers than ./test: Redis 8 and Valkey 8, built from Debian's sources, with Redis 7.0 and Valkey 9. Minutes.
hosts:
    tools/libclang
    eval "$(tools/real-programs)" && eval "$(tools/hosts)" && MAYHAP_REQUIRE_DEFRAG=1 cargo test -p mayhap-module --test in_a_host -- --nocapture

# Tests one filter of N items in 64 shards over a cluster of three masters and three replicas: speed, rate, spread, moving slots, a master that dies. 10^8 items take six minutes and 1 GB.
cluster items="100000000" backends="bf,mf":
    eval "$(tools/real-programs)" && MAYHAP_CLUSTER_ITEMS={{items}} MAYHAP_CLUSTER_BACKENDS={{backends}} cargo test --release -p mayhap-remote --test remote cluster -- --nocapture --test-threads 1

# Measures the cost of durability: CPU of `everysec` compared with `no`, changes per second with `always` compared with the disk's syncs.
bench-durability:
    cargo build --release -p mayhap-cli
    cargo run --release -p mayhap-bench -- server --mayhap "${CARGO_TARGET_DIR:-target}/release/mayhap" --durability

# Compares our log with crates that offer one: CPU per record, and records per second with 50 waiting threads.
bench-logs:
    cargo run --release -p mayhap-bench -- logs

# Kills the server 250 times under eight writers. No acknowledged write may be lost. Minutes.
kills:
    MAYHAP_KILLS=250 cargo test --release -p mayhap-cli --test durable kill_9 -- --nocapture --test-threads 1

# Simulates 100 power failures (an ext4 image, shut down without a sync). Nothing may be lost, with `everysec` at most the last second. Root, minutes.
power-losses:
    MAYHAP_POWER_LOSSES=100 cargo test --release -p mayhap-cli --test durable power_loss -- --nocapture --test-threads 1

# Writes missing golden files. Existing ones are never changed.
golden:
    MAYHAP_WRITE_GOLDEN=1 cargo test -p mayhap --all-features --test golden
    MAYHAP_WRITE_GOLDEN=1 cargo test -p mayhap-engine --test log_golden

# Packages all published crates as for crates.io, compiles them from the archives and runs their documentation tests. Minutes.
packages:
    MAYHAP_PACKAGES=all cargo test -p mayhap-testkit --test packages -- --nocapture

# Compiles all crates but server and program with the oldest Rust, and the library for aarch64 and Windows. Minutes.
portable:
    tools/portable all

# Checks licences and sources of all dependencies; `cargo install cargo-deny` installs the program, which takes minutes. `./test` has a short form.
deny:
    cargo deny check licenses bans sources

# Compares `mayhap build` and `check` with Debian's DCSO `bloom` on 10 million URLs: CPU, bytes, rates. 1 GB in `folder`, minutes.
dcso-race folder="/tmp/mayhap-race":
    cargo build --release -p mayhap-cli
    tools/dcso-race.py "${CARGO_TARGET_DIR:-target}/release/mayhap" {{folder}}

# Builds a filter of a billion items from a pipe: time, memory, and the accuracy of the progress estimate. 1.3 GB in `folder`, minutes.
billion folder="/tmp/mayhap-billion":
    cargo build --release -p mayhap-cli
    tools/billion.py "${CARGO_TARGET_DIR:-target}/release/mayhap" {{folder}}

# Compares `mayhap uniq` with huniq, `sort -u` and awk on ten million URLs in one run: CPU, memory, equal output. 1.5 GB of disk, minutes.
uniq-race lines="10000000" rounds="2":
    cargo build --release -p mayhap-cli
    cargo install --quiet huniq --version 2.7.0 --root "${CARGO_TARGET_DIR:-target}/rivals"
    tools/uniq-race.py "${CARGO_TARGET_DIR:-target}/release/mayhap" "${CARGO_TARGET_DIR:-target}/uniq-race" --lines {{lines}} --rounds {{rounds}} --huniq "${CARGO_TARGET_DIR:-target}/rivals/bin/huniq"

# Runs a fuzz target (resp, commands, payloads, snapshot, folder, log, formats, settings, http) for N seconds with the address sanitizer; installs g++.
fuzz target seconds="60":
    tools/fuzz {{target}} {{seconds}}

# Runs all fuzz targets, each for N seconds.
fuzz-all seconds="600":
    tools/fuzz all {{seconds}}

# Runs the concurrent tests under the thread sanitizer (sets: filters, engine, log; all by default). Needs a nightly. Minutes.
race *sets:
    tools/race {{sets}}

# Runs the library's unsafe code and atomic filters under miri. Needs a nightly. Minutes.
miri *filters:
    tools/miri {{filters}}

# Writes missing seeds of the fuzz targets. Existing ones are never changed.
fuzz-seeds:
    MAYHAP_WRITE_SEEDS=1 cargo test -p mayhap-fuzz --test seeds

# Loads and uses payloads, chunks, files and snapshots with changed fields and correct checksums for N seconds, with new seeds every time.
mutate seconds="600":
    MAYHAP_MUTATE_SECS={{seconds}} cargo test --release -p mayhap-fuzz --test mutated -- --nocapture
