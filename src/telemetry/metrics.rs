//! Metrics in the Prometheus form. Labels are words of ours: no person, argument or organisation.

use std::time::Duration;

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};

use crate::clock::UtcMillis;
use crate::job::JobStatus;
use crate::lifecycle::Tasks;
use crate::storage::Counts;

/// Upper bounds of the latency buckets, in seconds; the platforms give 3 s for a callback, a wait takes a minute at most.
const LATENCY: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 60.0,
];
/// How often what was counted is folded together, so that it does not grow between scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

/// A recorder that is not installed, for tests.
///
/// # Errors
/// When the buckets are refused.
pub fn recorder() -> Result<PrometheusRecorder, BuildError> {
    Ok(PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &LATENCY)?
        .build_recorder())
}

/// Starts counting for the whole process, and tells where to read.
///
/// # Errors
/// When the process counts already.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let recorder = recorder()?;
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder)?;
    describe();
    Ok(handle)
}

/// Folds what was counted together until the server stops.
pub async fn upkeep(handle: PrometheusHandle, tasks: Tasks) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(UPKEEP) => handle.run_upkeep(),
            () = tasks.stopping() => return,
        }
    }
}

/// Sets the gauges from the store's counts. Every status is set, so that a count that fell to nothing is seen.
pub fn set(counts: &Counts, now: UtcMillis) {
    let age = counts
        .oldest_pending
        .map_or(0.0, |oldest| now.since(oldest).as_secs_f64());
    gauge!("gatepost_confirmations_pending").set(float(counts.pending));
    gauge!("gatepost_confirmations_oldest_pending_seconds").set(age);
    gauge!("gatepost_confirmations_unresumed").set(float(counts.unresumed));
    gauge!("gatepost_outbox_depth").set(float(counts.outbox));
    for status in JobStatus::ALL {
        let count = counts
            .jobs
            .iter()
            .find(|(word, _)| word == status.as_str())
            .map_or(0, |(_, count)| *count);
        gauge!("gatepost_jobs", "status" => status.as_str()).set(float(count));
    }
}

/// Counts beyond 2^53 are shown rounded.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a double")]
const fn float(count: u64) -> f64 {
    count as f64
}

fn describe() {
    describe_gauge!("gatepost_confirmations_pending", "Undecided requests");
    describe_gauge!(
        "gatepost_confirmations_oldest_pending_seconds",
        Unit::Seconds,
        "Age of the oldest undecided request"
    );
    describe_gauge!(
        "gatepost_confirmations_unresumed",
        "Decided requests whose job did not go on yet"
    );
    describe_gauge!("gatepost_outbox_depth", "Posts and edits that wait to be sent");
    describe_gauge!("gatepost_jobs", "Jobs by status");
    describe_histogram!(
        "gatepost_http_request_duration_seconds",
        Unit::Seconds,
        "Time to an answer by route template"
    );
    describe_gauge!("gatepost_http_connections_open", "Connections that are open");
    describe_counter!(
        "gatepost_http_connections_refused_total",
        "Connections that were told that there is no room"
    );
    describe_counter!(
        "gatepost_callbacks_refused_total",
        "Callbacks that were not authentic or not readable"
    );
    describe_counter!(
        "gatepost_callbacks_unstored_total",
        "Clicks that could not be stored in time"
    );
    describe_counter!(
        "gatepost_break_glass_total",
        "Requests that one person approved past everybody who would have been asked"
    );
    describe_counter!("gatepost_clicks_total", "Authentic clicks by ruling");
    describe_counter!(
        "gatepost_commands_total",
        "Authentic words to the bot by what was said to them"
    );
    describe_counter!("gatepost_audit_dropped_total", "Audit events that were lost");
    describe_counter!(
        "gatepost_conditions_unevaluated_total",
        "Conditions of rules that could not be evaluated"
    );
    describe_counter!(
        "gatepost_mcp_calls_total",
        "Calls of MCP tools by server and outcome: done, failed, not_made, changed, unknown"
    );
    describe_histogram!(
        "gatepost_mcp_call_duration_seconds",
        Unit::Seconds,
        "Time to the end of a call of an MCP tool, by server"
    );
    describe_gauge!("gatepost_mcp_server_up", "Whether an MCP server is there");
    describe_gauge!(
        "gatepost_mcp_tools",
        "Tools that an MCP server offers and that are used"
    );
    describe_counter!(
        "gatepost_mcp_losses_total",
        "How often an MCP server was lost or could not be reached"
    );
    describe_counter!(
        "gatepost_hook_refusals_total",
        "Questions of hosts that were denied before they reached the gate"
    );
}
