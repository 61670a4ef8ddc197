//! Writes a sample as OpenMetrics text for Prometheus.
//!
//! Each number of SHOW STATUS becomes a metric of the same name.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::database::DatabaseError;
use crate::health;
use crate::plain::visible;
use crate::sample::Sample;

/// The content type of [`text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The status variables that only grow while the server runs. All other numbers become gauges.
const COUNTERS: [&str; 21] = [
    "wsrep_causal_reads",
    "wsrep_flow_control_paused_ns",
    "wsrep_flow_control_recv",
    "wsrep_flow_control_sent",
    "wsrep_local_bf_aborts",
    "wsrep_local_cert_failures",
    "wsrep_local_commits",
    "wsrep_local_replays",
    "wsrep_received",
    "wsrep_received_bytes",
    "wsrep_repl_data_bytes",
    "wsrep_repl_keys",
    "wsrep_repl_keys_bytes",
    "wsrep_repl_other_bytes",
    "wsrep_replicated",
    "wsrep_replicated_bytes",
    "wsrep_trireme_conflicts_brute_force_abort",
    "wsrep_trireme_conflicts_certification",
    "wsrep_trireme_conflicts_replay",
    "wsrep_trireme_leader_changes",
    "wsrep_trireme_paced_ns",
];

/// Further status variables that only grow. They were gauges once, so dashboards know their plain names: each has that
/// and, beside it, the name with `_total`. Both are gauges, since a counter `x` and a gauge `x` may not be in one text.
const FORMER_GAUGES: [&str; 4] = [
    "wsrep_apply_waits",
    "wsrep_trireme_leaderships_handed",
    "wsrep_trireme_leaderships_needless",
    "wsrep_trireme_leaderships_taken",
];

/// Writes all metrics of a node. If the server does not answer, the metrics only say so.
pub(crate) fn text(seen: Result<&Sample, &DatabaseError>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Node {
        ready: health::ready(seen).ok,
        write: health::write(seen).ok,
        sample: seen.ok().cloned(),
    }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

#[derive(Debug)]
struct Node {
    ready: bool,
    write: bool,
    sample: Option<Sample>,
}

impl Collector for Node {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let flags = [
            (
                "trireme_up",
                "Whether the server answers SQL",
                self.sample.is_some(),
            ),
            (
                "trireme_ready",
                "Whether the node serves SQL in the primary component",
                self.ready,
            ),
            (
                "trireme_write_ready",
                "Whether the node takes writes and is in step",
                self.write,
            ),
        ];
        for (name, help, value) in flags {
            put(&mut encoder, name, help, &ConstGauge::new(i64::from(value)))?;
        }
        let Some(sample) = &self.sample else {
            return Ok(());
        };
        // People read these labels, too.
        let variable = |name| visible(sample.variable(name));
        let status = |name| visible(sample.status(name));
        let info = Info::new(vec![
            ("cluster", variable("wsrep_cluster_name")),
            ("node", variable("wsrep_node_name")),
            ("provider", status("wsrep_provider_version")),
            ("server", variable("version")),
            ("state", status("wsrep_local_state_comment")),
        ]);
        put(
            &mut encoder,
            "trireme_node",
            "Names and versions of the node",
            &info,
        )?;
        for (name, value) in sample.all_status() {
            put_status(&mut encoder, name, value)?;
        }
        Ok(())
    }
}

fn put_status(encoder: &mut DescriptorEncoder, name: &str, value: &str) -> fmt::Result {
    let help = format!("Status variable {name}");
    if COUNTERS.contains(&name) {
        if let Ok(count) = value.parse::<u64>() {
            return put(encoder, name, &help, &ConstCounter::new(count));
        }
    }
    if let Ok(number) = value.parse::<i64>() {
        if FORMER_GAUGES.contains(&name) {
            let total = format!("{name}_total");
            put(encoder, &total, &help, &ConstGauge::new(number))?;
        }
        return put(encoder, name, &help, &ConstGauge::new(number));
    }
    let number = match value {
        "ON" | "true" | "Primary" => 1.0,
        "OFF" | "false" | "non-Primary" | "Disconnected" => 0.0,
        // A text value is no metric, although some ("nan") parse as a number.
        _ => match value.parse::<f64>() {
            Ok(number) if number.is_finite() => number,
            _ => return Ok(()),
        },
    };
    put(encoder, name, &help, &ConstGauge::new(number))
}

fn put(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    metric: &impl EncodeMetric,
) -> fmt::Result {
    let one = encoder.encode_descriptor(name, help, None, metric.metric_type())?;
    metric.encode(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| (name.to_string(), value.to_string());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn numbers_are_metrics_by_their_names_and_text_is_none() {
        let sample = Sample::new(
            rows(&[
                ("wsrep_local_commits", "7"),
                ("wsrep_last_committed", "-1"),
                ("wsrep_flow_control_paused", "0.25"),
                ("wsrep_ready", "ON"),
                (
                    "wsrep_cluster_state_uuid",
                    "3b1c0f2e-0102-11ee-8b1c-00ff7f80a5c3",
                ),
            ]),
            Vec::new(),
        );
        let text = text(Ok(&sample)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "trireme_up 1",
            "trireme_ready 0",
            "wsrep_local_commits_total 7",
            "wsrep_last_committed -1",
            "wsrep_flow_control_paused 0.25",
            "wsrep_ready 1.0",
            "# TYPE wsrep_local_commits counter",
        ] {
            assert!(lines.contains(&line), "{line} is not in:\n{text}");
        }
        assert!(!text.contains("3b1c0f2e"), "{text}");
        assert_eq!(lines.last(), Some(&"# EOF"));
    }

    /// An alert on `wsrep_cluster_status == 0` must see a node that has left the cluster.
    #[test]
    fn each_cluster_status_is_a_number() {
        for (status, number) in [
            ("Primary", "1.0"),
            ("non-Primary", "0.0"),
            ("Disconnected", "0.0"),
        ] {
            let sample = Sample::new(rows(&[("wsrep_cluster_status", status)]), Vec::new());
            let text = text(Ok(&sample)).unwrap();
            let line = format!("wsrep_cluster_status {number}\n");
            assert!(text.contains(&line), "{line} is not in:\n{text}");
        }
    }

    /// A metric's name occurs once, as OpenMetrics demands.
    #[test]
    fn what_was_a_gauge_has_its_old_name_and_a_total() {
        let sample = Sample::new(rows(&[("wsrep_apply_waits", "7")]), Vec::new());
        let text = text(Ok(&sample)).unwrap();
        for line in [
            "wsrep_apply_waits 7\n",
            "wsrep_apply_waits_total 7\n",
            "# TYPE wsrep_apply_waits gauge\n",
        ] {
            assert_eq!(text.matches(line).count(), 1, "{line} in:\n{text}");
        }
    }

    #[test]
    fn hostile_names_stay_within_their_label() {
        let name = "a\"} 1\nwsrep_ready 1\\\u{1b}";
        let sample = Sample::new(Vec::new(), rows(&[("wsrep_node_name", name)]));
        let text = text(Ok(&sample)).unwrap();
        assert!(
            text.contains(r#"node="a\"} 1\\nwsrep_ready 1\\\\u{1b}""#),
            "{text}"
        );
        assert!(
            !text.lines().any(|line| line.starts_with("wsrep_ready")),
            "{text}"
        );
    }

    #[test]
    fn a_server_that_does_not_answer_is_down() {
        let error = DatabaseError::Refused(1, String::new());
        assert!(text(Err(&error)).unwrap().contains("trireme_up 0\n"));
    }
}
