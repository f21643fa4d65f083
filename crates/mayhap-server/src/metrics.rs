//! `/metrics` for Prometheus. All figures are sums: the page is as long for a million filters as for one.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use mayhap_command::table;
use mayhap_engine::log::State;

use crate::process::Process;
use crate::shared::Shared;

/// A page of metrics while it is written.
struct Page(String);

impl Page {
    /// Writes the help and the type of the metric that follows.
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn put(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if index == 0 { '{' } else { ',' });
        }
        let end = if labels.is_empty() { " " } else { "} " };
        let _ = writeln!(self.0, "{end}{value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.about(name, kind, help);
        self.put(name, &[], value);
    }
}

/// Returns the whole page.
pub(crate) fn page(shared: &Shared) -> String {
    let mut page = Page(String::with_capacity(8 << 10));
    let (engine, wire, process) = (shared.engine().totals(), shared.totals(), Process::now());
    page.about("mayhap_build_info", "gauge", "Always 1; the version is the label.");
    page.put("mayhap_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let uptime = shared.started().elapsed().as_secs_f64();
    page.one(
        "mayhap_uptime_seconds",
        "gauge",
        "Seconds since the server started.",
        format_args!("{uptime:.3}"),
    );
    page.one(
        "mayhap_ready",
        "gauge",
        "1 if the server is ready, 0 if not; GET /ready lists the reasons.",
        u8::from(reasons(shared).is_empty()),
    );

    page.about("mayhap_filters", "gauge", "Number of names that hold a value, by type.");
    for of in &engine.by_type {
        page.put("mayhap_filters", &[("type", of.type_name)], of.names);
    }
    page.about("mayhap_filters_bytes", "gauge", "Memory of all values in bytes, by type.");
    for of in &engine.by_type {
        page.put("mayhap_filters_bytes", &[("type", of.type_name)], of.memory_bytes);
    }
    page.one(
        "mayhap_lost_names",
        "gauge",
        "Number of names whose data is lost; they answer NOTREADY until they are created again or deleted.",
        engine.lost(),
    );
    page.one(
        "mayhap_unknown_losses",
        "gauge",
        "1 if names are lost and it is unknown which; every name that does not exist answers NOTREADY.",
        u8::from(shared.engine().has_unknown_losses()),
    );
    page.one("mayhap_items", "gauge", "Items in all filters, as the filters count them.", engine.items);
    let overfull = shared.overfull();
    page.about(
        "mayhap_filters_over_capacity",
        "gauge",
        "Number of filters whose expected false-positive rate is above their target (over: target), \
         ten times their target (ten_times_target) or one half (half).",
    );
    let over = [
        ("target", overfull.over_target),
        ("ten_times_target", overfull.over_tenfold),
        ("half", overfull.over_half),
    ];
    for (over, filters) in over {
        page.put("mayhap_filters_over_capacity", &[("over", over)], filters);
    }
    page.one(
        "mayhap_worst_expected_fpr",
        "gauge",
        "Highest expected false-positive rate of any filter.",
        format_args!("{:.6}", overfull.worst_expected_fpr),
    );
    page.one("mayhap_expiring_filters", "gauge", "Number of names with an expiry time.", engine.expiring);
    page.one(
        "mayhap_expired_filters_total",
        "counter",
        "Number of names that have expired since the start.",
        engine.expired,
    );
    page.about(
        "mayhap_answers_total",
        "counter",
        "Items looked up, by answer: no, or mayhap (which means maybe).",
    );
    page.put("mayhap_answers_total", &[("answer", "mayhap")], engine.hits);
    page.put("mayhap_answers_total", &[("answer", "no")], engine.misses);

    page.one(
        "mayhap_memory_used_bytes",
        "gauge",
        "Memory of all filters and their names in bytes.",
        engine.memory_bytes,
    );
    let limit = shared.engine().budget().limit();
    page.one(
        "mayhap_memory_limit_bytes",
        "gauge",
        "Limit for mayhap_memory_used_bytes (max-memory); 0: no limit.",
        limit,
    );
    page.one(
        "process_resident_memory_bytes",
        "gauge",
        "Resident memory of the process in bytes.",
        process.resident_bytes,
    );
    let cpu = (process.user + process.system).as_secs_f64();
    page.one(
        "process_cpu_seconds_total",
        "counter",
        "User and system CPU time of the process in seconds.",
        format_args!("{cpu:.2}"),
    );

    page.one("mayhap_connected_clients", "gauge", "Open Redis connections.", shared.clients().len());
    page.one("mayhap_http_connections", "gauge", "Open HTTP connections.", shared.clients().http());
    page.one(
        "mayhap_connections_rejected_total",
        "counter",
        "Connections refused because max-clients or http-max-clients was reached.",
        shared.clients().rejected(),
    );
    page.about(
        "mayhap_connections_closed_total",
        "counter",
        "Connections closed by the server, by reason: time (a timeout) or memory (max-buffers).",
    );
    for (why, count) in [("time", shared.clients().overdue()), ("memory", shared.clients().overfull())] {
        page.put("mayhap_connections_closed_total", &[("too_much", why)], count);
    }
    page.one(
        "mayhap_clients_bytes",
        "gauge",
        "Memory of all client buffers in bytes: partial requests, transactions, unread replies.",
        shared.clients().held_bytes(),
    );
    page.one(
        "mayhap_connections_total",
        "counter",
        "Connections accepted since the start.",
        shared.clients().ever(),
    );
    page.one("mayhap_requests_total", "counter", "Requests answered.", wire.requests);
    page.one(
        "mayhap_requests_refused_total",
        "counter",
        "Requests refused before they ran: unknown command, wrong number of arguments, not authenticated or not permitted.",
        wire.refused,
    );
    page.one("mayhap_received_bytes_total", "counter", "Bytes received from Redis clients.", wire.read_bytes);
    page.one("mayhap_sent_bytes_total", "counter", "Bytes sent to Redis clients.", wire.written_bytes);

    commands(shared, &mut page);

    let (saving, last) = (shared.saving(), shared.saving().last());
    page.one("mayhap_snapshots_total", "counter", "Snapshots written.", saving.saves());
    page.one(
        "mayhap_snapshot_in_progress",
        "gauge",
        "1 while a snapshot is being written.",
        u8::from(saving.is_under_way()),
    );
    page.one(
        "mayhap_snapshot_worked",
        "gauge",
        "1 if the last snapshot was written, 0 if it failed.",
        u8::from(last.worked),
    );
    page.one(
        "mayhap_snapshot_time_seconds",
        "gauge",
        "Unix time of the last snapshot, or of the start if there was none.",
        last.unix_secs,
    );
    page.one("mayhap_snapshot_bytes", "gauge", "Size of the last snapshot in bytes.", last.bytes);
    let took = last.took.unwrap_or_default().as_secs_f64();
    page.one(
        "mayhap_snapshot_duration_seconds",
        "gauge",
        "Seconds it took to write the last snapshot.",
        format_args!("{took:.3}"),
    );
    let changes = saving.changes(shared.engine());
    page.one(
        "mayhap_unsaved_changes",
        "gauge",
        "Changes since the last snapshot; they are in the log.",
        changes,
    );
    if let Some(log) = shared.engine().log() {
        let figures = log.figures();
        let state = log.state();
        page.one(
            "mayhap_log_writable",
            "gauge",
            "1 if changes are accepted; 0 if the disk is full or failed and changes are refused.",
            u8::from(state == State::Writing),
        );
        page.one("mayhap_log_bytes", "gauge", "Size of all log files in bytes.", figures.bytes);
        page.one(
            "mayhap_log_records_total",
            "counter",
            "Changes logged since the data folder was created.",
            figures.next,
        );
        page.one(
            "mayhap_log_unsynced_records",
            "gauge",
            "Logged changes that are not yet safe from a power loss.",
            figures.next - figures.synced,
        );
        page.one(
            "mayhap_log_pending_bytes",
            "gauge",
            "Bytes of logged changes not yet written to the log file.",
            figures.pending_bytes,
        );
        page.one("mayhap_log_syncs_total", "counter", "Syncs of the log since the start.", figures.syncs);
        let longest = figures.longest_sync_micros as f64 / 1e6;
        page.one(
            "mayhap_log_longest_sync_seconds",
            "gauge",
            "Duration of the longest sync of the log in seconds.",
            format_args!("{longest:.6}"),
        );
        page.one(
            "mayhap_log_delayed_total",
            "counter",
            "Changes that had to wait for a slow sync (Redis: aof_delayed_fsync).",
            figures.delayed,
        );
        page.one(
            "mayhap_log_rotations_failed_total",
            "counter",
            "Failed attempts to begin a new log file; the log continued in the old one.",
            figures.rotations_failed,
        );
    }
    page.one("mayhap_slow_log_entries", "gauge", "Number of requests in SLOWLOG.", shared.slow_log().len());
    page.0
}

/// Writes calls by command, and time by command family.
fn commands(shared: &Shared, page: &mut Page) {
    let totals = shared.engine().statistics().commands();
    page.about("mayhap_commands_total", "counter", "Calls, by command and outcome: ok, failed (replied with an error), rejected (refused before it ran).");
    for of in &totals {
        let family = table::find(of.command.as_bytes()).map_or("", |row| row.family.name());
        let outcomes =
            [("ok", of.calls.saturating_sub(of.failed)), ("failed", of.failed), ("rejected", of.rejected)];
        for (outcome, calls) in outcomes.into_iter().filter(|(outcome, calls)| *outcome == "ok" || *calls > 0)
        {
            let labels = [("command", of.command), ("family", family), ("outcome", outcome)];
            page.put("mayhap_commands_total", &labels, calls);
        }
    }
    let mut families: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for of in &totals {
        let family = table::find(of.command.as_bytes()).map_or("", |row| row.family.name());
        let sum = families.entry(family).or_default();
        *sum = (sum.0 + of.calls, sum.1 + of.nanos);
    }
    page.about("mayhap_command_duration_seconds", "summary", "Time spent in commands, by command family.");
    for (family, (calls, nanos)) in families {
        let seconds = nanos as f64 / 1e9;
        page.put("mayhap_command_duration_seconds_sum", &[("family", family)], format_args!("{seconds:.9}"));
        page.put("mayhap_command_duration_seconds_count", &[("family", family)], calls);
    }
}

/// Returns the reasons why the server is not ready. It is ready if there are none.
pub(crate) fn reasons(shared: &Shared) -> Vec<&'static str> {
    let mut reasons = Vec::new();
    if shared.is_loading() {
        reasons.push("loading");
    }
    if shared.is_stopping() {
        reasons.push("stopping");
    }
    match shared.engine().log().map(|log| log.state()) {
        Some(State::NoSpace) => reasons.push("disk full: changes are refused"),
        Some(State::Failed) => reasons.push("disk failed: changes are refused until a restart"),
        _ => {}
    }
    if !shared.saving().last().worked {
        reasons.push("snapshots fail");
    }
    reasons
}
