//! Metrics with their samples, and the two formats that they are written in.
//!
//! The library writes OpenMetrics 1.0. The older text format 0.0.4 differs in its comments alone:
//! it gives a counter the name that its samples have, and knows neither units nor an end.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text::encode};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::failure::Failure;

/// What a text is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// Prometheus text 0.0.4, which files for node_exporter have to be in.
    Plain,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl Format {
    /// The Content-Type of HTTP.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::Plain => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

type Labels = Vec<(&'static str, String)>;

#[derive(Clone, Debug)]
enum Samples {
    Counter(Vec<(Labels, u64)>),
    Gauge(Vec<(Labels, i64)>),
    Info(Vec<Labels>),
}

#[derive(Clone, Debug)]
struct Family {
    help: &'static str,
    samples: Samples,
}

/// All metrics of one text, in the order of their names. Samples stand in the order in which they
/// came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Families {
    /// Stands in front of all labels of a sample.
    common: Labels,
    of_all: BTreeMap<&'static str, Family>,
}

impl Families {
    pub(super) fn new() -> Families {
        Families::default()
    }

    /// What comes from here on has these labels, too.
    pub(super) fn of(&mut self, common: &[(&'static str, &str)]) {
        self.common = common.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    }

    /// A sample of the counter `name`, whose samples end in `_total`.
    pub(crate) fn count(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        let labels = self.labels(labels);
        let family = self.of_all.entry(name).or_insert(Family { help, samples: Samples::Counter(Vec::new()) });
        if let Samples::Counter(samples) = &mut family.samples {
            samples.push((labels, value));
        }
    }

    /// A sample of the gauge `name`.
    pub(crate) fn gauge(
        &mut self,
        name: &'static str,
        help: &'static str,
        labels: &[(&'static str, &str)],
        value: u64,
    ) {
        let labels = self.labels(labels);
        let family = self.of_all.entry(name).or_insert(Family { help, samples: Samples::Gauge(Vec::new()) });
        if let Samples::Gauge(samples) = &mut family.samples {
            samples.push((labels, i64::try_from(value).unwrap_or(i64::MAX)));
        }
    }

    /// A sample of the counter `name` for each reason.
    pub(crate) fn by_reason(&mut self, name: &'static str, help: &'static str, counts: &BTreeMap<String, u64>) {
        counts.iter().for_each(|(reason, count)| self.count(name, help, &[("reason", reason)], *count));
    }

    /// A sample that is nothing but its labels, once for each of them; samples end in `_info`.
    pub(super) fn info(&mut self, name: &'static str, help: &'static str, labels: &[(&'static str, &str)]) {
        let labels: Labels = labels.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let family = self.of_all.entry(name).or_insert(Family { help, samples: Samples::Info(Vec::new()) });
        if let Samples::Info(samples) = &mut family.samples
            && !samples.contains(&labels)
        {
            samples.push(labels);
        }
    }

    fn labels(&self, more: &[(&'static str, &str)]) -> Labels {
        let more = more.iter().map(|(name, value)| (*name, (*value).to_owned()));
        self.common.iter().cloned().chain(more).collect()
    }

    /// Name and meaning of each, as samples are called.
    #[cfg(test)]
    pub(super) fn named(&self) -> Vec<(String, &'static str)> {
        self.of_all.iter().map(|(name, family)| (format!("{name}{}", family.suffix()), family.help)).collect()
    }

    pub(super) fn text(self, format: Format) -> Result<String, Failure> {
        let suffixes: BTreeMap<&str, &str> = self.of_all.iter().map(|(name, it)| (*name, it.suffix())).collect();
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        encode(&mut text, &registry).map_err(Failure::new)?;
        match format {
            Format::OpenMetrics => Ok(text),
            Format::Plain => plain(&text, &suffixes).map_err(Failure::new),
        }
    }
}

/// What was OpenMetrics in the older format.
fn plain(text: &str, suffixes: &BTreeMap<&str, &str>) -> Result<String, fmt::Error> {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            writeln!(out, "{line}")?;
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        let (Some(word), Some(name), Some(rest)) = (words.next(), words.next(), words.next()) else { continue };
        let suffix = suffixes.get(name).copied().unwrap_or_default();
        match (word, rest) {
            ("HELP", help) => writeln!(out, "# HELP {name}{suffix} {help}")?,
            ("TYPE", "info") => writeln!(out, "# TYPE {name}{suffix} gauge")?,
            ("TYPE", kind) => writeln!(out, "# TYPE {name}{suffix} {kind}")?,
            _ => {}
        }
    }
    Ok(out)
}

impl Family {
    /// What the samples' name has behind that of the family.
    fn suffix(&self) -> &'static str {
        match self.samples {
            Samples::Counter(_) => "_total",
            Samples::Gauge(_) => "",
            Samples::Info(_) => "_info",
        }
    }

    fn kind(&self) -> MetricType {
        match self.samples {
            Samples::Counter(_) => MetricType::Counter,
            Samples::Gauge(_) => MetricType::Gauge,
            Samples::Info(_) => MetricType::Info,
        }
    }

    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match &self.samples {
            Samples::Counter(samples) => samples.iter().try_for_each(|(labels, value)| {
                metric.encode_family(labels)?.encode_counter::<Labels, _, u64>(value, None)
            }),
            Samples::Gauge(samples) => {
                samples.iter().try_for_each(|(labels, value)| metric.encode_family(labels)?.encode_gauge(value))
            }
            Samples::Info(samples) => samples.iter().try_for_each(|labels| metric.encode_info(labels)),
        }
    }
}

/// The last word of a name, if it is a unit.
fn split_unit(name: &str) -> (&str, Option<Unit>) {
    if let Some(start) = name.strip_suffix("_seconds") {
        return (start, Some(Unit::Seconds));
    }
    match name.strip_suffix("_bytes") {
        Some(start) => (start, Some(Unit::Bytes)),
        None => (name, None),
    }
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, family) in &self.of_all {
            let (start, unit) = split_unit(name);
            family.encode(encoder.encode_descriptor(start, family.help, unit.as_ref(), family.kind())?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Families {
        let mut families = Families::new();
        families.of(&[("interface", "e0")]);
        families.count("z_frames", "Frames.", &[("reason", "a\"b\\c\nd")], 7);
        families.count("m_bytes", "Bytes.", &[], 1 << 63);
        families.gauge("a_not_after_timestamp_seconds", "An end.", &[], 1_790_000_000);
        families.info("build", "What runs.", &[("version", "1")]);
        families.info("build", "What runs.", &[("version", "1")]);
        families
    }

    /// By the text format 0.0.4 of Prometheus.
    #[test]
    fn the_plain_text_gives_a_family_the_name_of_its_samples() {
        let text = some().text(Format::Plain).expect("text");
        assert_eq!(
            text,
            "# HELP a_not_after_timestamp_seconds An end.\n# TYPE a_not_after_timestamp_seconds gauge\n\
             a_not_after_timestamp_seconds{interface=\"e0\"} 1790000000\n\
             # HELP build_info What runs.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
             # HELP m_bytes_total Bytes.\n# TYPE m_bytes_total counter\n\
             m_bytes_total{interface=\"e0\"} 9223372036854775808\n\
             # HELP z_frames_total Frames.\n# TYPE z_frames_total counter\n\
             z_frames_total{interface=\"e0\",reason=\"a\\\"b\\\\c\\nd\"} 7\n"
        );
    }

    /// By OpenMetrics 1.0: a counter's family has no suffix, a unit has a line, and the text has an
    /// end.
    #[test]
    fn open_metrics_name_the_family_and_its_unit() {
        let text = some().text(Format::OpenMetrics).expect("text");
        for line in ["# TYPE m_bytes counter", "# UNIT m_bytes bytes", "# TYPE build info", "# TYPE z_frames counter"] {
            assert!(text.lines().any(|other| other == line), "{line}: {text}");
        }
        assert!(text.contains("\nm_bytes_total{interface=\"e0\"} 9223372036854775808\n"), "{text}");
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
