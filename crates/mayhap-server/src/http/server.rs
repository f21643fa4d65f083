//! `/api/v1/server`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Json;
use mayhap_command::names;
use serde_json::{Value, json};

use super::{Problem, permit};
use crate::metrics;
use crate::process::Process;
use crate::shared::Shared;
use crate::users::User;

/// Returns figures of the server.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(user): Extension<Arc<User>>,
) -> Result<Json<Value>, Problem> {
    permit(&shared, &user, &[names::INFO.as_bytes()])?;
    let (totals, wire, process) = (shared.engine().totals(), shared.totals(), Process::now());
    let last = shared.saving().last();
    let by_type: Vec<Value> = totals
        .by_type
        .iter()
        .map(|of| json!({ "type": of.type_name, "filters": of.names, "memory_bytes": of.memory_bytes }))
        .collect();
    Ok(Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "redis_version": crate::REDIS_VERSION,
        "run_id": shared.run_id(),
        "process_id": std::process::id(),
        "port": shared.port(),
        "uptime_secs": shared.started().elapsed().as_secs(),
        "ready": metrics::reasons(&shared).is_empty(),
        "workers": shared.settings().worker_threads(),
        "filters": totals.names,
        "expiring_filters": totals.expiring,
        "items": totals.items,
        "by_type": by_type,
        "memory_bytes": totals.memory_bytes,
        "memory_limit_bytes": shared.engine().budget().limit(),
        "resident_bytes": process.resident_bytes,
        "hits": totals.hits,
        "misses": totals.misses,
        "expired": totals.expired,
        "clients": shared.clients().len(),
        "connections": shared.clients().ever(),
        "requests": wire.requests,
        "received_bytes": wire.read_bytes,
        "sent_bytes": wire.written_bytes,
        "snapshot": {
            "folder": shared.saving().folder().map(|path| path.display().to_string()),
            "interval_secs": shared.save_interval().as_secs(),
            "last_unix_secs": last.unix_secs,
            "last_bytes": last.bytes,
            "worked": last.worked,
            "in_progress": shared.saving().is_under_way(),
            "unsaved_changes": shared.saving().changes(shared.engine()),
        },
    })))
}
