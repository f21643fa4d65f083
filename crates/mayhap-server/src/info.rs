//! `INFO`: figures of the server under the names that clients and exporters look for.

use std::fmt::Write as _;

use mayhap::say;
use mayhap_command::{Refusal, Reply};

use mayhap_engine::log::State;

use crate::REDIS_VERSION;
use crate::process::Process;
use crate::shared::Shared;

/// A section: its name, whether it is shown by default, and the function that writes it.
struct Section {
    name: &'static str,
    shown: bool,
    write: fn(&Shared, &mut String),
}

const fn section(name: &'static str, shown: bool, write: fn(&Shared, &mut String)) -> Section {
    Section { name, shown, write }
}

static SECTIONS: &[Section] = &[
    section("Server", true, server),
    section("Clients", true, clients),
    section("Memory", true, memory),
    section("Persistence", true, persistence),
    section("Stats", true, stats),
    section("Replication", true, replication),
    section("CPU", true, cpu),
    section("Modules", true, modules),
    section("Commandstats", false, command_stats),
    section("Errorstats", true, error_stats),
    section("Latencystats", false, |_, _| {}),
    section("Cluster", true, cluster),
    section("Keyspace", true, keyspace),
    section("Mayhap", true, mayhap),
];

/// `INFO [section …]`. An unknown section is not an error: it is empty.
///
/// # Errors
/// None.
pub(crate) fn info(shared: &Shared, words: &[&[u8]]) -> Result<Reply, Refusal> {
    let asked = |name: &str| words[1..].iter().any(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    let all = asked("all") || asked("everything");
    let default = words.len() == 1 || asked("default");
    let mut text = String::new();
    for section in SECTIONS {
        if all || (default && section.shown) || asked(section.name) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            put(&mut text, format_args!("# {}", section.name));
            (section.write)(shared, &mut text);
        }
    }
    Ok(Reply::Text(text))
}

fn put(text: &mut String, line: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = write!(text, "{line}\r\n");
}

fn server(shared: &Shared, text: &mut String) {
    let uptime = shared.started().elapsed().as_secs();
    let now_us = shared.engine().environment().now_ms() * 1_000;
    let port = shared.port();
    let system = rustix::system::uname();
    put(text, format_args!("redis_version:{REDIS_VERSION}"));
    put(text, "redis_git_sha1:00000000");
    put(text, "redis_git_dirty:0");
    put(text, "redis_build_id:0");
    put(text, "redis_mode:standalone");
    put(text, "server_name:mayhap");
    put(text, format_args!("mayhap_version:{}", env!("CARGO_PKG_VERSION")));
    put(
        text,
        format_args!(
            "os:{} {} {}",
            system.sysname().to_string_lossy(),
            system.release().to_string_lossy(),
            system.machine().to_string_lossy()
        ),
    );
    put(text, format_args!("arch_bits:{}", usize::BITS));
    put(text, "multiplexing_api:tokio");
    put(text, format_args!("process_id:{}", std::process::id()));
    put(text, format_args!("run_id:{}", shared.run_id()));
    put(text, format_args!("tcp_port:{port}"));
    put(text, format_args!("server_time_usec:{now_us}"));
    put(text, format_args!("uptime_in_seconds:{uptime}"));
    put(text, format_args!("uptime_in_days:{}", uptime / 86_400));
    put(text, "hz:10");
    put(text, "configured_hz:10");
    put(text, format_args!("io_threads_active:{}", u8::from(shared.settings().worker_threads() > 1)));
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    put(text, format_args!("executable:{program}"));
    let file = shared.settings().config_file.as_ref();
    put(
        text,
        format_args!("config_file:{}", file.map_or_else(String::new, |path| path.display().to_string())),
    );
}

fn clients(shared: &Shared, text: &mut String) {
    put(text, format_args!("connected_clients:{}", shared.clients().len()));
    put(text, format_args!("http_connections:{}", shared.clients().http()));
    put(text, "cluster_connections:0");
    put(text, format_args!("maxclients:{}", shared.clients().most()));
    put(text, "blocked_clients:0");
    put(text, "tracking_clients:0");
    put(text, "pubsub_clients:0");
}

fn memory(shared: &Shared, text: &mut String) {
    let process = Process::now();
    let used = shared.engine().budget().used();
    let limit = shared.engine().budget().limit();
    let ratio = if used == 0 { 0.0 } else { process.resident_bytes as f64 / used as f64 };
    put(text, format_args!("used_memory:{used}"));
    put(text, format_args!("used_memory_human:{}", human(used)));
    put(text, format_args!("used_memory_rss:{}", process.resident_bytes));
    put(text, format_args!("used_memory_rss_human:{}", human(process.resident_bytes)));
    put(text, format_args!("used_memory_peak:{}", process.peak_bytes.max(used)));
    put(text, format_args!("used_memory_peak_human:{}", human(process.peak_bytes.max(used))));
    put(text, format_args!("used_memory_dataset:{used}"));
    put(text, format_args!("mem_clients_normal:{}", shared.clients().held_bytes()));
    put(text, format_args!("total_system_memory:{}", crate::machine::memory_bytes().unwrap_or(0)));
    put(text, format_args!("maxmemory:{limit}"));
    put(text, format_args!("maxmemory_human:{}", human(limit)));
    put(text, "maxmemory_policy:noeviction");
    put(text, format_args!("mem_fragmentation_ratio:{ratio:.2}"));
    put(text, "mem_allocator:system");
}

/// Formats a number of bytes as Redis does: `1.50M`.
fn human(bytes: u64) -> String {
    let units = [(1_u64 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => format!("{bytes}B"),
    }
}

fn persistence(shared: &Shared, text: &mut String) {
    let saving = shared.saving();
    let last = saving.last();
    let status = if last.worked { "ok" } else { "err" };
    put(text, format_args!("loading:{}", u8::from(shared.is_loading())));
    put(text, "async_loading:0");
    put(text, format_args!("rdb_changes_since_last_save:{}", saving.changes(shared.engine())));
    put(text, format_args!("rdb_bgsave_in_progress:{}", u8::from(saving.is_under_way())));
    put(text, format_args!("rdb_last_save_time:{}", last.unix_secs));
    put(text, format_args!("rdb_last_bgsave_status:{status}"));
    let took = last.took.map_or(-1, |took| i64::try_from(took.as_secs()).unwrap_or(i64::MAX));
    put(text, format_args!("rdb_last_bgsave_time_sec:{took}"));
    put(text, "rdb_current_bgsave_time_sec:-1");
    put(text, format_args!("rdb_saves:{}", saving.saves()));
    let log = shared.engine().log();
    // A snapshot shortens the log.
    put(text, format_args!("aof_enabled:{}", u8::from(log.is_some())));
    put(text, format_args!("aof_rewrite_in_progress:{}", u8::from(saving.is_under_way())));
    put(text, "aof_rewrite_scheduled:0");
    put(text, format_args!("aof_last_rewrite_time_sec:{took}"));
    put(text, "aof_current_rewrite_time_sec:-1");
    put(text, format_args!("aof_last_bgrewrite_status:{status}"));
    let writing = log.is_none_or(|log| log.state() == State::Writing);
    put(text, format_args!("aof_last_write_status:{}", if writing { "ok" } else { "err" }));
    let Some(log) = log else { return };
    let figures = log.figures();
    put(text, format_args!("aof_current_size:{}", figures.bytes));
    put(text, format_args!("aof_base_size:{}", last.bytes));
    put(text, "aof_pending_rewrite:0");
    put(text, format_args!("aof_buffer_length:{}", figures.pending_bytes));
    put(text, "aof_pending_bio_fsync:0");
    put(text, format_args!("aof_delayed_fsync:{}", figures.delayed));
    let state = match log.state() {
        State::Writing => "writing",
        State::NoSpace => "no space",
        State::Closed => "closed",
        _ => "failed",
    };
    put(text, format_args!("log_state:{state}"));
    put(text, format_args!("log_failure:{}", log.failure().unwrap_or_default()));
    put(text, format_args!("log_fsync:{}", log.policy()));
    put(text, format_args!("log_files:{}", figures.segments));
    put(text, format_args!("log_records:{}", figures.next));
    put(text, format_args!("log_written:{}", figures.written));
    put(text, format_args!("log_synced:{}", figures.synced));
    put(text, format_args!("log_syncs:{}", figures.syncs));
    put(text, format_args!("log_last_sync_micros:{}", figures.last_sync_micros));
    put(text, format_args!("log_longest_sync_micros:{}", figures.longest_sync_micros));
    put(text, format_args!("log_running_sync_millis:{}", figures.running_sync_millis));
}

fn stats(shared: &Shared, text: &mut String) {
    let (wire, engine) = (shared.totals(), shared.engine().totals());
    put(text, format_args!("total_connections_received:{}", shared.clients().ever()));
    put(text, format_args!("total_commands_processed:{}", wire.requests));
    put(text, format_args!("total_net_input_bytes:{}", wire.read_bytes));
    put(text, format_args!("total_net_output_bytes:{}", wire.written_bytes));
    put(text, format_args!("rejected_connections:{}", shared.clients().rejected()));
    put(text, format_args!("client_query_buffer_limit_disconnections:{}", shared.clients().overfull()));
    put(text, format_args!("overdue_disconnections:{}", shared.clients().overdue()));
    put(text, format_args!("expired_keys:{}", engine.expired));
    put(text, format_args!("evicted_keys:{}", engine.evicted));
    put(text, format_args!("keyspace_hits:{}", engine.hits));
    put(text, format_args!("keyspace_misses:{}", engine.misses));
    put(text, "pubsub_channels:0");
    put(text, "pubsub_patterns:0");
    put(text, "latest_fork_usec:0");
    put(text, format_args!("total_error_replies:{}", errors(shared)));
}

/// The number of error replies: failed commands, and requests refused before they ran.
fn errors(shared: &Shared) -> u64 {
    let of_commands: u64 = shared.engine().statistics().commands().iter().map(|of| of.failed).sum();
    of_commands + shared.totals().refused
}

fn replication(shared: &Shared, text: &mut String) {
    put(text, "role:master");
    put(text, "connected_slaves:0");
    put(text, "master_failover_state:no-failover");
    put(text, format_args!("master_replid:{}", shared.run_id()));
    put(text, format_args!("master_replid2:{:040}", 0));
    put(text, "master_repl_offset:0");
    put(text, "second_repl_offset:-1");
    put(text, "repl_backlog_active:0");
    put(text, "repl_backlog_size:0");
    put(text, "repl_backlog_first_byte_offset:0");
    put(text, "repl_backlog_histlen:0");
}

fn cpu(_shared: &Shared, text: &mut String) {
    let process = Process::now();
    put(text, format_args!("used_cpu_sys:{:.6}", process.system.as_secs_f64()));
    put(text, format_args!("used_cpu_user:{:.6}", process.user.as_secs_f64()));
    put(text, "used_cpu_sys_children:0.000000");
    put(text, "used_cpu_user_children:0.000000");
}

fn modules(_shared: &Shared, text: &mut String) {
    put(text, "module:name=bf,ver=80200,api=1,filters=0,usedby=[],using=[],options=[]");
}

fn command_stats(shared: &Shared, text: &mut String) {
    for of in shared.engine().statistics().commands() {
        let usec = of.nanos / 1_000;
        let per_call = if of.calls == 0 { 0.0 } else { of.nanos as f64 / 1_000.0 / of.calls as f64 };
        put(
            text,
            format_args!(
                "cmdstat_{}:calls={},usec={usec},usec_per_call={per_call:.2},rejected_calls={},failed_calls={}",
                of.command, of.calls, of.rejected, of.failed
            ),
        );
    }
}

fn error_stats(shared: &Shared, text: &mut String) {
    let errors = errors(shared);
    if errors > 0 {
        put(text, format_args!("errorstat_ERR:count={errors}"));
    }
}

fn cluster(_shared: &Shared, text: &mut String) {
    put(text, "cluster_enabled:0");
}

fn keyspace(shared: &Shared, text: &mut String) {
    let totals = shared.engine().totals();
    if totals.names > 0 {
        put(
            text,
            format_args!("db0:keys={},expires={},avg_ttl=0,subexpiry=0", totals.names, totals.expiring),
        );
    }
}

fn mayhap(shared: &Shared, text: &mut String) {
    let totals = shared.engine().totals();
    put(text, format_args!("filters:{}", totals.names));
    put(text, format_args!("items:{}", totals.items));
    put(text, format_args!("bytes:{}", totals.memory_bytes));
    put(text, format_args!("bytes_human:{}", say::bytes(totals.memory_bytes)));
    put(text, format_args!("answered_mayhap:{}", totals.hits));
    put(text, format_args!("answered_no:{}", totals.misses));
    put(text, format_args!("lost_names:{}", totals.lost()));
    put(text, format_args!("unknown_losses:{}", u8::from(shared.engine().has_unknown_losses())));
    let overfull = shared.overfull();
    put(text, format_args!("filters_over_capacity:{}", overfull.over_capacity()));
    put(text, format_args!("filters_over_ten_times_target:{}", overfull.over_tenfold + overfull.over_half));
    put(text, format_args!("filters_over_half:{}", overfull.over_half));
    put(text, format_args!("worst_expected_fpr:{:.6}", overfull.worst_expected_fpr));
    for of in totals.by_type {
        put(text, format_args!("type_{}:filters={},bytes={}", of.type_name, of.names, of.memory_bytes));
    }
    let folder = shared.saving().folder();
    put(
        text,
        format_args!("data_folder:{}", folder.map_or_else(String::new, |path| path.display().to_string())),
    );
    let last = shared.saving().last();
    put(text, format_args!("snapshot_bytes:{}", last.bytes));
}
