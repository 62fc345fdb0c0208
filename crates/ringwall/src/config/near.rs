//! A misspelt word of the configuration, and what was meant.

/// How alike two words are at least, from 0 to 1, for one to be taken for the other.
const LIKENESS_MIN: f64 = 0.8;

/// What is said instead of the whole list, if one word of it is meant.
pub(super) fn hint(message: &str) -> Option<String> {
    let (what, rest) = [("key", "unknown field `"), ("value", "unknown variant `")]
        .iter()
        .find_map(|(what, start)| Some((what, message.strip_prefix(start)?)))?;
    let (wrong, rest) = rest.split_once('`')?;
    let words = rest.split('`').skip(1).step_by(2);
    let likeness = |word: &str| strsim::jaro_winkler(&wrong.to_lowercase(), word);
    let meant = words.map(|word| (likeness(word), word)).filter(|(likeness, _)| *likeness >= LIKENESS_MIN);
    let (_, meant) = meant.max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!("unknown {what} \"{wrong}\"; did you mean \"{meant}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_is_named_and_nothing_is_guessed() {
        let list = "`interface`, `mode`, `identity`, `on_exit`, `takeover`, `run_dir`";
        let hint = |wrong: &str| hint(&format!("unknown field `{wrong}`, expected one of {list}"));
        for (wrong, meant) in [
            ("moed", "mode"),
            ("Mode", "mode"),
            ("interfaces", "interface"),
            ("on-exit", "on_exit"),
            ("onexit", "on_exit"),
            ("rundir", "run_dir"),
            ("take_over", "takeover"),
        ] {
            assert_eq!(hint(wrong), Some(format!("unknown key \"{wrong}\"; did you mean \"{meant}\"?")));
        }
        for wrong in ["x", "password", "color"] {
            assert_eq!(hint(wrong), None, "{wrong}");
        }
        assert_eq!(super::hint("missing field `interface`"), None);
        let value = super::hint("unknown variant `enforec`, expected one of `observe`, `prefer`, `enforce`");
        assert_eq!(value.as_deref(), Some("unknown value \"enforec\"; did you mean \"enforce\"?"));
        let two = super::hint("unknown variant `auot`, expected `auto` or `filter`");
        assert_eq!(two.as_deref(), Some("unknown value \"auot\"; did you mean \"auto\"?"));
    }
}
