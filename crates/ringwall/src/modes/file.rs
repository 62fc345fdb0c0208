//! The whole configuration file of a host: one section for each mode, and those that belong to
//! none.
//!
//! Whoever adds a mode adds its section here. What a section demands is in `modes/*/config.rs`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use system::clock::Clock;
use system::takeover::Way;
use wire::EtherType;

use super::cll::config::migration::sets_mode;
use super::cll::config::{Cll, MigrationName, Trains};
use super::ipsec::config::{self as ipsec, Shield};
use super::name::Mode;
use super::null::config as null;
use super::sarp::config::{Akd, Sarp};
use crate::config::{Dhcp, HookName, Host, Lab, Profile, Records, Site, Takeover, read_text, socket, syntax};
use crate::failure::Failure;

/// The whole file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) host: Host,
    #[serde(default)]
    pub(crate) cll: Cll,
    #[serde(default)]
    pub(crate) sarp: Sarp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) akd: Option<Akd>,
    #[serde(default)]
    pub(crate) dhcp: Dhcp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shield: Option<Shield>,
    #[serde(default)]
    pub(crate) records: Records,
    #[serde(default)]
    pub(crate) site: Site,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lab: Option<Lab>,
    /// Whether this file names a mode of migration.
    #[serde(skip)]
    pub(crate) sets_mode: bool,
    /// Whether this kernel cuts joined datagrams, once it was asked.
    #[serde(skip)]
    pub(crate) kernel_cuts: Option<bool>,
    /// Whether the interface is a card of a wireless network, which the daemon finds out at its
    /// start.
    #[serde(skip)]
    pub(crate) is_wireless: bool,
}

impl Config {
    /// Reads and checks `file`.
    pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
        Config::read(file, &read_text(file)?)
    }

    /// Reads and checks `text`, the content of `file`.
    pub(crate) fn read(file: &Path, text: &str) -> Result<Config, Failure> {
        let mut config: Config = toml::from_str(text).map_err(|error| syntax(file, text, &error))?;
        config.sets_mode = sets_mode(text);
        config.check(file)?;
        config.akd.iter_mut().for_each(Akd::fill);
        Ok(config)
    }

    /// That the sections go together. What each word must be, its type has seen to.
    fn check(&self, file: &Path) -> Result<(), Failure> {
        let (host, lab) = (&self.host, self.lab.as_ref());
        Lab::check(lab, host, file)?;
        null::check(host, file)?;
        host.check(file)?;
        self.check_in_place(file)?;
        self.akd.as_ref().map_or(Ok(()), |akd| akd.check(host, file))?;
        self.dhcp.check(host, self.akd.is_some(), file)?;
        ipsec::check(self.shield.as_ref(), host, file)?;
        self.records.check(file)?;
        self.site.check(file)?;
        self.sarp.check(host, lab, file)?;
        self.cll.check(host, file)
    }

    /// Which frames leave in trains.
    pub(crate) fn trains(&self) -> Trains {
        self.cll.trains(self.kernel_cuts)
    }

    /// EtherTypes that pass in clear. A wireless card must agree on the keys of the radio with its
    /// access point (IEEE 802.11, 12.7.2) before any frame can be sealed.
    pub(crate) fn passing(&self) -> Vec<EtherType> {
        let mut passing = self.cll.pass();
        if self.is_wireless && !passing.contains(&EtherType::EAPOL) {
            passing.push(EtherType::EAPOL);
        }
        passing
    }

    /// Whether a card can stay in place under this configuration; if not, the words that stand
    /// against it, and a remedy. There is no room for a second program in front of a sealed card,
    /// and programs behind packet sockets would hear DHCP that nobody proved.
    fn stays_in_place(&self) -> Result<(), (&'static str, &'static str)> {
        match self.host.mode {
            Mode::Cll if self.cll.kernel_hook != HookName::Socket => {
                Err(("cll.kernel_hook, which wants the same place in front of the card", "use \"socket\" there"))
            }
            Mode::Sarp if self.dhcp.is_on() => Err(("[dhcp] in mode = \"sarp\"", "use host.takeover = \"namespace\"")),
            Mode::Cll | Mode::Sarp => Ok(()),
            Mode::Shield | Mode::Null => Err(("this mode", "use host.takeover = \"namespace\"")),
        }
    }

    /// The way to try first: "auto" leaves a card where it is if that goes with the rest. If not,
    /// also what it does not go with.
    pub(crate) fn way(&self) -> (Way, Option<&'static str>) {
        match (self.host.takeover, self.stays_in_place()) {
            (Takeover::Namespace, _) => (Way::Namespace, None),
            (Takeover::InPlace, _) | (Takeover::Auto | Takeover::Filter, Ok(())) => (Way::InPlace, None),
            (Takeover::Auto | Takeover::Filter, Err((what, _))) => (Way::Namespace, Some(what)),
        }
    }

    fn check_in_place(&self, file: &Path) -> Result<(), Failure> {
        match self.stays_in_place() {
            Err((what, remedy)) if self.host.takeover == Takeover::InPlace => {
                Err(Failure::file(file, format!("host.takeover = \"in-place\" does not go with {what}"), remedy))
            }
            _ => Ok(()),
        }
    }

    /// What is allowed and yet unwise, one line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = match (self.host.mode, &self.shield) {
            (Mode::Shield, Some(section)) => section.warnings(),
            (Mode::Sarp, _) => self.sarp.warnings(),
            (Mode::Cll, _) => self.cll.warnings(),
            (Mode::Shield | Mode::Null, _) => Vec::new(),
        };
        warnings.extend(self.host.takeover.warning());
        if self.host.profile == Profile::Paper {
            warnings.push(self.host.mode.paper_warning().to_owned());
        }
        warnings.extend(self.cll.nonce_only_warning());
        warnings
    }

    /// What a guarded host drops in this version because it is not carried. DHCP passes in clear
    /// before mode `enforce`.
    pub(crate) fn not_carried(&self) -> Vec<String> {
        let always: &[&str] = match self.host.mode {
            Mode::Cll => &["IPv6 of legacy hosts", "frames with VLAN tags on the wire"],
            Mode::Sarp | Mode::Shield => &["frames with VLAN tags"],
            Mode::Null => &[],
        };
        let lacks_dhcp = self.cll.migration == MigrationName::Enforce && !self.dhcp.is_on();
        let dhcp =
            (self.host.mode == Mode::Cll && lacks_dhcp).then_some("DHCP (neither dhcp.client nor dhcp.server is on)");
        dhcp.into_iter().chain(always.iter().copied()).map(str::to_owned).collect()
    }

    /// The clock that the daemon goes by.
    pub(crate) fn clock(&self) -> Clock {
        Lab::clock(self.lab.as_ref())
    }

    /// What a laboratory has switched off or set wrong.
    pub(crate) fn weakened(&self) -> Vec<String> {
        let of_lab = self.lab.iter().flat_map(Lab::weakened);
        of_lab.chain(self.shield.iter().flat_map(Shield::weakened)).collect()
    }

    /// Where the site's policy is looked for.
    pub(crate) fn policy_file(&self) -> PathBuf {
        self.host.policy_file(self.cll.revocation_list.as_deref())
    }

    /// Where the daemon listens for commands.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.host.run_dir, &self.host.interface)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use identity::aead::Suite;
    use identity::profile::HAS_PAPER;

    use super::*;
    use crate::config::OnExit;

    pub(crate) fn load(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("host.toml");
        std::fs::write(&file, text).expect("written");
        Config::load(&file).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_shortest_file_gets_the_defaults() {
        let config = load("[host]\ninterface = \"eth0\"\n").expect("valid");
        assert_eq!(config.host.mode, Mode::Cll);
        assert_eq!(config.host.on_exit, OnExit::Closed);
        assert_eq!(config.cll.ethertype.ethertype().0, 0x07d0);
        assert!(config.cll.confidentiality);
    }

    #[test]
    fn a_wireless_card_speaks_with_its_access_point_in_clear_and_no_other_does() {
        let passes = |is_wireless: bool, pass: &str| {
            let text = format!("[host]\ninterface = \"wlan0\"\n[cll]\npass = [{pass}]\n");
            Config { is_wireless, ..load(&text).expect("valid") }.passing()
        };
        assert_eq!(passes(false, ""), []);
        assert_eq!(passes(true, ""), [EtherType::EAPOL]);
        assert_eq!(passes(true, "\"802.1x\", \"lldp\""), [EtherType::EAPOL, EtherType::LLDP]);
        assert_eq!(passes(true, "\"lldp\""), [EtherType::LLDP, EtherType::EAPOL]);
    }

    #[test]
    fn auto_leaves_the_card_where_it_is_unless_the_rest_speaks_against_it() {
        let way = |host: &str, rest: &str| {
            load(&format!("[host]\ninterface = \"eth0\"\n{host}\n{rest}")).expect("valid").way()
        };
        let (cll, sarp) = ("mode = \"cll\"", "mode = \"sarp\"");
        assert_eq!(way("", ""), (Way::InPlace, None));
        assert_eq!(way(cll, "[cll]\nmigration = \"observe\"\n[dhcp]\nclient = true\n"), (Way::InPlace, None));
        assert_eq!(way(sarp, ""), (Way::InPlace, None));
        let (elsewhere, why) = way(cll, "[cll]\nkernel_hook = \"xdp\"\n");
        assert!(elsewhere == Way::Namespace && why.is_some_and(|why| why.starts_with("cll.kernel_hook")));
        let (elsewhere, why) = way(sarp, "[dhcp]\nclient = true\n");
        assert!(elsewhere == Way::Namespace && why.is_some_and(|why| why.starts_with("[dhcp]")));
        assert_eq!(way("takeover = \"namespace\"", "[cll]\nkernel_hook = \"xdp\"\n"), (Way::Namespace, None));
    }

    #[test]
    fn a_way_of_former_versions_counts_as_auto_and_is_told() {
        let config = |host: &str| load(&format!("[host]\ninterface = \"eth0\"\n{host}\n")).expect("valid");
        let former = config("takeover = \"filter\"");
        assert_eq!(former.way(), config("").way());
        assert!(former.warnings().iter().any(|line| line.contains("\"filter\"") && line.contains("\"auto\"")));
        assert_eq!(config("takeover = \"auto\"").warnings(), config("").warnings());
    }

    #[test]
    fn a_suite_chosen_here_is_one_that_this_host_would_accept() {
        let chosen = |suites: &str| {
            let config = load(&format!("[host]\ninterface = \"eth0\"\n[cll]\nrequire_suites = [{suites}]\n"));
            {
                let config = config.expect("valid");
                config.cll.send_suite(config.host.profile)
            }
        };
        assert_eq!(chosen("\"aes-128-gcm\", \"aes-256-gcm\""), Suite::Aes128Gcm);
        let all: Vec<_> = Suite::ALL.iter().rev().map(|suite| format!("\"{}\"", suite.name())).collect();
        assert_eq!(chosen(&all.join(", ")), Suite::fastest_here());
    }

    #[test]
    fn what_config_show_prints_is_read_back() {
        let text = "[host]\ninterface = \"eth0\"\n[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n";
        let config = load(text).expect("valid");
        let shown = toml::to_string(&config).expect("printable");
        let again = load(&shown).expect("what is shown is valid");
        assert_eq!(toml::to_string(&again).expect("printable"), shown);
    }

    #[test]
    fn a_long_window_draws_a_warning_where_it_counts() {
        let warnings = |mode: &str, window_s: u32| {
            let text = format!("[host]\ninterface = \"eth0\"\nmode = \"{mode}\"\n[sarp]\nwindow_s = {window_s}\n");
            load(&text).expect("valid").warnings()
        };
        assert!(warnings("sarp", 60).is_empty() && warnings("cll", 61).is_empty());
        assert!(warnings("sarp", 61)[0].starts_with("sarp.window_s = 61 "), "it names the key");
    }

    #[test]
    fn the_paper_profile_is_called_what_it_is() {
        let signed = load("[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"paper\"\n");
        if !HAS_PAPER {
            let line = signed.expect_err("no such profile");
            assert!(line.contains("not in this build") && line.contains("the feature \"paper\""), "{line}");
            return;
        }
        let config = signed.expect("valid");
        assert_eq!(config.warnings(), [Mode::Sarp.paper_warning()]);
        assert_eq!(config.host.profile.of_keys(), identity::Profile::Paper);
        let text = "[host]\ninterface = \"eth0\"\nprofile = \"paper\"\n";
        let config = load(text).expect("valid");
        assert_eq!(config.warnings(), [Mode::Cll.paper_warning()]);
        let suite = |config: &Config| config.cll.send_suite(config.host.profile).name();
        assert_eq!(suite(&config), "twofish-128-hmac-md5");
        assert_eq!(config.cll.requirement(config.host.profile).suites.len(), 136);
        let config = load(&format!("{text}[cll]\nsend_suite = \"gost-256-hmac-has160\"\n")).expect("valid");
        assert_eq!(suite(&config), "gost-256-hmac-has160");
        assert_eq!(Profile::Lab.of_keys(), identity::Profile::Modern);
    }

    macro_rules! SHIELD {
        ($lines:literal) => {
            concat!("[host]\ninterface = \"eth0\"\nmode = \"shield\"\n[shield]\n", $lines)
        };
    }

    #[test]
    fn a_shield_says_what_it_lets_pass_and_what_is_off() {
        let text = SHIELD!("strangers = \"pass\"\n[[shield.peers]]\naddress = \"10.0.0.9\"\n");
        let config = load(text).expect("valid");
        assert!(config.warnings()[0].starts_with("shield.strangers = \"pass\": "), "{:?}", config.warnings());
        assert!(config.weakened().is_empty());
        let text = text
            .replace("strangers = \"pass\"", "off = [\"window\"]")
            .replace("[shield]\n", "profile = \"lab\"\n[shield]\n");
        assert_eq!(load(&text).expect("valid").weakened(), ["shield layer window"]);
    }

    macro_rules! AKD {
        ($lines:literal) => {
            concat!("[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[akd]\n", $lines, "\n")
        };
    }

    #[test]
    fn a_distributor_looks_hosts_up_in_one_place() {
        let shown = |text: &str| toml::to_string(&load(text).expect("valid").akd.expect("there")).expect("text");
        assert_eq!(shown(AKD!("")), "repository = \"/etc/ringwall/site/hosts.db\"\n");
        let cluster = shown(AKD!("etcd = [\"https://10.0.0.21:2379\"]\netcd_ca = \"ca.pem\""));
        assert_eq!(cluster, "etcd = [\"https://10.0.0.21:2379\"]\netcd_ca = \"ca.pem\"\n");
    }

    #[test]
    fn mistakes_name_file_line_and_remedy_in_one_line() {
        let cases = [
            ("[host]\ninterface = \"eth0\"\nmoed = \"cll\"\n", "host.toml:3", "did you mean \"mode\"?"),
            ("[host]\n", "host.toml:1", "interface"),
            ("[host]\ninterface = \"eth0\"\n[lab]\nweaken = []\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\n[lab]\nclock_offset_s = 5\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\nmode = \"null\"\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\n[cll]\nsend_suite = \"des\"\n", "host.toml", "aes-256-gcm"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nethertype = 1500\n", "host.toml", "0x07d0"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nlifetime_s = 10\n", "host.toml", "at least 900"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nlifetime_s = 86401\n", "host.toml", "at most 86400"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nidle_s = 59\n", "host.toml", "at least 60"),
            ("[host]\ninterface = \"eth0\"\n[cll]\npass = [\"ipx\"]\n", "host.toml", "lldp"),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nkernel_handshakes_per_second = 999\n",
                "host.toml:4",
                "1000 to 1000000",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nkernel_group_frames_per_second = 1000001\n",
                "host.toml:4",
                "1000 to 1000000",
            ),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_above = 251\n", "host.toml", "1 to 250"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_delay_ms = 101\n", "host.toml", "1 to 100"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_frames = 65\n", "host.toml", "1 to 64"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nticket_lifetime_s = 86401\n", "host.toml", "60 to 86400"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nclock_tolerance_s = 901\n", "host.toml", "at most 600"),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nwindow_s = 301\n", "host.toml", "1 to 300"),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nwindow_s = 0\n", "host.toml", "1 to 300"),
            (
                "[host]\ninterface = \"eth0\"\n[[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n\
                 [[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:0a\"\n",
                "host.toml",
                "10.0.0.9 twice",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"shield\"\nprofile = \"paper\"\n",
                "host.toml",
                "needs mode = \"sarp\" or mode = \"cll\"",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nsend_suite = \"twofish-128-hmac-md5\"\n",
                "host.toml",
                "is of the paper profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nrequire_suites = [\"aes-128-hmac-sha1\"]\n",
                "host.toml",
                "is of the paper profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\nprofile = \"paper\"\n[cll]\nsend_suite = \"aes-256-gcm\"\n",
                "host.toml",
                "is of the modern profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[dhcp]\nserver = true\norder = \"paper\"\n",
                "host.toml",
                "needs profile = \"paper\"",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"paper\"\n[lab]\n",
                "host.toml",
                "profile = \"lab\"",
            ),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nrefresh_key_every = \"59m\"\n", "host.toml", "\"1h\" to \"3650d\""),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nrefresh_key_every = \"often\"\n", "host.toml", "30d"),
            ("[host]\ninterface = \"eth0\"\n[akd]\n", "host.toml", "needs mode = \"sarp\""),
            (SHIELD!("[dhcp]\nclient = true\n"), "host.toml", "needs mode = \"cll\" or \"sarp\""),
            ("[host]\ninterface = \"eth0\"\n[dhcp]\nmessages_per_minute = 3\n", "host.toml", "at least 4"),
            (
                "[host]\ninterface = \"eth0\"\n[dhcp]\nserver = true\n\
                 [[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n",
                "host.toml",
                "no relayed DHCP",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[akd]\n[dhcp]\nserver = true\n",
                "host.toml",
                "exclude each other",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n",
                "host.toml",
                "dhcp.server",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[dhcp]\nserver = true\n\
                 [[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"x\"\n",
                "host.toml",
                "one host",
            ),
            (AKD!("etcd = [\"https://10.0.0.21:2379\"]"), "host.toml: akd.etcd_ca: ", "name the file of the authority"),
            (
                AKD!("etcd = [\"http://10.0.0.21:2379\"]"),
                "host.toml: akd.etcd: http://10.0.0.21:2379 ",
                "akd.etcd_unprotected",
            ),
            (AKD!("etcd = [\"10.0.0.21\"]"), "host.toml: akd.etcd: ", "write https://ADDRESS:PORT"),
            (
                AKD!("etcd = [\"http://127.0.0.1:1\"]\nrepository = \"x\""),
                "host.toml: akd.repository and akd.etcd",
                "keep",
            ),
            (AKD!("etcd = [\"http://127.0.0.1:1\"]\netcd_key = \"x\""), "host.toml: akd.etcd_certificate: ", "both"),
            (AKD!("etcd_ca = \"x\""), "host.toml: keys akd.etcd_... without akd.etcd", "name the cluster's members"),
            (
                "[host]\ninterface = \"eth0\"\n[[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"x\"\n",
                "host.toml",
                "one host",
            ),
            ("[host]\ninterface = \"eth0\"\nmode = \"shield\"\n", "host.toml", "needs the section [shield]"),
            ("[host]\ninterface = \"eth0\"\n[shield]\n", "host.toml", "needs mode = \"shield\""),
            (SHIELD!(""), "host.toml", "0 sections [[shield.peers]]"),
            (SHIELD!("spi_min = 255\n"), "host.toml", "charon.spi_min"),
            (SHIELD!("spi_min = 9000\nspi_max = 8999\n"), "host.toml", "are no range"),
            (SHIELD!("ike_per_second = 0\n"), "host.toml", "shield.ike_per_second = 0"),
            (SHIELD!("off = [\"window\"]\n"), "host.toml", "shield.off needs profile = \"lab\""),
            (SHIELD!("[[shield.peers]]\naddress = \"10.0.0.300\"\n"), "host.toml:6", "IP address"),
            (
                SHIELD!("[[shield.peers]]\naddress = \"fd00::2\"\n[[shield.peers]]\naddress = \"fd00::2\"\n"),
                "host.toml",
                "fd00::2 twice",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"ff:ff:ff:ff:ff:ff\"\n",
                "host.toml",
                "one host",
            ),
        ];
        for (text, place, word) in cases {
            let line = load(text).expect_err("a mistake");
            let word = mistake_of(text, word);
            assert!(line.contains(place) && line.contains(word) && !line.contains('\n'), "{line}");
        }
    }

    /// What is said of `text`: a build without the paper profile refuses it before all else, and
    /// knows no suite of it.
    pub(crate) fn mistake_of<'a>(text: &str, word: &'a str) -> &'a str {
        match word {
            _ if HAS_PAPER => word,
            "is of the paper profile" => "unknown suite",
            _ if text.contains("profile = \"paper\"\n") && !text.contains("[lab]") => "not in this build",
            _ => word,
        }
    }
}
