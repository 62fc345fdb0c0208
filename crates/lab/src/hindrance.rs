//! What a daemon's sandbox has refused, as its log tells.
//!
//! A refused call is missing from the list of what a daemon may do, whatever else was being tried.

/// Lines about refused calls. SQLite tries to open the directory of a new journal, to sync it, and
/// to look at its files by name when it closes; it does without both, so these are left out.
#[must_use]
pub fn refused_calls(log: &str) -> Vec<&str> {
    let refusal = "the sandbox refuses the system call ";
    let tried_in_vain = ["SYS_openat ", "SYS_newfstatat "];
    let is_known = |call: &str| tried_in_vain.iter().any(|known| call.starts_with(known));
    log.lines().filter(|line| line.split_once(refusal).is_some_and(|(_, call)| !is_known(call))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_found_unless_it_does_no_harm() {
        let log = "guards e0\nthe sandbox refuses the system call SYS_openat (257)\n\
            WARN the sandbox refuses the system call SYS_uname (63)\n";
        assert_eq!(refused_calls(log), ["WARN the sandbox refuses the system call SYS_uname (63)"]);
    }
}
