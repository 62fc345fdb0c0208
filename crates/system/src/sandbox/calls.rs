//! The system calls that a daemon may make inside.
//!
//! Three filters, of which the strictest answer counts: calls that only an attacker makes end the
//! process; the newer way to start a thread, whose arguments no filter can read, is said not to be
//! there, so that the C library takes the older one; and what is not on the list is refused and
//! noted. The list was found by running each kind of daemon under strace
//! (docs/decisions/0062-a-sandbox-that-holds.md). Calls on the way of frames stand there without
//! conditions: the kernel then remembers its answer and runs no filter for them.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::landlock::{Ports, Reach};

/// What a daemon works with beside its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Nothing.
    Frames,
    /// A database whose files are open.
    Database,
    /// Connections over TCP.
    Connections,
}

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

impl Calls {
    /// The filters, in the order in which they are installed.
    pub(super) fn filters(self) -> io::Result<Vec<BpfProgram>> {
        let process = u64::from(std::process::id());
        let ends = compile(named(ENDING), SeccompAction::Allow, SeccompAction::KillProcess)?;
        let absent = BTreeMap::from([(libc::SYS_clone3, vec![])]);
        let absent = compile(absent, SeccompAction::Allow, SeccompAction::Errno(libc::ENOSYS.cast_unsigned()))?;
        let allowed = compile(self.allowed(process)?, SeccompAction::Trap, SeccompAction::Allow)?;
        Ok(vec![ends, absent, allowed])
    }

    fn allowed(self, process: u64) -> io::Result<Rules> {
        let mut rules = named(ALLOWED);
        rules.extend(conditional(process)?);
        rules.insert(libc::SYS_socket, self.sockets()?);
        match self {
            Calls::Frames | Calls::Connections => {}
            Calls::Database => {
                rules.extend(named(FOR_DATABASE));
                let locks = [libc::F_GETLK, libc::F_SETLK, libc::F_SETLKW];
                let locks = one_of(1, locks.map(|command| command.cast_unsigned().into()))?;
                rules.entry(libc::SYS_fcntl).or_default().extend(locks);
                // What the C library makes of `fstat`: the file is a descriptor, and the name
                // empty.
                let of_descriptor = SeccompCmpOp::MaskedEq(EMPTY_PATH);
                rules.insert(libc::SYS_newfstatat, vec![rule(&[(3, of_descriptor, EMPTY_PATH)])?]);
            }
        }
        Ok(rules)
    }

    fn sockets(self) -> io::Result<Vec<SeccompRule>> {
        // Routing only: rules of the firewall are others' business from here on.
        let routing = [
            (0, SeccompCmpOp::Eq, libc::AF_NETLINK.cast_unsigned().into()),
            (2, SeccompCmpOp::Eq, libc::NETLINK_ROUTE.cast_unsigned().into()),
        ];
        let streams = |family: libc::c_int| {
            let kind = SeccompCmpOp::MaskedEq(KIND_MASK);
            rule(&[(0, SeccompCmpOp::Eq, family.cast_unsigned().into()), (1, kind, STREAM)])
        };
        let mut sockets = vec![rule(&routing)?];
        if self == Calls::Connections {
            sockets.extend([streams(libc::AF_INET)?, streams(libc::AF_INET6)?]);
        }
        Ok(sockets)
    }

    /// What the calls reach of the world of files and ports.
    pub(super) fn reach(self) -> Reach {
        let connects = if self == Calls::Connections { Ports::All } else { Ports::Closed };
        Reach { connects, ..Reach::default() }
    }
}

/// The part of a socket's type that is its kind, without flags (`SOCK_TYPE_MASK` in linux/net.h).
const KIND_MASK: u64 = 0xf;
const EMPTY_PATH: u64 = libc::AT_EMPTY_PATH as u64;
const STREAM: u64 = libc::SOCK_STREAM as u64;

fn compile(rules: Rules, otherwise: SeccompAction, then: SeccompAction) -> io::Result<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, otherwise, then, architecture).map_err(io::Error::other)?;
    BpfProgram::try_from(filter).map_err(io::Error::other)
}

/// Has the calling thread, and those that it starts, judged by `filters`.
pub(super) fn install(filters: &[BpfProgram]) -> io::Result<()> {
    filters.iter().try_for_each(|filter| apply_filter(filter).map_err(io::Error::other))
}

/// Ends this process if it, or what it starts, makes a call that only an attacker makes. For a
/// process that otherwise may do what its user may.
///
/// # Errors
/// The kernel refuses.
pub fn end_at_attacks() -> io::Result<()> {
    install(&[compile(named(ENDING), SeccompAction::Allow, SeccompAction::KillProcess)?])
}

/// Sockets that a process may still make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sockets {
    /// None.
    Closed,
    /// Such as make connections over TCP. Where to is for Landlock and systemd.
    Tcp,
}

/// Refuses this process, and what it starts, every new socket but those; what it has it keeps.
///
/// # Errors
/// The kernel refuses.
pub fn forbid_sockets(but: Sockets) -> io::Result<()> {
    let refused = SeccompAction::Errno(libc::EACCES.cast_unsigned());
    let mut calls = named(SOCKETS);
    if but == Sockets::Tcp {
        calls.remove(&libc::SYS_connect);
        calls.insert(libc::SYS_socket, other_than_tcp()?);
        // Which connects unseen by Landlock.
        for (call, flags) in [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)] {
            let fast_open = libc::MSG_FASTOPEN as u64;
            calls.insert(call, vec![rule(&[(flags, SeccompCmpOp::MaskedEq(fast_open), fast_open)])?]);
        }
    }
    install(&[compile(calls, SeccompAction::Allow, refused)?])
}

/// Any other family than those of IP, and any other type or protocol than a stream over TCP has.
fn other_than_tcp() -> io::Result<Vec<SeccompRule>> {
    const TYPES: u64 = 0xf;
    let other = |place, values: [i32; 2]| rule(&values.map(|value| (place, SeccompCmpOp::Ne, value as u64)));
    let mut rules = vec![other(0, [libc::AF_INET, libc::AF_INET6])?, other(2, [0, libc::IPPROTO_TCP])?];
    // Flags stand beside the type, in the same argument.
    for kind in (0..=TYPES).filter(|kind| *kind != libc::SOCK_STREAM as u64) {
        rules.push(rule(&[(1, SeccompCmpOp::MaskedEq(TYPES), kind)])?);
    }
    Ok(rules)
}

/// What a call is called, where this program knows it.
pub(super) fn name(number: usize) -> String {
    let lists = [ALLOWED, FOR_DATABASE, LOOKED_FOR];
    let known =
        lists.into_iter().flatten().find(|(_, other)| usize::try_from(*other).is_ok_and(|other| other == number));
    match known {
        Some((name, _)) => format!("{name} ({number})"),
        None => format!("number {number}"),
    }
}

fn named(list: &[(&str, c_long)]) -> Rules {
    list.iter().map(|(_, number)| (*number, Vec::new())).collect()
}

/// A rule that holds if all conditions do: place of an argument of 32 bits, comparison, value.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> io::Result<SeccompRule> {
    let condition = |(place, comparison, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*place, SeccompCmpArgLen::Dword, comparison.clone(), *value).map_err(io::Error::other)
    };
    let conditions = conditions.iter().map(condition).collect::<io::Result<Vec<_>>>()?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// A rule for each value that the argument at `place` may have.
fn one_of(place: u8, values: impl IntoIterator<Item = u64>) -> io::Result<Vec<SeccompRule>> {
    values.into_iter().map(|value| rule(&[(place, SeccompCmpOp::Eq, value)])).collect()
}

/// Calls that are harmless with some arguments only.
fn conditional(process: u64) -> io::Result<Rules> {
    let unexecutable = |place| rule(&[(place, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)]);
    let thread_only = rule(&[(0, SeccompCmpOp::MaskedEq(THREAD | NAMESPACES), THREAD)])?;
    let ioctls = [libc::FIONBIO, libc::FIONREAD, libc::TCGETS, TUNSETCARRIER];
    let fcntls = [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC];
    Ok(BTreeMap::from([
        // No page is both written and run.
        (libc::SYS_mmap, vec![unexecutable(2)?]),
        (libc::SYS_mprotect, vec![unexecutable(2)?]),
        (libc::SYS_clone, vec![thread_only]),
        (libc::SYS_ioctl, one_of(1, ioctls)?),
        (libc::SYS_fcntl, one_of(1, fcntls.map(|command| command.cast_unsigned().into()))?),
        (libc::SYS_prctl, one_of(0, [libc::PR_SET_NAME as u64, libc::PR_SET_VMA as u64])?),
        (libc::SYS_bpf, one_of(0, MAP_COMMANDS)?),
        // A thread may end its own process, and signal nobody else.
        (libc::SYS_tgkill, one_of(0, [process])?),
        // Real time is left, never taken.
        (libc::SYS_sched_setscheduler, one_of(1, [libc::SCHED_OTHER as u64])?),
        // Limits are read, never set: the place of new ones is empty.
        (libc::SYS_prlimit64, vec![empty(2)?]),
    ]))
}

/// Holds if the pointer at `place` leads nowhere.
fn empty(place: u8) -> io::Result<SeccompRule> {
    let condition = SeccompCondition::new(place, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0);
    SeccompRule::new(vec![condition.map_err(io::Error::other)?]).map_err(io::Error::other)
}

const THREAD: u64 = (libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND) as u64;
const NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;
/// `TUNSETCARRIER` (linux/if_tun.h).
const TUNSETCARRIER: u64 = libc::TUNSETCARRIER;
/// BPF_MAP_LOOKUP_ELEM, BPF_MAP_UPDATE_ELEM, BPF_MAP_DELETE_ELEM (linux/bpf.h): entries of maps
/// that are open. No map and no program is made inside.
const MAP_COMMANDS: [u64; 3] = [1, 2, 3];

macro_rules! calls {
    ($($(#[$meta:meta])* $name:ident),* $(,)?) => {
        &[$($(#[$meta])* (stringify!($name), calls!(@number $name))),*]
    };
    (@number $name:ident) => { libc::$name };
}

/// What every daemon may do.
const ALLOWED: &[(&str, c_long)] = calls![
    // Frames.
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_recvmmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_sendmmsg,
    // Waiting.
    #[cfg(target_arch = "x86_64")]
    SYS_poll,
    SYS_ppoll,
    SYS_futex,
    SYS_nanosleep,
    SYS_clock_nanosleep,
    SYS_eventfd2,
    SYS_restart_syscall,
    SYS_sched_yield,
    // The command socket, and routing sockets, which are bound and connected to the kernel; other
    // sockets cannot be had. The lock on the interface, which is let go before it closes.
    SYS_accept4,
    SYS_bind,
    SYS_connect,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_shutdown,
    // The lock on the interface, which is let go before it closes.
    SYS_flock,
    SYS_close,
    // Time and randomness.
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_gettimeofday,
    SYS_adjtimex,
    SYS_clock_adjtime,
    SYS_getrandom,
    // Memory.
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    // Threads and signals. SYS_clone3 is here and answered by another filter.
    SYS_clone3,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_gettid,
    SYS_getpid,
    SYS_sched_getaffinity,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_exit,
    SYS_exit_group,
    // Who it is, which libraries ask for.
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_uname,
];

/// What SQLite does with files that are open. Nothing is opened by name.
const FOR_DATABASE: &[(&str, c_long)] =
    calls![SYS_pread64, SYS_pwrite64, SYS_lseek, SYS_fsync, SYS_fdatasync, SYS_ftruncate, SYS_fallocate, SYS_fstat,];

/// Calls whose names libraries may try in vain.
const LOOKED_FOR: &[(&str, c_long)] = calls![
    #[cfg(target_arch = "x86_64")]
    SYS_open,
    #[cfg(target_arch = "x86_64")]
    SYS_access,
    #[cfg(target_arch = "x86_64")]
    SYS_stat,
    #[cfg(target_arch = "x86_64")]
    SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    SYS_rename,
    SYS_openat,
    SYS_openat2,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_newfstatat,
    SYS_statx,
    SYS_readlinkat,
    SYS_unlinkat,
    SYS_renameat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_fchmod,
    SYS_fchown,
    SYS_getdents64,
    SYS_socket,
    SYS_socketpair,
    SYS_listen,
    SYS_mmap,
    SYS_mprotect,
    SYS_clone,
    SYS_ioctl,
    SYS_fcntl,
    SYS_prctl,
    SYS_bpf,
    SYS_tgkill,
    SYS_kill,
    SYS_tkill,
    SYS_prlimit64,
    SYS_sched_setscheduler,
    SYS_sched_setattr,
    SYS_setpriority,
    SYS_membarrier,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_memfd_create,
    SYS_pipe2,
    SYS_dup,
    SYS_dup3,
    SYS_epoll_create1,
    SYS_timerfd_create,
    SYS_sysinfo,
    SYS_getrusage,
];

/// What makes a socket, or gives one another side.
const SOCKETS: &[(&str, c_long)] = calls![SYS_socket, SYS_socketpair, SYS_bind, SYS_connect, SYS_listen];

/// What no daemon of ours does inside, and whoever takes one over may try: other programs, other
/// users, other privileges, other namespaces, other mounts, other processes' memory, the kernel's
/// own code.
const ENDING: &[(&str, c_long)] = calls![
    SYS_execve,
    SYS_execveat,
    SYS_setuid,
    SYS_setgid,
    SYS_setreuid,
    SYS_setregid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setfsuid,
    SYS_setfsgid,
    SYS_setgroups,
    SYS_capset,
    SYS_unshare,
    SYS_setns,
    SYS_mount,
    SYS_umount2,
    SYS_move_mount,
    SYS_open_tree,
    SYS_mount_setattr,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_pivot_root,
    SYS_chroot,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_pidfd_getfd,
    SYS_kcmp,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    #[cfg(target_arch = "x86_64")]
    SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    SYS_ioperm,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_open_by_handle_at,
    SYS_name_to_handle_at,
    SYS_swapon,
    SYS_swapoff,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_syslog,
    SYS_quotactl,
    SYS_acct,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_call_is_both_allowed_and_ending() {
        for calls in [Calls::Frames, Calls::Database, Calls::Connections] {
            let allowed = calls.allowed(1).expect("rules");
            let both: Vec<_> = ENDING.iter().filter(|(_, number)| allowed.contains_key(number)).collect();
            assert!(both.is_empty(), "{both:?}");
            calls.filters().expect("programs that the kernel could take");
        }
    }

    /// The filter is of a thread, so the rest of the tests go on.
    #[test]
    fn who_is_forbidden_sockets_gets_none_and_keeps_those_that_it_has() {
        let tried = std::thread::spawn(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("before");
            let address = listener.local_addr().expect("an address");
            forbid_sockets(Sockets::Closed).expect("forbidden");
            let tcp = std::net::TcpStream::connect(address).expect_err("no socket").kind();
            let unix = std::os::unix::net::UnixStream::pair().expect_err("no pair").kind();
            listener.set_nonblocking(true).expect("its own");
            let waits = listener.accept().expect_err("nobody").kind();
            (tcp, unix, waits)
        });
        let (denied, nobody) = (io::ErrorKind::PermissionDenied, io::ErrorKind::WouldBlock);
        assert_eq!(tried.join().expect("ended"), (denied, denied, nobody));
    }

    #[test]
    fn who_may_connect_over_tcp_makes_no_other_socket_and_listens_to_nobody() {
        let tried = std::thread::spawn(|| {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("before");
            forbid_sockets(Sockets::Tcp).expect("forbidden");
            std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
            let made = [
                std::net::TcpListener::bind("127.0.0.1:0").map(drop),
                std::net::UdpSocket::bind("127.0.0.1:0").map(drop),
                std::os::unix::net::UnixStream::pair().map(drop),
                std::os::unix::net::UnixDatagram::unbound().map(drop),
            ];
            let flags = rustix::net::SendFlags::from_bits_retain(libc::MSG_FASTOPEN.cast_unsigned());
            let family = (rustix::net::AddressFamily::INET, rustix::net::SocketType::STREAM);
            let socket = rustix::net::socket(family.0, family.1, None).expect("one for TCP");
            let address = listener.local_addr().expect("an address");
            let fast = rustix::net::sendto(&socket, b"x", flags, &address).map_err(io::Error::from);
            let fast = fast.expect_err("it connects unseen").kind();
            (made.map(|made| made.expect_err("no such socket").kind()), fast)
        });
        let denied = io::ErrorKind::PermissionDenied;
        assert_eq!(tried.join().expect("ended"), ([denied; 4], denied));
    }

    #[test]
    fn a_refused_call_has_a_name() {
        assert_eq!(
            name(usize::try_from(libc::SYS_openat).expect("a number")),
            format!("SYS_openat ({})", libc::SYS_openat)
        );
        assert_eq!(name(511), "number 511");
    }
}
