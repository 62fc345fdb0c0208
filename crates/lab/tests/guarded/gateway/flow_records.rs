//! Connections that are over, as a reader of EVE finds them.

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;
use serde_json::{Value, json};

use super::{Path, TRUSTED, UNTRUSTED, perform_between};
use crate::gateway::life::say;
use crate::stage::{Outcome, SOON};

/// Where the recorder writes; the file is below the run's directory, which goes with it.
fn configure(path: &mut Path, lines: &str) -> Outcome {
    let eve = path.directory.join("eve.json");
    let text = std::fs::read_to_string(path.config()).map_err(Failure::io("reading the configuration"))?;
    let text = format!("{text}[records]\neve_file = \"{}\"\n{lines}\n", eve.display());
    path.stop(rustix::process::Signal::TERM);
    std::fs::write(path.config(), text).map_err(Failure::io("writing the configuration"))?;
    path.start()
}

fn flows(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path.directory.join("eve.json")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line["event_type"] == "flow").collect()
}

fn until_flows(path: &Path, count: usize) -> Result<Vec<Value>, Failure> {
    process::until("flow records", SOON, || Ok(flows(path).len() >= count))?;
    Ok(flows(path))
}

#[test]
fn each_connection_that_is_over_has_a_record_in_eve() {
    perform_between("", |path| {
        configure(path, "flows_per_s = 100")?;
        let failed = || Failure::io("talking");
        let [mut client, mut server] = path.connect(&path.untrusted, &path.trusted, TRUSTED, 5001)?;
        say(&mut client, &mut server, b"twelve bytes").map_err(failed())?;
        say(&mut server, &mut client, b"five!").map_err(failed())?;
        let client_port = client.local_addr().map_err(failed())?.port();
        drop(client);
        drop(server);
        let line = until_flows(path, 1)?.remove(0);
        let ends = json!([UNTRUSTED.to_string(), client_port, TRUSTED.to_string(), 5001]);
        assert_eq!(json!([line["src_ip"], line["src_port"], line["dest_ip"], line["dest_port"]]), ends, "{line}");
        let flow = &line["flow"];
        assert_eq!((&flow["bytes_toserver"], &flow["bytes_toclient"]), (&json!(12), &json!(5)), "{line}");
        assert_eq!((&flow["state"], &flow["reason"]), (&json!("closed"), &json!("closed")), "{line}");
        assert!(flow["pkts_toserver"].as_u64() >= Some(4) && line["community_id"].is_string(), "{line}");
        // The trusted host begins one, and an operator ends it.
        let [client, _server] = path.connect(&path.trusted, &path.untrusted, UNTRUSTED, 5002)?;
        let trusted = client.local_addr().map_err(failed())?.to_string();
        let answer = path.ask(&["gate", "block", &trusted, &format!("{UNTRUSTED}:5002")])?;
        assert!(answer.status.success(), "{answer:?}");
        let line = until_flows(path, 2)?.remove(1);
        assert_eq!((&line["src_ip"], &line["dest_port"]), (&json!(TRUSTED.to_string()), &json!(5002)), "{line}");
        let flow = &line["flow"];
        assert_eq!((&flow["reason"], &flow["action"]), (&json!("blocked"), &json!("drop")), "{line}");
        assert_eq!(path.status()?["ports"]["flow_records_told"], 2);
        Ok(())
    });
}

#[test]
fn what_exceeds_the_rate_is_left_out_and_counted_and_nothing_is_told_unasked() {
    const CONNECTIONS: u64 = 40;
    let open_and_close = |path: &Path| {
        for port in 5001..5001 + CONNECTIONS as u16 {
            drop(path.connect(&path.untrusted, &path.trusted, TRUSTED, port)?);
        }
        Ok::<_, Failure>(())
    };
    perform_between("", |path| {
        configure(path, "")?;
        open_and_close(path)?;
        assert_eq!((flows(path).len(), path.status()?["ports"]["flow_records_told"].clone()), (0, Value::Null));
        Ok(())
    });
    perform_between("", |path| {
        configure(path, "flows_per_s = 1")?;
        open_and_close(path)?;
        process::until("all connections, told or left out", SOON, || {
            let ports = path.status()?["ports"].clone();
            let count = |name: &str| ports[name].as_u64().unwrap_or_default();
            Ok(count("flow_records_told") + count("flow_records_left_out") == CONNECTIONS)
        })?;
        let told = path.status()?["ports"]["flow_records_told"].as_u64().unwrap_or_default() as usize;
        assert!((1..CONNECTIONS as usize).contains(&told));
        assert_eq!(until_flows(path, told)?.len(), told);
        Ok(())
    });
}
