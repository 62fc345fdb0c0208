//! The manual's table of commands and roles is that of the code.

use clap::{Command, Subcommand as _};

use super::*;

const MANUAL: &str = include_str!("../../../../../docs/manual/site.md");

/// A command as somebody would give it, so that it can be parsed.
fn sample(command: &str) -> String {
    let rest = match command {
        "token" | "rekey" | "refuse" | "approve" => " a",
        "revoke" => " --name a",
        "policy legacy add" | "policy known add" => " --ip 192.0.2.9 --mac 02:00:00:00:00:09",
        "policy legacy remove" | "policy known remove" => " 192.0.2.9",
        "policy exception set" => " 02:00:00:00:00:09 observe",
        "policy exception remove" => " 02:00:00:00:00:09",
        "policy mode" => " * observe",
        "enforce" => " *",
        "init" => " --name a",
        "issue" => " --name a --mac 02:00:00:00:00:01 --out a.pem",
        "renew" => " --request - --out -",
        "import" => " a.csv --out tokens",
        "backup" | "restore" => " a",
        "operator add" => " a --role viewer --out a.pem",
        "operator remove" => " a",
        "operator request" => " a --key a.key.pem --out a.csr.pem",
        "repository import" | "repository use" => " --etcd http://192.0.2.5:2379",
        _ => "",
    };
    format!("{command}{rest}")
}

/// The names of all commands, those within others with the names of these.
fn names(command: &Command, before: &str, found: &mut Vec<String>) {
    for one in command.get_subcommands() {
        let name = format!("{before}{}", one.get_name());
        if !one.has_subcommands() || one.get_name() == "audit" {
            found.push(name.clone());
        }
        names(one, &format!("{name} "), found);
    }
}

fn role_of(command: &str) -> Option<&'static str> {
    let words: Vec<String> = sample(command).split(' ').map(str::to_owned).collect();
    let mut parsed = parse(&words).unwrap_or_else(|error| panic!("{command}: {error}"));
    terms(&mut parsed, Some(&Step::Check)).map(|terms| terms.needs.name())
}

#[test]
fn the_manual_says_of_each_command_which_role_it_needs() {
    let mut commands = Vec::new();
    names(&SiteCommand::augment_subcommands(Command::new("site")), "", &mut commands);
    assert!(commands.len() > 30, "{commands:?}");
    let table = MANUAL.split("| Order | Role |").nth(1).expect("the table");
    let rows: Vec<(&str, &str)> = table
        .lines()
        .skip(2)
        .map_while(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            Some((cells.next()?, cells.next()?.trim_end_matches(" |")))
        })
        .collect();
    for command in commands {
        let said = rows.iter().find(|(orders, _)| orders.split(", ").any(|one| one == format!("`{command}`")));
        let said = said.map(|(_, role)| *role);
        let wanted = role_of(&command).unwrap_or("none");
        assert_eq!(said, Some(wanted), "{command}");
    }
}

#[test]
fn what_is_more_than_daily_work_needs_a_manager() {
    for (line, role) in [
        ("token a --role router", Some("manager")),
        ("token a --role dhcp --preapproved", Some("manager")),
        ("approve a --allow-shared-addresses", Some("manager")),
        ("policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09 --router", Some("manager")),
        ("policy legacy add --ip 192.0.2.9 --mac 02:00:00:00:00:09 --broadcast", Some("operator")),
        ("approve --watch", None),
        ("list --all", None),
        ("token --csv hosts.csv", None),
        ("token a --out tokens", None),
        ("token a --out-csv tokens", None),
    ] {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut parsed = parse(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(terms(&mut parsed, None).map(|terms| terms.needs.name()), role, "{line}");
    }
    let mut enforce = parse(&["enforce".to_owned(), "*".to_owned()]).expect("a command");
    assert!(terms(&mut enforce, None).is_none(), "the service waits for no trial");
}
