//! smoltcp, in a thread of this program.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use ::smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use ::smoltcp::phy::{self, Medium, TunTapInterface};
use ::smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use ::smoltcp::time::{Duration, Instant};
use ::smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr};

use super::{ADDRESS, CALL_INTERVAL, CALLED_PORT, OPEN_PORT, PROBER, TAP};
use crate::failure::Failure;
use crate::net::Namespace;

const MAC: EthernetAddress = EthernetAddress([2, 0, 0, 0, 6, 1]);
/// Connections that it can hold at once.
const LISTENERS: usize = 16;
/// Bytes of each buffer of a connection.
const BUFFER_BYTES: usize = 8192;
/// How long it waits for a frame before it looks whether it is to end.
const TURN: Duration = Duration::from_millis(20);
/// The first port from which it calls.
const FIRST_OWN_PORT: u16 = 49152;

/// Starts the thread; returns when the stack hears its TAP.
pub(super) fn stand(host: &Namespace, should_end: Arc<AtomicBool>) -> Result<JoinHandle<()>, Failure> {
    let (namespace, (ready, is_ready)) = (host.clone(), mpsc::channel());
    let thread = thread::spawn(move || {
        let outcome = namespace.enter(|| {
            let tap = TunTapInterface::new(TAP, Medium::Ethernet).map_err(Failure::io("opening the TAP"))?;
            // Nobody hears it if the run has ended meanwhile.
            let _gone = ready.send(Ok(()));
            live(tap, &should_end);
            Ok(())
        });
        if let Err(failure) = outcome {
            let _gone = ready.send(Err(failure));
        }
    });
    let gone = || Failure::Unreadable("smoltcp ended before it began".to_owned());
    is_ready.recv().map_err(|_| gone())??;
    Ok(thread)
}

fn live(mut tap: TunTapInterface, should_end: &AtomicBool) {
    let mut interface = Interface::new(Config::new(HardwareAddress::Ethernet(MAC)), &mut tap, Instant::now());
    interface.update_ip_addrs(|addresses| {
        // There is room for two.
        let _kept = addresses.push(IpCidr::new(address(ADDRESS), 24));
    });
    let mut sockets = SocketSet::new(Vec::new());
    let listeners: Vec<SocketHandle> = (0..LISTENERS).map(|_| sockets.add(socket())).collect();
    let caller = sockets.add(socket());
    let (mut called_at, mut own_port) = (Instant::now(), FIRST_OWN_PORT);
    while !should_end.load(Ordering::Relaxed) {
        for listener in &listeners {
            welcome(sockets.get_mut(*listener));
        }
        let now = Instant::now();
        if now - called_at >= Duration::from(CALL_INTERVAL) {
            (called_at, own_port) = (now, own_port.checked_add(1).unwrap_or(FIRST_OWN_PORT));
            call(&mut interface, sockets.get_mut(caller), own_port);
        }
        hang_up(sockets.get_mut(caller));
        interface.poll(Instant::now(), &mut tap, &mut sockets);
        let delay = interface.poll_delay(Instant::now(), &sockets).map_or(TURN, |delay| delay.min(TURN));
        // It fails when a signal comes, and then the loop goes on.
        let _woken = phy::wait(tap.as_raw_fd(), Some(delay));
    }
}

fn address(address: std::net::Ipv4Addr) -> IpAddress {
    IpAddress::Ipv4(address)
}

fn socket() -> Socket<'static> {
    let buffer = || SocketBuffer::new(vec![0; BUFFER_BYTES]);
    Socket::new(buffer(), buffer())
}

/// Listens, and hangs up on who came.
fn welcome(socket: &mut Socket<'_>) {
    if !socket.is_open() {
        // It fails for port zero only.
        let _listens = socket.listen(OPEN_PORT);
    }
    hang_up(socket);
}

fn hang_up(socket: &mut Socket<'_>) {
    match socket.state() {
        State::Established | State::CloseWait => socket.close(),
        // The port is wanted again.
        State::TimeWait => socket.abort(),
        _ => {}
    }
}

fn call(interface: &mut Interface, socket: &mut Socket<'_>, own_port: u16) {
    socket.abort();
    // It fails while there is no route, and then it calls again.
    let _called = socket.connect(interface.context(), (address(PROBER), CALLED_PORT), own_port);
}
