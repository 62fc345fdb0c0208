//! Two ways between the hosts, and the gateway in only one of them.

use std::net::{SocketAddr, TcpListener, TcpStream};

use ringwall_lab::failure::Failure;
use ringwall_lab::net::process;

use super::{PATIENCE, TRUSTED, UNTRUSTED, perform_between};
use crate::stage::SOON;

#[test]
fn a_connection_whose_halves_take_different_ways_is_reported() {
    perform_between("", |path| {
        path.trusted.ip(&format!("link add d0 type veth peer name d0 netns {}", path.untrusted.name()))?;
        for host in [&path.trusted, &path.untrusted] {
            for scope in ["all", "default"] {
                host.set_kernel_parameter(&format!("ipv4/conf/{scope}/rp_filter"), "0")?;
            }
            host.ip("link set d0 up")?;
        }
        // The trusted host answers by the direct way.
        path.trusted.ip(&format!("route add {UNTRUSTED}/32 dev d0"))?;
        let address = SocketAddr::from((TRUSTED, 5001));
        let listen = || TcpListener::bind(address).map_err(Failure::io("listening"));
        let _listener = path.trusted.enter(listen)?;
        let connect = || TcpStream::connect_timeout(&address, PATIENCE).map_err(Failure::io("connecting"));
        // The client hears the answer and takes itself for connected; what it says never arrives.
        let _client = path.untrusted.enter(connect)?;
        process::until("the event", SOON, || {
            let events = path.ask(&["events"])?.stdout;
            Ok(events.contains("asymmetric-path") && events.contains("10.6.0.1:5001 - 10.6.0.2:"))
        })?;
        let json = path.json_lines(&["events"])?;
        assert!(json.iter().any(|event| event["event"] == "asymmetric-path"), "{json:?}");
        assert!(path.status()?["drops"]["tcp-handshake"].as_u64() > Some(0));
        Ok(())
    });
}
