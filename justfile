# Recipes for what is not in `./test`. `just --list` shows them; `cargo install just` installs the program.

# All tests, as CI runs them.
test:
    ./test

# Ten million random operations per kind against a model, with all suites of the library. Static sets are rebuilt for every change, so they get a million.
promises:
    MAYHAP_OPERATIONS=10000000 cargo test --release -p mayhap --all-features --test bloom --test counting --test dual --test scalable --test scalable_cuckoo --test cuckoo --test dleft --test quotient --test growing --test window --test fingerprints -- --nocapture
    MAYHAP_OPERATIONS=1000000 cargo test --release -p mayhap --all-features --test xor --test binary_fuse --test ribbon --test gcs -- --nocapture

# States in which a crash may leave the disk, each read again: ten million of the log alone, and eight million of the whole engine with its snapshots. Twenty minutes of two cores.
crash-states log="10000000" engine="8000000":
    MAYHAP_CRASH_STATES={{log}} cargo test --release -p mayhap-engine --test log_crashes -- --nocapture
    MAYHAP_CRASH_STATES={{engine}} cargo test --release -p mayhap-engine --test engine_crashes everything -- --nocapture

# Histories of names whose generations change, against a model of their members: the commands alone, and an engine with restarts; a hundredth of them in a host with a replica. Minutes.
generations histories="100000":
    MAYHAP_GENERATIONS={{histories}} cargo test --release -p mayhap-command --lib no_member_is_ever_denied -- --nocapture
    MAYHAP_GENERATIONS={{histories}} cargo test --release -p mayhap-engine --lib no_member_is_denied -- --nocapture
    MAYHAP_GENERATIONS=$(({{histories}} / 100)) cargo test -p mayhap-module --test in_a_host what_is_added_while -- --nocapture

# One flipped bit at each of so many places of a folder's log and snapshot: refused, naming file and place, or everything is what it was. Minutes.
flipped-bits bits="10000":
    MAYHAP_FLIPPED_BITS={{bits}} cargo test --release -p mayhap-engine --test flipped_bits -- --nocapture

# docs/accuracy.md: promised, expected and observed rates of every kind. Minutes.
accuracy:
    cargo run --release -p mayhap-bench -- accuracy

# docs/kinds.md: all kinds side by side, from their shapes and the newest record.
kinds:
    cargo run --release -p mayhap-bench -- kinds

# The table of figures in README.md, from the newest record of 10^6 items at 1 %.
readme:
    cargo run --release -p mayhap-bench -- readme

# docs/commands.md and the table of settings in docs/server.md, from the tables in the code.
manual:
    MAYHAP_WRITE_MANUAL=1 cargo test -p mayhap-server --test manual

# What clients can make the server hold, in full size: 1,000 unread replies of 1 MiB, 9,000 half requests and 6,200 slow HTTP connections for 30 s, 1,000 clients without a password. Minutes.
limits:
    ulimit -n 20000 && MAYHAP_LIMITS=long cargo test --release -p mayhap-cli --test serve_limits -- --nocapture --test-threads 1

# How long writers wait for snapshots (300 000 names, four values of 256 MiB), and what a restart takes. 4 GB of memory and of disk, minutes.
snapshots:
    MAYHAP_SNAPSHOTS=long cargo test --release -p mayhap-cli --test serve_snapshots -- --nocapture --test-threads 1

# A static filter of 10^8 items, on a machine with nothing else to do: its memory, and work for two cores. 1.2 GB, some seconds.
large:
    MAYHAP_LARGE_ITEMS=100000000 cargo test --release -p mayhap --all-features --test large_static -- --nocapture

# Us and the rivals in one run; `just bench 1e8 0.001`.
bench items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}}

# The same, kept under bench/record/.
record items="1e6" fpr="0.01":
    cargo run --release -p mayhap-bench -- filters --items {{items}} --fpr {{fpr}} --record

# Our server beside Debian's Redis in one run: server CPU per request and per item; `just bench-server 100000` asks a filter of 10^8 items.
bench-server thousand_items="1000":
    cargo build --release -p mayhap-cli
    cargo run --release -p mayhap-bench -- server --mayhap "${CARGO_TARGET_DIR:-target}/release/mayhap" --thousand-items {{thousand_items}} --redis-benchmark

# The module inside of Debian's Redis: CPU of its commands beside the same server's GETBIT, in one run; `just bench-module 100000` asks filters of 10^8 items.
bench-module thousand_items="1000":
    tools/libclang
    cargo build --release -p mayhap-module
    cargo run --release -p mayhap-bench -- server --module "${CARGO_TARGET_DIR:-target}/release/libmayhap_module.so" --thousand-items {{thousand_items}}

# The module's tests in more servers than ./test has: Redis 8 and Valkey 8, built from Debian's sources, beside Redis 7.0 and Valkey 9. Minutes.
hosts:
    tools/libclang
    eval "$(tools/real-programs)" && eval "$(tools/hosts)" && MAYHAP_REQUIRE_DEFRAG=1 cargo test -p mayhap-module --test in_a_host -- --nocapture

# One filter of so many items in 64 shards over a cluster of three masters and three replicas: speed, rate, spread, moving slots, a master that dies. 10^8 items take six minutes and 1 GB.
cluster items="100000000" backends="bf,mf":
    eval "$(tools/real-programs)" && MAYHAP_CLUSTER_ITEMS={{items}} MAYHAP_CLUSTER_BACKENDS={{backends}} cargo test --release -p mayhap-remote --test remote cluster -- --nocapture --test-threads 1

# What it costs that every change is kept: CPU of `everysec` beside `no`, changes a second with `always` beside the bare disk's syncs.
bench-durability:
    cargo build --release -p mayhap-cli
    cargo run --release -p mayhap-bench -- server --mayhap "${CARGO_TARGET_DIR:-target}/release/mayhap" --durability

# Our log beside crates that offer one: CPU of a record, and records a second that 50 threads wait for.
bench-logs:
    cargo run --release -p mayhap-bench -- logs

# The process is killed 250 times under eight writers: nothing that was acknowledged is lost. Minutes.
kills:
    MAYHAP_KILLS=250 cargo test --release -p mayhap-cli --test durable kill_9 -- --nocapture --test-threads 1

# The power is lost a hundred times (an ext4 in a file, stopped without writing what it has): nothing is lost, or the last second. Root, minutes.
power-losses:
    MAYHAP_POWER_LOSSES=100 cargo test --release -p mayhap-cli --test durable power_loss -- --nocapture --test-threads 1

# Golden files that are missing are written; those that are there are never touched.
golden:
    MAYHAP_WRITE_GOLDEN=1 cargo test -p mayhap --all-features --test golden
    MAYHAP_WRITE_GOLDEN=1 cargo test -p mayhap-engine --test log_golden

# Licences and sources of all dependencies; `cargo install cargo-deny` installs the program.
deny:
    cargo deny check licenses bans sources

# `mayhap build` and `check` against Debian's DCSO `bloom` on 10 million URLs: CPU, bytes, rates. 1 GB in `folder`, minutes.
dcso-race folder="/tmp/mayhap-race":
    cargo build --release -p mayhap-cli
    tools/dcso-race.py "${CARGO_TARGET_DIR:-target}/release/mayhap" {{folder}}

# A billion items from a pipe: time, memory, and whether the time it says is left is true. 1.3 GB in `folder`, minutes.
billion folder="/tmp/mayhap-billion":
    cargo build --release -p mayhap-cli
    tools/billion.py "${CARGO_TARGET_DIR:-target}/release/mayhap" {{folder}}

# `mayhap uniq` against huniq, `sort -u` and awk on ten million URLs, in one run: CPU, memory, the same lines. 1.5 GB of disk, minutes.
uniq-race lines="10000000" rounds="2":
    cargo build --release -p mayhap-cli
    cargo install --quiet huniq --version 2.7.0 --root "${CARGO_TARGET_DIR:-target}/rivals"
    tools/uniq-race.py "${CARGO_TARGET_DIR:-target}/release/mayhap" "${CARGO_TARGET_DIR:-target}/uniq-race" --lines {{lines}} --rounds {{rounds}} --huniq "${CARGO_TARGET_DIR:-target}/rivals/bin/huniq"

# A fuzz target (resp, commands, payloads, snapshot, folder, log, formats, settings, http) for so long, with the address sanitizer; installs g++.
fuzz target seconds="60":
    tools/fuzz {{target}} {{seconds}}

# All fuzz targets, each for so long.
fuzz-all seconds="600":
    tools/fuzz all {{seconds}}

# Tests in which threads meet, under the thread sanitizer (sets: filters, engine, log; all by default). Needs a nightly. Minutes.
race *sets:
    tools/race {{sets}}

# The library's unsafe code and atomic filters under miri. Needs a nightly. Minutes.
miri *filters:
    tools/miri {{filters}}

# Seeds of the fuzz targets that are missing are written; those that are there are never touched.
fuzz-seeds:
    MAYHAP_WRITE_SEEDS=1 cargo test -p mayhap-fuzz --test seeds

# Payloads, chunks, files and snapshots with changed fields and right checksums, loaded and used for so long, with new seeds every time.
mutate seconds="600":
    MAYHAP_MUTATE_SECS={{seconds}} cargo test --release -p mayhap-fuzz --test mutated -- --nocapture
