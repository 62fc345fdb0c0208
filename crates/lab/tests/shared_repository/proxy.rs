//! Stands before a member and loses its answers to changes, after the member has made them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Runs until the test's process ends.
pub(super) struct Proxy {
    port: u16,
    to_lose: Arc<AtomicUsize>,
    lost: Arc<AtomicUsize>,
}

impl Proxy {
    /// Starts one before the member at `member` on the loopback.
    pub(super) fn start(member: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let proxy = Proxy { port, to_lose: Arc::default(), lost: Arc::default() };
        let (to_lose, lost) = (Arc::clone(&proxy.to_lose), Arc::clone(&proxy.lost));
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                serve(client, member, &to_lose, &lost);
            }
        });
        proxy
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// The next `count` answers to changes get lost.
    pub(super) fn lose(&self, count: usize) {
        self.to_lose.store(count, Ordering::SeqCst);
    }

    /// How many got lost.
    pub(super) fn lost(&self) -> usize {
        self.lost.load(Ordering::SeqCst)
    }
}

/// One request on a connection of its own, which ends it.
fn serve(mut client: TcpStream, member: u16, to_lose: &AtomicUsize, lost: &AtomicUsize) {
    let Some(request) = read_request(&mut client) else { return };
    let mut upstream = TcpStream::connect((Ipv4Addr::LOCALHOST, member)).expect("the member runs");
    let head_end = request.windows(2).position(|end| end == b"\r\n").expect("a request line") + 2;
    let (line, rest) = request.split_at(head_end);
    upstream.write_all(&[line, b"connection: close\r\n", rest].concat()).expect("sent");
    let mut answer = Vec::new();
    upstream.set_read_timeout(Some(Duration::from_secs(2))).expect("set");
    let _whole = upstream.read_to_end(&mut answer);
    let is_change = request.windows(14).any(|text| text == b"\"compare\":[{\"k");
    let takes_one = |left: usize| left.checked_sub(1);
    if is_change && to_lose.fetch_update(Ordering::SeqCst, Ordering::SeqCst, takes_one).is_ok() {
        lost.fetch_add(1, Ordering::SeqCst);
        return;
    }
    let _gone = client.write_all(&answer);
}

fn read_request(client: &mut TcpStream) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    let mut part = [0; 4096];
    loop {
        let count = client.read(&mut part).ok().filter(|count| *count > 0)?;
        request.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&request);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            return Some(request);
        }
    }
}
