//! Which keys differ between the file as it is and what is in force.

use std::collections::BTreeMap;

use serde::Serialize;
use toml::Value;

/// A section that the daemon has no part in.
const OF_COMMANDS: &str = "site.";

/// The keys whose value is another, with their sections.
pub(crate) fn changed_keys(in_force: &impl Serialize, read: &impl Serialize) -> Vec<String> {
    let (before, after) = (flat(in_force), flat(read));
    let differs = |key: &&String| before.get(*key) != after.get(*key);
    let keys = before.keys().chain(after.keys()).filter(differs).filter(|key| !key.starts_with(OF_COMMANDS));
    let mut keys: Vec<String> = keys.cloned().collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// What is said of them, if there are any.
pub(crate) fn restart_line(keys: &[String]) -> Option<String> {
    (!keys.is_empty()).then(|| format!("changed, and in force with the next start of the daemon: {}", keys.join(", ")))
}

fn flat(config: &impl Serialize) -> BTreeMap<String, Value> {
    let mut keys = BTreeMap::new();
    if let Ok(value) = Value::try_from(config) {
        collect(String::new(), value, &mut keys);
    }
    keys
}

fn collect(name: String, value: Value, keys: &mut BTreeMap<String, Value>) {
    match value {
        Value::Table(table) => {
            for (key, value) in table {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                collect(name, value, keys);
            }
        }
        value => _ = keys.insert(name, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_keys_are_named_with_their_sections() {
        let value = |text: &str| toml::from_str::<Value>(text).expect("valid");
        let before = value("[host]\ninterface = \"e0\"\non_exit = \"closed\"\n[[cll.legacy]]\nip = \"a\"\n");
        let after = value("[host]\ninterface = \"e0\"\n[cll]\nipv6 = false\n[[cll.legacy]]\nip = \"b\"\n");
        assert_eq!(changed_keys(&before, &after), ["cll.ipv6", "cll.legacy", "host.on_exit"]);
        assert_eq!(changed_keys(&before, &before), Vec::<String>::new());
        assert_eq!(restart_line(&[]), None);
    }
}
