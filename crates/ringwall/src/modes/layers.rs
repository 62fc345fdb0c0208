//! Where forged frames end: the part of a mode that has a program in the kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::part::Part;
use crate::metrics::family::Families;

/// Where forged frames end, and how many did so in the kernel.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Layers {
    /// As configured: none, twin or kernel.
    pub(crate) wanted: String,
    /// As it is.
    pub(crate) in_force: String,
    /// At which place in the kernel: socket, xdp or xdp-generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hook: Option<String>,
    /// Why it is another, or at another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Frames that the kernel dropped; they are part of `frames` and `drops`.
    pub(crate) dropped_in_kernel: BTreeMap<String, u64>,
}

impl Part for Layers {
    fn lines(&self) -> Vec<String> {
        let hook = self.hook.as_ref().map_or_else(String::new, |hook| format!(", hook {hook}"));
        let reason = match &self.reason {
            None => String::new(),
            // The layers are those that were wanted, and their place is another.
            Some(reason) if self.wanted == self.in_force => format!(" ({reason})"),
            Some(reason) => format!(" (wanted: {}; {reason})", self.wanted),
        };
        let mut lines = vec![format!("layers: {}{hook}{reason}", self.in_force)];
        let counts = self.dropped_in_kernel.iter().filter(|(_, count)| **count > 0);
        let counts: Vec<_> = counts.map(|(reason, count)| format!("{reason} {count}")).collect();
        if !counts.is_empty() {
            lines.push(format!("dropped in the kernel: {}", counts.join(", ")));
        }
        lines
    }

    fn measure(&self, families: &mut Families) {
        let help = "Frames of the dropped ones that ended in the kernel, by reason.";
        families.by_reason("ringwall_dropped_in_kernel_frames", help, &self.dropped_in_kernel);
    }
}
