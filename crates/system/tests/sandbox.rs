//! The sandbox, tried from inside. Each attempt is a process of its own that goes through the same
//! code as a daemon, then does what somebody would do who had taken the daemon over; and a last one
//! does what a daemon needs.
//!
//! Without a harness, because tests that run in threads cannot enter a sandbox. Needs root; skips
//! by name without.
#![allow(clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(unsafe_code, reason = "attempts are system calls that nobody should make")]

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use system::privilege::Capability;
use system::sandbox::{Calls, Entered, Sandbox, UNNAMED_ID, User};
use system::wait::{PollFd, PollFlags, Waker, wait};

/// What a child answers whose attempt was refused; with success, it was not.
const REFUSED: u8 = 42;
/// The daemon of a host.
const HOST: Sandbox = Sandbox { capabilities: &[Capability::NetAdmin], calls: Calls::Frames };
/// A distributor with its repository in etcd, whose list is the longest.
const CONNECTED: Sandbox = Sandbox { capabilities: &[Capability::NetAdmin], calls: Calls::Connections };
/// One with its repository in files.
const DATABASE: Sandbox = Sandbox { capabilities: &[Capability::NetAdmin], calls: Calls::Database };
const GATEWAY: Sandbox = Sandbox { capabilities: &[], calls: Calls::Frames };

/// How an attempt must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The call fails, and the daemon goes on.
    Refused,
    /// The kernel ends the process.
    Killed,
}

type Attempt = (&'static str, End, fn() -> io::Result<()>);

fn outcome(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A system call as its number and arguments.
macro_rules! call {
    ($number:expr $(, $argument:expr)*) => {{
        // SAFETY: every pointer among the arguments is null or to a value that outlives the call,
        // and what a call that is not refused would do to this process is its end.
        outcome(unsafe { libc::syscall($number $(, $argument)*) })
    }};
}

fn open_to_write(path: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path).map(drop)
}

fn socket(family: libc::c_int, kind: libc::c_int) -> io::Result<()> {
    call!(libc::SYS_socket, family, kind, 0)
}

/// To nftables, where the filter of a guarded card is.
fn firewall() -> io::Result<()> {
    call!(libc::SYS_socket, libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER)
}

fn execute() -> io::Result<()> {
    let arguments = [c"/bin/true".as_ptr(), std::ptr::null()];
    call!(libc::SYS_execve, c"/bin/true".as_ptr(), arguments.as_ptr(), std::ptr::null::<*const libc::c_char>())
}

fn mount() -> io::Result<()> {
    call!(libc::SYS_mount, c"none".as_ptr(), c"/mnt".as_ptr(), c"tmpfs".as_ptr(), 0, 0)
}

/// A header of version 3 and two words of sets that ask for CAP_SYS_ADMIN (capget(2)).
fn regain() -> io::Result<()> {
    let header = [0x2008_0522_u32, 0];
    let sets = [1_u32 << 21, 1 << 21, 0, 0, 0, 0];
    call!(libc::SYS_capset, header.as_ptr(), sets.as_ptr())
}

/// The shortest program, `r0 = 0; exit`, as a socket filter. `BPF_PROG_LOAD` is 5.
fn load_program() -> io::Result<()> {
    let program = [0xb7_u64, 0x95];
    let mut attributes = [0_u64; 16];
    attributes[0] = 1 | 2 << 32;
    attributes[1] = program.as_ptr() as u64;
    attributes[2] = c"GPL".as_ptr() as u64;
    call!(libc::SYS_bpf, 5, attributes.as_mut_ptr(), size_of_val(&attributes))
}

/// An array of one word. `BPF_MAP_CREATE` is 0.
fn make_map() -> io::Result<()> {
    let mut attributes = [0_u32; 32];
    attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
    call!(libc::SYS_bpf, 0, attributes.as_mut_ptr(), size_of_val(&attributes))
}

/// A page that is written and run.
fn run_written() -> io::Result<()> {
    let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    call!(libc::SYS_mmap, 0, 4096, protection, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
}

/// A child with a copy of this process's memory.
fn fork() -> io::Result<()> {
    // SAFETY: a child that there should not be ends at once.
    match unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) } {
        0 => std::process::exit(0),
        other => outcome(other),
    }
}

fn dump() -> io::Result<()> {
    call!(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0)
}

fn lift_limit() -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: 1 << 20, rlim_max: 1 << 20 };
    call!(libc::SYS_prlimit64, 0, libc::RLIMIT_CORE, &raw const limit, 0)
}

fn real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 10 };
    call!(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameters)
}

const ATTEMPTS: &[Attempt] = &[
    ("write core_pattern", End::Refused, || open_to_write("/proc/sys/kernel/core_pattern")),
    ("write modprobe", End::Refused, || open_to_write("/proc/sys/kernel/modprobe")),
    ("write ip_forward", End::Refused, || open_to_write("/proc/sys/net/ipv4/ip_forward")),
    ("write sysrq-trigger", End::Refused, || open_to_write("/proc/sysrq-trigger")),
    ("write shadow", End::Refused, || open_to_write("/etc/shadow")),
    ("read shadow", End::Refused, || fs::read("/etc/shadow").map(drop)),
    ("read a file of everybody", End::Refused, || fs::read("/etc/passwd").map(drop)),
    ("make a file in cron.d", End::Refused, || fs::write("/etc/cron.d/ringwall-test", "")),
    ("make a file in tmp", End::Refused, || fs::write("/tmp/ringwall-test", "")),
    ("remove a file", End::Refused, || fs::remove_file("/etc/ringwall-test-is-not-there")),
    ("list a directory", End::Refused, || fs::read_dir("/").map(drop)),
    ("setuid 0", End::Killed, || call!(libc::SYS_setuid, 0)),
    ("setresuid 0", End::Killed, || call!(libc::SYS_setresuid, 0, 0, 0)),
    ("setgid 0", End::Killed, || call!(libc::SYS_setgid, 0)),
    ("regain a capability", End::Killed, regain),
    ("trace another process", End::Killed, || call!(libc::SYS_ptrace, libc::PTRACE_ATTACH, 1, 0, 0)),
    ("read memory of another", End::Killed, || call!(libc::SYS_process_vm_readv, 1, 0, 0, 0, 0, 0)),
    ("signal another process", End::Refused, || call!(libc::SYS_kill, 1, 0)),
    ("signal a thread of another", End::Refused, || call!(libc::SYS_tgkill, 1, 1, 0)),
    ("execute a program", End::Killed, execute),
    ("fork", End::Refused, fork),
    ("mount", End::Killed, mount),
    ("change the root", End::Killed, || call!(libc::SYS_chroot, c"/".as_ptr())),
    ("unshare a user namespace", End::Killed, || call!(libc::SYS_unshare, libc::CLONE_NEWUSER)),
    ("enter a namespace", End::Killed, || call!(libc::SYS_setns, 0, libc::CLONE_NEWNET)),
    ("load a module", End::Killed, || call!(libc::SYS_finit_module, 0, c"".as_ptr(), 0)),
    ("load a program into the kernel", End::Refused, load_program),
    ("make a map in the kernel", End::Refused, make_map),
    ("open a packet socket", End::Refused, || socket(libc::AF_PACKET, libc::SOCK_RAW)),
    ("open a socket of the firewall", End::Refused, firewall),
    ("open a socket of IPv4", End::Refused, || socket(libc::AF_INET, libc::SOCK_STREAM)),
    ("open a socket of UDP", End::Refused, || socket(libc::AF_INET6, libc::SOCK_DGRAM)),
    ("open a local socket", End::Refused, || UnixDatagram::unbound().map(drop)),
    ("open a socket of vsock", End::Refused, || socket(libc::AF_VSOCK, libc::SOCK_STREAM)),
    ("open a socket of the kernel's crypto", End::Refused, || socket(libc::AF_ALG, libc::SOCK_SEQPACKET)),
    ("write and run a page", End::Refused, run_written),
    ("become dumpable", End::Refused, dump),
    ("lift the limit of cores", End::Refused, lift_limit),
    ("take a real-time priority", End::Refused, real_time),
    ("use io_uring", End::Killed, || call!(libc::SYS_io_uring_setup, 1, 0)),
    ("use keys of the kernel", End::Killed, || call!(libc::SYS_keyctl, 0, 0, 0, 0, 0)),
    ("set the clock", End::Killed, || call!(libc::SYS_clock_settime, libc::CLOCK_REALTIME, 0)),
];

/// Attempts that the longer lists of a distributor must not make possible either.
const FROM_A_DISTRIBUTOR: &[&str] = &[
    "write core_pattern",
    "read shadow",
    "read a file of everybody",
    "setuid 0",
    "execute a program",
    "fork",
    "open a packet socket",
    "open a socket of UDP",
    "load a program into the kernel",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["attempt", kind, name] => attempt(kind, name),
        ["work", kind] => work(kind),
        // Cargo lists and filters tests by options that mean nothing here.
        _ => all(),
    }
}

fn all() -> ExitCode {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED sandbox: needs root");
        return ExitCode::SUCCESS;
    }
    let (mut tried, mut wrong) = (0, Vec::new());
    for kind in ["host", "gateway", "database", "connected"] {
        let is_distributor = matches!(kind, "database" | "connected");
        for (name, expected, _) in ATTEMPTS {
            if is_distributor && !FROM_A_DISTRIBUTOR.contains(name) {
                continue;
            }
            tried += 1;
            let status = child(&["attempt", kind, name]);
            if end(status) != Some(*expected) {
                wrong.push(format!("{kind}: {name}: {status}, expected {expected:?}"));
            }
        }
        let status = child(&["work", kind]);
        if !status.success() {
            wrong.push(format!("{kind}: what a daemon needs: {status}"));
        }
    }
    wrong.iter().for_each(|line| eprintln!("FAILED {line}"));
    println!("sandbox: {tried} attempts from inside, {} wrong", wrong.len());
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn child(words: &[&str]) -> ExitStatus {
    let program = std::env::current_exe().expect("this program has a file");
    Command::new(program).args(words).status().expect("it starts")
}

fn end(status: ExitStatus) -> Option<End> {
    match (status.code(), status.signal()) {
        (Some(code), _) if code == i32::from(REFUSED) => Some(End::Refused),
        (_, Some(libc::SIGSYS)) => Some(End::Killed),
        _ => None,
    }
}

fn enter(kind: &str) -> Entered {
    let sandbox = match kind {
        "host" => HOST,
        "gateway" => GATEWAY,
        "database" => DATABASE,
        _ => CONNECTED,
    };
    sandbox.enter().expect("root may enter")
}

/// The filter is what must refuse, whatever other fence this kernel has behind it.
fn attempt(kind: &str, name: &str) -> ExitCode {
    let (_, _, act) = ATTEMPTS.iter().find(|(other, ..)| *other == name).expect("a known attempt");
    let mut entered = enter(kind);
    match act() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.raw_os_error() == Some(libc::EPERM) && !entered.refused.news().is_empty() => {
            ExitCode::from(REFUSED)
        }
        Err(error) => panic!("{name} failed, but not by the filter: {error}"),
    }
}

/// What a daemon does inside: threads, waiting, its sockets, memory, its log, and a neighbour that
/// an operator named.
fn work(kind: &str) -> ExitCode {
    let (mut near, mut far) = UnixStream::pair().expect("sockets");
    let waker = Waker::new().expect("a waker");
    // Opened outside, read inside.
    let mut status = fs::File::open("/proc/self/status").expect("readable");
    let mut database = tempfile::tempfile().expect("a file");
    let mut entered = enter(kind);

    near.write_all(b"question").expect("written");
    let mut heard = [0; 8];
    far.read_exact(&mut heard).expect("read");
    let worker = std::thread::Builder::new().name("worker".to_owned());
    let worker = worker.spawn(move || {
        waker.wake();
        waker
    });
    let waker = worker.expect("a thread").join().expect("it ends well");
    assert_eq!(wait(&mut [PollFd::new(&waker, PollFlags::IN)], Some(Duration::from_secs(5))).expect("waited"), 1);
    Waker::new().expect("another one");
    let memory: Vec<Vec<u8>> = (0..64).map(|at| vec![at; 1 << 20]).collect();
    assert_eq!(memory.iter().map(|block| u64::from(block[77])).sum::<u64>(), 2016);
    drop(memory);
    system::random::seed().expect("random bytes");
    let _ = system::clock::Clock::new().now();
    let unknown = system::takeover::set_permanent_neighbour("rl-none", [10, 0, 0, 1].into(), wire::MacAddress([2; 6]));
    let unknown = unknown.expect_err("no such interface").to_string();
    assert!(unknown.contains("no such interface"), "{unknown}");
    if kind == "database" {
        database.write_all(b"row").and_then(|()| database.sync_all()).expect("kept");
    }
    assert_eq!(entered.refused.news(), Vec::<String>::new(), "a daemon's own work");

    let connects = std::net::TcpStream::connect(("127.0.0.1", 1)).expect_err("nobody listens on port 1");
    let expected = if kind == "connected" { io::ErrorKind::ConnectionRefused } else { io::ErrorKind::PermissionDenied };
    assert_eq!(connects.kind(), expected, "{connects}");
    let mut text = String::new();
    status.read_to_string(&mut text).expect("readable through a descriptor");
    check_status(kind, &text, &entered);
    ExitCode::SUCCESS
}

fn field<'a>(status: &'a str, name: &str) -> &'a str {
    status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel tells").trim()
}

fn check_status(kind: &str, status: &str, entered: &Entered) {
    let user: &User = &entered.user;
    let (uids, gids) = ([user.uid(); 4], [user.gid(); 4]);
    let told = |ids: [u32; 4]| ids.map(|id| id.to_string()).join("\t");
    assert_eq!((field(status, "Uid:"), field(status, "Gid:")), (told(uids).as_str(), told(gids).as_str()));
    assert!(user.uid() == UNNAMED_ID || (user.uid() != 0 && user.to_string().starts_with("ringwall")));
    assert_eq!((field(status, "Groups:"), field(status, "NoNewPrivs:")), ("", "1"));
    assert_eq!((field(status, "Seccomp:"), field(status, "Seccomp_filters:")), ("2", "3"));
    let capabilities = u64::from_str_radix(field(status, "CapEff:"), 16).expect("a number");
    // CAP_NET_ADMIN for a host, and CAP_IPC_LOCK where the limit of locked memory could not be
    // lifted.
    let wanted = if kind == "gateway" { 0 } else { 1 << 12 };
    assert_eq!(capabilities & !(1 << 14), wanted);
    assert!(entered.unlocked.is_some() || !field(status, "VmLck:").starts_with("0 "), "{status}");
}
