//! Before whom the data path runs: `real_time_priority` of the sections `[host]` and `[gate]`.

use serde::{Deserialize, Serialize};
use system::priority::{MAX, RealTimePriority};

/// See [`RealTimePriority`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "u8", into = "u8")]
pub(crate) struct RealTime(RealTimePriority);

impl RealTime {
    /// For the data path.
    pub(crate) fn priority(self) -> RealTimePriority {
        self.0
    }
}

impl TryFrom<u8> for RealTime {
    type Error = String;

    fn try_from(value: u8) -> Result<RealTime, String> {
        RealTimePriority::new(value)
            .map(RealTime)
            .ok_or_else(|| format!("a real-time priority is 1 to {MAX}, not {value}"))
    }
}

impl From<RealTime> for u8 {
    fn from(RealTime(priority): RealTime) -> u8 {
        priority.value()
    }
}

#[cfg(test)]
mod tests {
    use crate::modes::file::tests::load;

    #[test]
    fn nobody_comes_first_unless_somebody_chooses() {
        assert_eq!(load("[host]\ninterface = \"eth0\"\n").expect("valid").host.real_time_priority, None);
        let config = load("[host]\ninterface = \"eth0\"\nreal_time_priority = 10\n").expect("valid");
        assert_eq!(config.host.real_time_priority.map(u8::from), Some(10));
    }

    #[test]
    fn priorities_of_the_kernels_own_threads_are_refused_with_file_and_line() {
        let refused = load("[host]\ninterface = \"eth0\"\nreal_time_priority = 50\n").expect_err("too high");
        assert!(refused.contains("host.toml:3") && refused.contains("1 to 49, not 50"), "{refused}");
    }
}
