//! The kernel of this machine, in a namespace with settings of its own.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{ADDRESS, CALL_INTERVAL, CALLED_PORT, INTERFACE, OPEN_PORT, PROBER};
use crate::failure::Failure;
use crate::net::Namespace;

/// Settings that make the kernel another host to those who look at it from outside.
pub(super) const TUNED: [(&str, &str); 6] = [
    ("ipv4/tcp_timestamps", "0"),
    ("ipv4/tcp_window_scaling", "0"),
    ("ipv4/tcp_sack", "0"),
    ("ipv4/ip_default_ttl", "128"),
    ("ipv4/ip_no_pmtu_disc", "1"),
    ("ipv4/tcp_rmem", "4096 20000 65536"),
];
/// How often a thread looks whether it is to end.
const TURN: Duration = Duration::from_millis(20);

/// Gives `host` its address, an open port, and somebody who calls the prober.
pub(super) fn stand(
    host: &Namespace,
    settings: &[(&str, &str)],
    should_end: &Arc<AtomicBool>,
) -> Result<[JoinHandle<()>; 2], Failure> {
    for (key, value) in settings {
        host.set_kernel_parameter(key, value)?;
    }
    host.ip(&format!("address add {ADDRESS}/24 dev {INTERFACE}"))?;
    host.ip(&format!("link set {INTERFACE} up"))?;
    let listener = host.enter(|| TcpListener::bind((ADDRESS, OPEN_PORT)).map_err(Failure::io("listening")))?;
    listener.set_nonblocking(true).map_err(Failure::io("listening"))?;
    let (namespace, flag) = (host.clone(), should_end.clone());
    let calling = thread::spawn(move || {
        // Refusals are what an absent prober answers.
        let _refused = namespace.enter(|| {
            call_until(&flag);
            Ok(())
        });
    });
    let flag = should_end.clone();
    Ok([calling, thread::spawn(move || welcome_until(&listener, &flag))])
}

/// Accepts and hangs up.
pub(crate) fn welcome_until(listener: &TcpListener, should_end: &AtomicBool) {
    while !should_end.load(Ordering::Relaxed) {
        match listener.accept() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(TURN),
            _ => {}
        }
    }
}

fn call_until(should_end: &AtomicBool) {
    let mut called_at = None;
    while !should_end.load(Ordering::Relaxed) {
        if called_at.is_none_or(|at: Instant| at.elapsed() >= CALL_INTERVAL) {
            called_at = Some(Instant::now());
            let _refused = TcpStream::connect_timeout(&SocketAddr::from((PROBER, CALLED_PORT)), CALL_INTERVAL);
        }
        thread::sleep(TURN);
    }
}
