//! `/metrics` for Prometheus. Everything is summed up: a million filters are as many lines as one.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use mayhap_command::table;
use mayhap_engine::log::State;

use crate::process::Process;
use crate::shared::Shared;

/// A page of metrics that is being written.
struct Page(String);

impl Page {
    /// What the next lines are about.
    fn about(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to memory does not fail.
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

/// The whole page.
pub(crate) fn page(shared: &Shared) -> String {
    let mut page = Page(String::with_capacity(8 << 10));
    let (engine, wire, process) = (shared.engine().totals(), shared.totals(), Process::now());
    page.about("mayhap_build_info", "gauge", "The version, as a label.");
    page.put("mayhap_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let uptime = shared.started().elapsed().as_secs_f64();
    page.one("mayhap_uptime_seconds", "gauge", "Seconds since the start.", format_args!("{uptime:.3}"));
    page.one("mayhap_ready", "gauge", "1 if requests are served.", u8::from(reasons(shared).is_empty()));

    page.about("mayhap_filters", "gauge", "Names that hold something, by type.");
    for of in &engine.by_type {
        page.put("mayhap_filters", &[("type", of.type_name)], of.names);
    }
    page.about("mayhap_filters_bytes", "gauge", "Bytes they take, by type.");
    for of in &engine.by_type {
        page.put("mayhap_filters_bytes", &[("type", of.type_name)], of.memory_bytes);
    }
    page.one(
        "mayhap_lost_names",
        "gauge",
        "Names of which data is lost: they answer not ready.",
        engine.lost(),
    );
    page.one(
        "mayhap_unknown_losses",
        "gauge",
        "1 if names are lost and it is not known which: names that are not there answer not ready.",
        u8::from(shared.engine().has_unknown_losses()),
    );
    page.one("mayhap_items", "gauge", "Items in all filters, by their own count.", engine.items);
    let overfull = shared.overfull();
    page.about(
        "mayhap_filters_over_capacity",
        "gauge",
        "Filters whose expected false-positive rate is past their target, by how far.",
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
        "The highest expected false-positive rate of any filter.",
        format_args!("{:.6}", overfull.worst_expected_fpr),
    );
    page.one("mayhap_expiring_filters", "gauge", "Names that expire some time.", engine.expiring);
    page.one("mayhap_expired_filters_total", "counter", "Names that expired.", engine.expired);
    page.about("mayhap_answers_total", "counter", "Items asked about, by answer.");
    page.put("mayhap_answers_total", &[("answer", "mayhap")], engine.hits);
    page.put("mayhap_answers_total", &[("answer", "no")], engine.misses);

    page.one(
        "mayhap_memory_used_bytes",
        "gauge",
        "Bytes of all filters and their names.",
        engine.memory_bytes,
    );
    let limit = shared.engine().budget().limit();
    page.one("mayhap_memory_limit_bytes", "gauge", "Bytes they may take; 0: any amount.", limit);
    page.one("process_resident_memory_bytes", "gauge", "Memory of the process.", process.resident_bytes);
    let cpu = (process.user + process.system).as_secs_f64();
    page.one("process_cpu_seconds_total", "counter", "Time on a processor.", format_args!("{cpu:.2}"));

    page.one("mayhap_connected_clients", "gauge", "Connections.", shared.clients().len());
    page.one("mayhap_http_connections", "gauge", "HTTP connections.", shared.clients().http());
    page.one(
        "mayhap_connections_rejected_total",
        "counter",
        "Connections there was no room for.",
        shared.clients().rejected(),
    );
    page.about(
        "mayhap_connections_closed_total",
        "counter",
        "Connections that were closed, by what was too much.",
    );
    for (why, count) in [("time", shared.clients().overdue()), ("memory", shared.clients().overfull())] {
        page.put("mayhap_connections_closed_total", &[("too_much", why)], count);
    }
    page.one(
        "mayhap_clients_bytes",
        "gauge",
        "Bytes kept for connections: half requests, transactions, unread replies.",
        shared.clients().held_bytes(),
    );
    page.one("mayhap_connections_total", "counter", "Connections so far.", shared.clients().ever());
    page.one("mayhap_requests_total", "counter", "Requests answered.", wire.requests);
    page.one(
        "mayhap_requests_refused_total",
        "counter",
        "Requests that were none, or a stranger's.",
        wire.refused,
    );
    page.one("mayhap_received_bytes_total", "counter", "Bytes received.", wire.read_bytes);
    page.one("mayhap_sent_bytes_total", "counter", "Bytes sent.", wire.written_bytes);

    commands(shared, &mut page);

    let (saving, last) = (shared.saving(), shared.saving().last());
    page.one("mayhap_snapshots_total", "counter", "Snapshots written.", saving.saves());
    page.one(
        "mayhap_snapshot_in_progress",
        "gauge",
        "1 while one is written.",
        u8::from(saving.is_under_way()),
    );
    page.one("mayhap_snapshot_worked", "gauge", "0 if the last one failed.", u8::from(last.worked));
    page.one("mayhap_snapshot_time_seconds", "gauge", "When the last one was written.", last.unix_secs);
    page.one("mayhap_snapshot_bytes", "gauge", "Bytes of the last one.", last.bytes);
    let took = last.took.unwrap_or_default().as_secs_f64();
    page.one("mayhap_snapshot_duration_seconds", "gauge", "How long it took.", format_args!("{took:.3}"));
    let changes = saving.changes(shared.engine());
    page.one("mayhap_unsaved_changes", "gauge", "Changes since then.", changes);
    if let Some(log) = shared.engine().log() {
        let figures = log.figures();
        let state = log.state();
        page.one(
            "mayhap_log_writable",
            "gauge",
            "0 if changes are refused: disk full or failed.",
            u8::from(state == State::Writing),
        );
        page.one("mayhap_log_bytes", "gauge", "Bytes of the log's files.", figures.bytes);
        page.one("mayhap_log_records_total", "counter", "Changes logged, ever.", figures.next);
        page.one(
            "mayhap_log_unsynced_records",
            "gauge",
            "Of those, not yet safe from a power loss.",
            figures.next - figures.synced,
        );
        page.one(
            "mayhap_log_pending_bytes",
            "gauge",
            "Bytes not yet handed to the system.",
            figures.pending_bytes,
        );
        page.one("mayhap_log_syncs_total", "counter", "Syncs since the start.", figures.syncs);
        let longest = figures.longest_sync_micros as f64 / 1e6;
        page.one(
            "mayhap_log_longest_sync_seconds",
            "gauge",
            "How long the longest took.",
            format_args!("{longest:.6}"),
        );
        page.one(
            "mayhap_log_delayed_total",
            "counter",
            "Changes that waited for a slow sync.",
            figures.delayed,
        );
        page.one(
            "mayhap_log_rotations_failed_total",
            "counter",
            "Files that could not be begun; the one before went on.",
            figures.rotations_failed,
        );
    }
    page.one("mayhap_slow_log_entries", "gauge", "Requests in the slow log.", shared.slow_log().len());
    page.0
}

/// Calls by command, and time by family.
fn commands(shared: &Shared, page: &mut Page) {
    let totals = shared.engine().statistics().commands();
    page.about("mayhap_commands_total", "counter", "Calls, by command and outcome.");
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
    page.about("mayhap_command_duration_seconds", "summary", "How long calls took, by family.");
    for (family, (calls, nanos)) in families {
        let seconds = nanos as f64 / 1e9;
        page.put("mayhap_command_duration_seconds_sum", &[("family", family)], format_args!("{seconds:.9}"));
        page.put("mayhap_command_duration_seconds_count", &[("family", family)], calls);
    }
}

/// Why requests are not served, or not as they should be; empty: all is well.
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
