//! What a replay says at its end: what it took for granted, what became of the frames, what it
//! lacks.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;

use crate::failure::Failure;
use crate::output::{print, say};

/// What was done.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// Which side a frame came from.
    pub(super) assumed: String,
    pub(super) frames_read: u64,
    pub(super) bytes_read: u64,
    pub(super) from_trusted: u64,
    pub(super) from_untrusted: u64,
    /// Frames whose checksum or length was left to the sender's card.
    pub(super) begun_checksums: u64,
    #[serde(flatten)]
    pub(super) lacks: Lacks,
    /// Rules that a replay cannot carry out.
    pub(super) rules_off: Vec<&'static str>,
    pub(super) frames_written: u64,
    pub(super) bytes_written: u64,
    #[serde(flatten)]
    pub(super) fates: Fates,
    /// How often each rule acted, those at zero left out.
    pub(super) rules: BTreeMap<&'static str, u64>,
    /// Why frames were dropped, reasons at zero left out.
    pub(super) drops: BTreeMap<&'static str, u64>,
    /// Time of one processor for all of it, reading and writing included.
    pub(super) processor_s: f64,
}

/// What a capture lacks, and what was not read of it.
#[derive(Debug, Serialize)]
pub(super) struct Lacks {
    /// Frames that were not read: cut by the snap length, longer than any port hands over, of a
    /// link without Ethernet, encrypted on the air, or without any packet.
    pub(super) cut_frames: u64,
    pub(super) too_long_frames: u64,
    pub(super) other_link_frames: u64,
    pub(super) encrypted_frames: u64,
    pub(super) frames_without_packet: u64,
    /// Blocks beside the frames that are not written: a pcap file has no place for them, or there
    /// was no room.
    pub(super) notes: u64,
    /// Holes that a host acknowledged and that the capture never fills, and their bytes.
    pub(super) missing_segments: u64,
    pub(super) missing_bytes: u64,
}

/// What became of the frames.
#[derive(Debug, Serialize)]
pub(super) struct Fates {
    pub(super) forwarded: u64,
    pub(super) answered: u64,
    pub(super) consumed: u64,
    pub(super) held: u64,
    pub(super) dropped: u64,
}

impl Lacks {
    fn frames(&self) -> u64 {
        self.cut_frames
            + self.too_long_frames
            + self.other_link_frames
            + self.encrypted_frames
            + self.frames_without_packet
    }

    /// What helps, one line each.
    fn lines(&self) -> Vec<String> {
        let lines = [
            (self.cut_frames, "frames were cut by the snap length and left out; capture again with tcpdump -s 0"),
            (self.too_long_frames, "frames are too long and left out; capture again with gso_max_size 65536"),
            (self.other_link_frames, "frames are of a link without Ethernet or IP and left out; tcprewrite --dlt=enet"),
            (self.encrypted_frames, "frames are encrypted on the air and left out; airdecap-ng -e SSID -p PASSPHRASE"),
            (self.frames_without_packet, "frames manage the link, carry no packet, and are left out"),
            (self.notes, "blocks with names, secrets or counts are not written; --write a name that ends in .pcapng"),
        ];
        let missing = (self.missing_segments, self.missing_bytes);
        let holes = (missing.0 > 0)
            .then(|| format!("{} holes that a host has and the capture not, {} bytes", missing.0, missing.1));
        let left_out = lines.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        left_out.chain(holes).collect()
    }
}

impl Report {
    /// Prints it where the capture does not go.
    pub(super) fn print(&self, is_json: bool, is_standard: bool) -> Result<(), Failure> {
        let text = if is_json { serde_json::to_string_pretty(self).map_err(Failure::new)? } else { self.table() };
        if is_standard {
            print(&mut std::io::stderr(), &text);
        } else {
            say!("{text}");
        }
        Ok(())
    }

    /// Whoever works on with what was written must hear that it is not all.
    pub(super) fn all_was_read(&self, read: &Path) -> Result<(), Failure> {
        match self.lacks.frames() {
            0 => Ok(()),
            left_out => Err(Failure::file(read, format!("{left_out} frames were left out"), "the report says which")),
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let mut line = |what: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(what);
            text.push('\n');
        };
        line(format_args!("assumed: {}", self.assumed));
        line(format_args!(
            "read {} frames ({} from the trusted side, {} from the untrusted), wrote {}",
            self.frames_read, self.from_trusted, self.from_untrusted, self.frames_written
        ));
        if self.begun_checksums > 0 {
            let what =
                "frames had a checksum or length that is only begun, as on the host that sends them; taken for right";
            line(format_args!("{} {what}", self.begun_checksums));
        }
        self.lacks.lines().into_iter().for_each(|text| line(format_args!("{text}")));
        if !self.rules_off.is_empty() {
            let what = "off, because hosts in a capture answer what they saw";
            line(format_args!("{what}: {}", self.rules_off.join(", ")));
        }
        let fates = &self.fates;
        line(format_args!(
            "forwarded {}, answered {}, consumed {}, held {}, dropped {}",
            fates.forwarded, fates.answered, fates.consumed, fates.held, fates.dropped
        ));
        for (title, counts) in [("rules that acted:", &self.rules), ("dropped, by reason:", &self.drops)] {
            if !counts.is_empty() {
                line(format_args!("{title}"));
            }
            for (name, count) in counts {
                line(format_args!("  {count:>10}  {name}"));
            }
        }
        let megabytes_per_s = self.bytes_read as f64 / 1e6 / self.processor_s.max(1e-9);
        line(format_args!("{:.3} s of one processor, {megabytes_per_s:.0} MB/s", self.processor_s));
        text.trim_end().to_owned()
    }
}
