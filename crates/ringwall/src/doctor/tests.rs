//! Checks at given facts, and their document.

use std::fmt::Write as _;

use super::facts::{Card, Daemon, Identity, Managers};
use super::*;
use crate::metrics::tests::link_layer;
use crate::modes::ConfigFile;
use crate::modes::cll::peers::InClear;
use crate::modes::file::Config;
use crate::protocol::{Answer, Peer, Status};
use crate::verdict::Level;

/// Set, the document is written instead of compared (packaging/pages.sh).
const WRITE_VARIABLE: &str = "RINGWALL_WRITE_PAGES";
const NOW: u64 = 1_795_000_000;
const DAY: u64 = 86_400;

fn machine() -> Machine {
    Machine {
        kernel: "6.1.0-40-amd64".to_owned(),
        has_tun: true,
        security_modules: Ok("lockdown,capability,landlock,yama".to_owned()),
        missing_tools: Vec::new(),
        optmem_max: Ok(20_480),
        account: Ok(true),
        clock: bump::ClockTrust::Synchronised,
        unix_s: NOW,
        managers: Managers { networkd: true, has_networkd_file: true, has_udev_rule: true, network_manager: false },
        has_systemd: true,
    }
}

fn config(lines: &str) -> ConfigFile {
    let text = format!("[host]\ninterface = \"eth0\"\n{lines}\n");
    ConfigFile::Host(Box::new(Config::read(std::path::Path::new("eth0.toml"), &text).expect("valid")))
}

fn status() -> Status {
    match *link_layer().status {
        Answer::Status(status) => Status { attacks: Default::default(), warnings: Vec::new(), ..*status },
        _ => panic!("it is a host's"),
    }
}

/// A host in place on which nothing is wrong.
fn guarded() -> Guarded {
    Guarded {
        name: "eth0".to_owned(),
        file: "eth0.toml".into(),
        config: Ok(config("takeover = \"in-place\"")),
        card: Some(Card { has_carrier: true, mtu: 1500, master: None, xdp: Some(7) }),
        identity: Some(Ok(Identity {
            not_before_unix: NOW - 10 * DAY,
            not_after_unix: NOW + 355 * DAY,
            authority_not_after_unix: NOW + 3000 * DAY,
            site_key_until_unix: u64::MAX,
            site_keys: 1,
        })),
        units: vec!["ringwall@eth0.service".to_owned()],
        daemon: Daemon::Host(Box::new(status()), Vec::new()),
        free_bytes: Ok(1 << 34),
    }
}

/// What the check called `name` says.
fn finding(name: &str, machine: &Machine, guarded: &Guarded) -> Finding {
    let check = CHECKS.iter().find(|check| check.name == name).expect("a check");
    match check.of {
        Of::Machine(judge) => judge(machine),
        Of::Interface(judge) => judge(machine, guarded),
    }
}

fn of_machine(name: &str, change: impl FnOnce(&mut Machine)) -> Finding {
    let mut machine = machine();
    change(&mut machine);
    finding(name, &machine, &guarded())
}

fn of_interface(name: &str, change: impl FnOnce(&mut Guarded)) -> Finding {
    let mut guarded = guarded();
    change(&mut guarded);
    finding(name, &machine(), &guarded)
}

/// The level, and that who reads it knows what to do.
fn assert_says(finding: &Finding, level: Level, words: &[&str]) {
    let line = format!("{}; {}", finding.what, finding.remedy);
    assert_eq!(finding.level, level, "{line}");
    assert!(words.iter().all(|word| line.contains(word)) && !finding.remedy.is_empty(), "{line}");
}

#[test]
fn where_nothing_is_wrong_all_is_good_and_nothing_is_to_be_done() {
    let lines = lines(&machine(), &[guarded()]);
    assert_eq!(lines.len(), CHECKS.len());
    let wrong: Vec<_> =
        lines.iter().filter(|line| line.finding.level != Level::Good || !line.finding.remedy.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(overall(lines.iter().map(|line| line.finding.level)), Level::Good);
}

#[test]
fn faults_of_the_machine_have_a_name_and_a_remedy() {
    let says = |name: &str, change: fn(&mut Machine), level, words: &[&str]| {
        assert_says(&of_machine(name, change), level, words);
    };
    says("kernel", |it| it.kernel = "5.10.0-30-amd64".to_owned(), Level::Critical, &["5.10.0", "5.16"]);
    says("kernel", |it| it.kernel = "5.16.0".to_owned(), Level::Warning, &["in place", "5.18"]);
    says("tun", |it| it.has_tun = false, Level::Critical, &["/dev/net/tun"]);
    says("landlock", |it| it.security_modules = Ok("yama".to_owned()), Level::Warning, &["lsm="]);
    says("landlock", |it| it.security_modules = Err("no".to_owned()), Level::Unknown, &["no"]);
    says("tools", |it| it.missing_tools = vec!["tc"], Level::Warning, &["tc", "iproute2"]);
    says("tools", |it| it.missing_tools = vec!["nft", "tc"], Level::Critical, &["nft, tc", "nftables"]);
    says("optmem", |it| it.optmem_max = Ok(10_240), Level::Warning, &["10240", "20480"]);
    says("account", |it| it.account = Ok(false), Level::Warning, &["useradd"]);
    says("clock", |it| it.clock = bump::ClockTrust::Plausible, Level::Warning, &["chrony"]);
    says("clock", |it| it.clock = bump::ClockTrust::Wrong, Level::Critical, &["set it"]);
    let newer = of_machine("optmem", |it| (it.kernel, it.optmem_max) = ("6.12.1".to_owned(), Ok(1)));
    assert_eq!(newer.level, Level::Good, "this kernel does not count programs");
}

#[test]
fn certificates_are_told_of_by_what_is_left_of_them() {
    let with = |change: fn(&mut Identity)| {
        move |guarded: &mut Guarded| {
            if let Some(Ok(identity)) = &mut guarded.identity {
                change(identity);
            }
        }
    };
    let says = |name: &str, change: fn(&mut Identity), level, words: &[&str]| {
        assert_says(&of_interface(name, with(change)), level, words);
    };
    says("identity", |it| it.not_after_unix = NOW - 3 * DAY, Level::Critical, &["over since 3 days", "site issue"]);
    says("identity", |it| it.not_after_unix = NOW + 3600, Level::Critical, &["1 h left", "renew"]);
    let of_a_year = |it: &mut Identity| (it.not_before_unix, it.not_after_unix) = (NOW - 336 * DAY, NOW + 29 * DAY);
    says("identity", of_a_year, Level::Warning, &["29 days left", "renew"]);
    says("identity", |it| it.not_before_unix = NOW + DAY, Level::Warning, &["begins in 1 day", "clock"]);
    says(
        "authority",
        |it| it.authority_not_after_unix = NOW + 29 * DAY,
        Level::Critical,
        &["29 days", "renew-authority"],
    );
    says("authority", |it| it.authority_not_after_unix = NOW + 179 * DAY, Level::Warning, &["179 days"]);
    says("authority", |it| it.authority_not_after_unix = NOW - 1, Level::Critical, &["over"]);
    says("site-key", |it| it.site_key_until_unix = NOW - 1, Level::Critical, &["another key", "renew"]);
    says("site-key", |it| it.site_key_until_unix = NOW + 2 * DAY, Level::Warning, &["2 days"]);
    // One of three weeks is not warned of from its first day on.
    let short = with(|it| (it.not_before_unix, it.not_after_unix) = (NOW - DAY, NOW + 20 * DAY));
    assert_eq!(of_interface("identity", short).level, Level::Good);
    let secret = of_interface("identity", |it| it.identity = Some(Err("Permission denied".to_owned())));
    assert_says(&secret, Level::Unknown, &["Permission denied", "root"]);
}

#[test]
fn faults_around_an_interface_have_a_name_and_a_remedy() {
    let says = |name: &str, change: fn(&mut Guarded), level, words: &[&str]| {
        assert_says(&of_interface(name, change), level, words);
    };
    let card = |it: &mut Guarded, change: fn(&mut Card)| it.card.iter_mut().for_each(change);
    says("configuration", |it| it.config = Err("eth0.toml:3: moed".to_owned()), Level::Critical, &["eth0.toml:3"]);
    says("card", |it| it.card = None, Level::Critical, &["no interface eth0"]);
    assert_says(&of_interface("card", |it| card(it, |it| it.has_carrier = false)), Level::Warning, &["cable"]);
    let bridged = of_interface("card", |it| card(it, |it| it.master = Some("br0".to_owned())));
    assert_says(&bridged, Level::Warning, &["br0"]);
    says("unit", |it| it.units.clear(), Level::Warning, &["systemctl enable ringwall@eth0"]);
    says("disk", |it| it.free_bytes = Ok(100), Level::Critical, &["0 MiB", "host.state_dir"]);
    says("disk", |it| it.free_bytes = Ok(40 << 20), Level::Warning, &["40 MiB"]);
    let absent = |is_taken| move |it: &mut Guarded| it.daemon = Daemon::Absent { is_taken };
    assert_says(&of_interface("daemon", absent(Ok(true))), Level::Critical, &["closed", "release"]);
    assert_says(&of_interface("daemon", absent(Ok(false))), Level::Warning, &["not guarded"]);
    let unplugged = |it: &mut Guarded| (it.card, it.daemon) = (None, Daemon::Absent { is_taken: Ok(true) });
    assert_says(&of_interface("daemon", unplugged), Level::Warning, &["not there", "plug it in"]);
    says("daemon", |it| it.daemon = Daemon::Unasked("denied".to_owned()), Level::Unknown, &["denied", "root"]);
}

#[test]
fn an_xdp_program_is_somebody_elses_unless_the_card_is_guarded_in_place() {
    let in_clear = |it: &mut Guarded| {
        it.config = Ok(config("takeover = \"namespace\""));
        if let Daemon::Host(status, _) = &mut it.daemon {
            status.takeover.way = "namespace".to_owned();
            status.takeover.inner_mtu = 1500;
        }
    };
    assert_says(&of_interface("xdp", in_clear), Level::Warning, &["number 7", "bpftool", "ip link set eth0 xdp off"]);
    let unasked = |it: &mut Guarded| it.daemon = Daemon::Unasked("denied".to_owned());
    assert_says(&of_interface("xdp", unasked), Level::Unknown, &["number 7", "root"]);
    let left = |it: &mut Guarded| it.daemon = Daemon::Absent { is_taken: Ok(true) };
    assert_eq!(of_interface("xdp", left).level, Level::Good, "it keeps the card closed");
    let never = |it: &mut Guarded| it.daemon = Daemon::Absent { is_taken: Ok(false) };
    assert_says(&of_interface("xdp", never), Level::Warning, &["number 7"]);
    let none = |it: &mut Guarded| it.card.iter_mut().for_each(|card| card.xdp = None);
    assert_eq!(of_interface("xdp", none).level, Level::Good);
}

/// Field report A3: somebody put the MTU back, `status` went on with the one before, and nothing
/// came through.
#[test]
fn an_mtu_that_somebody_raised_is_named_with_the_one_that_fits() {
    let raised = |it: &mut Guarded| {
        if let Daemon::Host(status, _) = &mut it.daemon {
            status.takeover.way = "namespace".to_owned();
        }
    };
    let says = of_interface("mtu", raised);
    assert_says(&says, Level::Critical, &["the MTU is 1500, and 1435 fit", "ip link set eth0 mtu 1435"]);
    let small = of_interface("mtu", |it| it.card.iter_mut().for_each(|card| card.mtu = 1200));
    assert_says(&small, Level::Warning, &["1200", "1280"]);
}

/// Survey E1: on such a host there is no address after the next boot.
#[test]
fn a_network_manager_that_will_not_find_its_interface_is_named_before_the_boot() {
    let mut machine = machine();
    machine.managers.network_manager = true;
    let mut by_namespace = guarded();
    by_namespace.config = Ok(config("takeover = \"namespace\""));
    by_namespace.daemon = Daemon::Absent { is_taken: Ok(false) };
    let says = finding("network-manager", &machine, &by_namespace);
    assert_says(&says, Level::Warning, &["NetworkManager", "in-place"]);
    assert_eq!(finding("network-manager", &machine, &guarded()).level, Level::Good);
    machine.managers.has_udev_rule = false;
    assert_says(&finding("network-manager", &machine, &guarded()), Level::Warning, &["70-ringwall.rules"]);
}

#[test]
fn peers_in_clear_are_named_with_what_would_be_dropped() {
    let Answer::Peers { peers } = *link_layer().known else { panic!("peers") };
    let plain = |mac: &str| Peer {
        mac: mac.to_owned(),
        state: "plain".to_owned(),
        in_clear: InClear {
            would_drop: [("plain-arp".to_owned(), 3), ("unsealed".to_owned(), 212)].into(),
            would_break: Vec::new(),
        },
        ..peers[0].clone()
    };
    let all: Vec<Peer> =
        (0..5).map(|last| plain(&format!("02:00:00:00:00:0{last}"))).chain([peers[0].clone()]).collect();
    let says = of_interface("peers", |it| it.daemon = Daemon::Host(Box::new(status()), all));
    assert_says(&says, Level::Warning, &["5 in clear", "02:00:00:00:00:02 (212 unsealed)", "enrol"]);
    assert!(!says.what.contains("00:03"), "the others are for `peers`: {}", says.what);
}

#[test]
fn what_could_not_be_looked_at_hides_nothing_that_is_wrong() {
    let level = |levels: &[Level]| overall(levels.iter().copied()) as u8;
    use Level::{Critical, Good, Unknown, Warning};
    assert_eq!([level(&[Good]), level(&[Good, Unknown]), level(&[Unknown, Warning])], [0, 3, 1]);
    assert_eq!(level(&[Unknown, Critical, Warning]), 2);
}

#[test]
fn the_document_names_every_check() {
    let mut page = String::from(
        "# What `ringwall doctor` looks at\n\nMade by `packaging/pages.sh`; a test compares. It changes nothing. \
         Without root and without a daemon it says what it can,\nand `unknown` of the rest. Exit status: 0 good, 1 \
         warning, 2 critical, 3 where nothing worse is known than that something could not be looked at.\n\n\
         | check | of | what it looks at |\n|---|---|---|\n",
    );
    for Check { name, about, of } in CHECKS {
        let of = if matches!(of, Of::Machine(_)) { "machine" } else { "interface" };
        let _ = writeln!(page, "| `{name}` | {of} | {about} |");
    }
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        std::fs::write(&file, page).expect("written");
    } else {
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), page, "run packaging/pages.sh");
    }
}
