//! `ringwall site token`, `pending`, `approve`, `refuse` and `rekey`: hosts that enrol by token, and hosts that get another key.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::directory::{Application, Delivery, Invitation, number_text};
use authority::limits::{HOST_VALIDITY, TOKEN_VALIDITY};
use authority::repository::Subnet;
use authority::repository::enrolment::Progress;
use clap::Args;
use identity::certificate::{Role, utc_text};
use identity::token::Token;
use serde_json::{Value, json};
use wire::MacAddress;

use super::arguments::{overwrite, parse_role, sharing, whole_days};
use super::issuing::{Holds, read_request};
use super::listing::{entry_json, entry_text};
use super::table::{self, Row};
use super::{DAY, DEFAULT_DIRECTORY, Surroundings, many};
use crate::config::duration::parse_time;
use crate::failure::Failure;

/// Arguments of `site token`.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Names of hosts, a token for each
    #[arg(value_name = "NAME", required_unless_present_any = ["name", "csv"])]
    names: Vec<String>,
    /// Name that the host gets
    #[arg(long, conflicts_with = "names")]
    name: Option<String>,
    /// A table of hosts, a token for each: columns name, mac, ip, subnet, role, as `site survey
    /// --csv` writes it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["names", "name", "mac", "ip"])]
    csv: Option<PathBuf>,
    /// Hardware address that must ask; any may without it, and `site pending` shows which did
    #[arg(long, value_name = "MAC")]
    mac: Option<MacAddress>,
    /// An IPv4 address that the host gets; repeat it for several. Without --ip and --subnet it gets those that it asks for
    #[arg(long, value_name = "IP")]
    ip: Vec<Ipv4Addr>,
    /// A subnet in which the host may be given an address by DHCP, as 10.0.0.0/24; repeat it for several
    #[arg(long, value_name = "SUBNET")]
    subnet: Vec<Subnet>,
    /// Approve beforehand whoever applies first, with the token, from the hardware address that it
    /// is for
    #[arg(long)]
    preapproved: bool,
    /// For hosts that enrol over the site's service (`ringwall join --service`); no key distributor
    /// is needed then
    #[arg(long)]
    by_service: bool,
    /// A directory for the tokens, each in a file NAME.token that only root reads
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// A table for the tokens, which only root reads
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    out_csv: Option<PathBuf>,
    /// What the host may do: host, router, akd (a key distributor of S-ARP) or dhcp (a DHCP server)
    #[arg(long, value_name = "ROLE", default_value = "host", value_parser = parse_role)]
    pub(super) role: Role,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// How long the token serves: 30m, 24h, 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    valid: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site pending`.
#[derive(Debug, Args)]
pub(crate) struct PendingArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Print a list of JSON objects
    #[arg(long)]
    json: bool,
}

/// Arguments of `site approve`.
#[derive(Debug, Args)]
pub(crate) struct ApproveArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Name of the host, or number of its token
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "watch"])]
    pub(super) which: Option<String>,
    /// The fingerprint that the host shows; another one is not approved
    #[arg(long, requires = "which")]
    fingerprint: Option<String>,
    /// All who apply with a token that was preapproved
    #[arg(long, conflicts_with = "which")]
    all: bool,
    /// The same, and go on with whoever applies later, until it is ended
    #[arg(long, conflicts_with_all = ["which", "all"])]
    watch: bool,
    /// Let several hosts hold one address
    #[arg(long)]
    pub(super) allow_shared_addresses: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site refuse`.
#[derive(Debug, Args)]
pub(crate) struct RefuseArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Name of the host, or number of its token
    #[arg(value_name = "NAME")]
    pub(super) which: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site rekey`.
#[derive(Debug, Args)]
pub(crate) struct RekeyArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Name of the host
    name: String,
    /// The request that the host made with a new key; without it a token is made
    #[arg(long, value_name = "FILE", requires = "out")]
    request: Option<PathBuf>,
    /// Where the bundle for the request is written
    #[arg(long, value_name = "FILE", requires = "request")]
    out: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long, requires = "request")]
    force: bool,
    /// How long the certificate lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// How long the token serves: 30m, 24h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "request")]
    valid: Option<Duration>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn token(arguments: &TokenArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let invitations = match &arguments.csv {
        Some(file) => arguments.of_table(file)?,
        None => arguments.of_names()?,
    };
    let directory = surroundings.open(&arguments.dir)?;
    let made = directory.invite_all(&invitations, surroundings.random, surroundings.unix_s)?;
    let tokens: Vec<(&Invitation, &Token)> = invitations.iter().zip(&made).collect();
    match (&arguments.out, &arguments.out_csv, &made[..]) {
        (Some(place), ..) => many::write_files(place, &tokens, arguments.json, surroundings),
        (None, Some(file), _) => many::write_table(file, &tokens, arguments.json, surroundings),
        (None, None, made) => {
            made.iter().try_for_each(|one| print_token(one, arguments.valid, arguments.json, surroundings, ""))
        }
    }
}

impl TokenArguments {
    /// Whether they read or write files.
    pub(super) fn names_files(&self) -> bool {
        self.csv.is_some() || self.out.is_some() || self.out_csv.is_some()
    }

    /// What these arguments say of a host of this name.
    fn invitation(&self, name: &str) -> Invitation {
        Invitation {
            name: name.to_owned(),
            role: self.role,
            mac: self.mac,
            addresses: self.ip.clone(),
            subnets: self.subnet.clone(),
            preapproved: self.preapproved,
            by_service: self.by_service,
            validity: DAY * self.days,
            valid: self.valid,
        }
    }

    /// The names of the hosts that are named on the line.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &String> {
        self.name.iter().chain(&self.names)
    }

    fn of_names(&self) -> Result<Vec<Invitation>, Failure> {
        if self.names.len() > 1 && (self.mac.is_some() || !self.ip.is_empty()) {
            let remedy = "give a table, --csv FILE, where each host has its own";
            return Err(Failure::new(format!("--mac and --ip are those of one host, not of several; {remedy}")));
        }
        self.check_place(self.names.len())?;
        Ok(self.hosts().map(|name| self.invitation(name)).collect())
    }

    fn of_table(&self, file: &Path) -> Result<Vec<Invitation>, Failure> {
        let rows: Vec<Row> = table::read(file)?.into_iter().filter(Row::is_enrolled).collect();
        self.check_place(rows.len())?;
        Ok(rows.iter().map(|row| row.invitation(self.invitation(&row.name))).collect())
    }

    /// Tokens that nobody would see are not made.
    fn check_place(&self, count: usize) -> Result<(), Failure> {
        match (count, &self.out, &self.out_csv) {
            (0, ..) if self.name.is_none() => Err(Failure::new("the table has no host to make a token for")),
            (2.., None, None) => Err(Failure::new("several tokens are not printed; give --out DIR or --out-csv FILE")),
            _ => Ok(()),
        }
    }
}

fn print_token(
    token: &Token,
    valid: Duration,
    as_json: bool,
    surroundings: &mut Surroundings<'_>,
    before: &str,
) -> Result<(), Failure> {
    let until = utc_text(surroundings.unix_s.saturating_add(valid.as_secs()));
    let (text, name, number) = (token.to_text(), token.name(), number_text(token.number()));
    let value = json!({"token": *text, "number": number, "name": name, "until": until});
    let lines = [
        format!("{before}{}", *text),
        format!("the token of {name}, good once until {until}; on that host: ringwall join TOKEN"),
        format!("then here: ringwall site pending, and ringwall site approve {name}"),
    ];
    surroundings.print(as_json, &value, &lines.join("\n"))
}

pub(super) fn pending(arguments: &PendingArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let found = surroundings.open(&arguments.dir)?.applications(surroundings.unix_s)?;
    let value = Value::Array(found.iter().map(application_json).collect());
    let lines: Vec<String> = found.iter().map(application_text).collect();
    let text = if lines.is_empty() { "no token is open".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}

/// What a token waits for, in a word for programs and in words for people.
fn awaited(progress: &Progress) -> (&'static str, &'static str) {
    match progress {
        Progress::AwaitsHost => ("open", "nobody has applied yet"),
        Progress::AwaitsManager(_) => ("asked", "WAITS FOR YOU"),
        Progress::AwaitsFetch(..) => ("approved", "approved, not fetched yet"),
        Progress::Refused => ("refused", "refused"),
        Progress::Fetched => ("fetched", "enrolled"),
    }
}

fn application_json(application: &Application) -> Value {
    let enrolment = &application.enrolment;
    let asked = application.applicant.as_ref();
    json!({
        "number": number_text(enrolment.number),
        "name": enrolment.name,
        "state": awaited(&enrolment.progress).0,
        "preapproved": enrolment.preapproved,
        "role": enrolment.role.name(),
        "until": utc_text(enrolment.until_unix_s),
        "allowed_mac": enrolment.mac.map(|mac| mac.to_string()),
        "allowed_addresses": enrolment.addresses,
        "subnets": enrolment.subnets.iter().map(Subnet::to_string).collect::<Vec<_>>(),
        "mac": asked.map(|asked| asked.mac.to_string()),
        "addresses": asked.map(|asked| &asked.addresses),
        "fingerprint": asked.map(|asked| &asked.fingerprint),
        "asked_at": asked.map(|asked| utc_text(asked.asked_unix_s)),
    })
}

fn application_text(application: &Application) -> String {
    let enrolment = &application.enrolment;
    let number = number_text(enrolment.number);
    let state = match &enrolment.progress {
        Progress::AwaitsManager(_) if enrolment.preapproved => "waits for `ringwall site approve --all`",
        progress => awaited(progress).1,
    };
    let until = utc_text(enrolment.until_unix_s);
    let head = format!("{} {}: {state}, token {number} until {until}", enrolment.role, enrolment.name);
    let Some(asked) = &application.applicant else { return head };
    let listed = |addresses: &[Ipv4Addr]| addresses.iter().map(Ipv4Addr::to_string).collect::<Vec<_>>().join(", ");
    let addresses = match (&enrolment.addresses[..], &enrolment.subnets[..], &asked.addresses[..]) {
        ([], [], []) => "no address".to_owned(),
        ([], [], asks) => format!("asks for {}", listed(asks)),
        ([], ..) => "an address by DHCP".to_owned(),
        (gets, ..) => listed(gets),
    };
    let at = utc_text(asked.asked_unix_s);
    format!("{head}\n    {}, {addresses}, asked at {at}\n    fingerprint {}", asked.mac, asked.fingerprint)
}

pub(super) fn approve(arguments: &ApproveArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let ApproveArguments { dir, which, fingerprint, allow_shared_addresses, watch, json, .. } = arguments;
    let Some(which) = which else {
        return many::approve(dir, sharing(*allow_shared_addresses), *watch, *json, surroundings);
    };
    let directory = surroundings.open(dir)?;
    let sharing = sharing(*allow_shared_addresses);
    let Surroundings { unix_s, random, .. } = surroundings;
    let entry = directory.approve(which, fingerprint.as_deref(), sharing, *random, *unix_s)?;
    let text = format!("approved {}\nthe host fetches its identity by itself", entry_text(&entry));
    surroundings.print(*json, &entry_json(&entry), &text)
}

pub(super) fn refuse(arguments: &RefuseArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RefuseArguments { dir, which, json } = arguments;
    let name = surroundings.open(dir)?.refuse(which, surroundings.unix_s)?;
    let text = format!("{name} is refused; its token serves no more");
    surroundings.print(*json, &json!({"name": name, "refused": true}), &text)
}

pub(super) fn rekey(arguments: &RekeyArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let RekeyArguments { dir, name, request, out, force, days, valid, json } = arguments;
    let directory = surroundings.open(dir)?;
    let Surroundings { unix_s, random, .. } = surroundings;
    let (Some(request), Some(out)) = (request, out) else {
        let valid = valid.unwrap_or(TOKEN_VALIDITY);
        let made = directory.rekey_by_token(name, DAY * *days, valid, *random, *unix_s)?;
        return print_token(&made, valid, *json, surroundings, "the old key is out; a new one comes by this token:\n");
    };
    let proved = read_request(request)?;
    let delivery = Delivery { output: out, overwrite: overwrite(*force), sharing: sharing(false) };
    let entry = directory.rekey(name, &proved, DAY * *days, &delivery, *random, *unix_s)?;
    let mut value = entry_json(&entry);
    value["file"] = json!(out);
    let text = format!(
        "{name} has another key, the old one is out\nits bundle is in {}, install it at once; {}",
        out.display(),
        Holds::of(&proved).in_words()
    );
    surroundings.print(*json, &value, &text)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::testing::{load, new_site, run};

    #[test]
    fn a_token_is_printed_listed_and_ended() {
        let place = new_site();
        let ask = "site token --dir @/site --name desk --ip 10.0.0.7 --mac 02:00:00:00:00:07";
        assert!(run(place.path(), ask).expect_err("no distributor").contains("site issue --role akd"));
        let keys = "site issue --dir @/site --role akd --name keys --mac 02:00:00:00:00:09 --ip 10.0.0.9 --out @/k.pem";
        run(place.path(), keys).expect("issued");
        let printed = run(place.path(), ask).expect("made");
        let token: identity::token::Token = printed.lines().next().expect("a line").parse().expect("a token");
        assert_eq!(token.name(), "desk");
        assert!(printed.contains("good once until 2027-01-16T08:00:00Z"), "{printed}");
        let listed = run(place.path(), "site pending --dir @/site").expect("listed");
        assert!(listed.starts_with("host desk: nobody has applied yet, token "), "{listed}");
        let listed: Value =
            serde_json::from_str(&run(place.path(), "site pending --dir @/site --json").expect("listed"))
                .expect("json");
        assert_eq!((&listed[0]["state"], &listed[0]["allowed_addresses"]), (&json!("open"), &json!(["10.0.0.7"])));
        let refused = run(place.path(), "site approve --dir @/site desk").expect_err("nobody");
        assert!(refused.contains("nobody applies as \"desk\"; "), "{refused}");
        let number = listed[0]["number"].as_str().expect("text");
        run(place.path(), &format!("site refuse --dir @/site {number}")).expect("ended");
        assert!(run(place.path(), "site pending --dir @/site").expect("listed").contains("desk: refused"));
        for (options, wanted) in
            [("--valid 31d", "30 days"), ("--valid soon", "write it as 30s"), ("--days 0", "36525")]
        {
            let refused = run(place.path(), &format!("{ask} {options}")).expect_err(wanted);
            assert!(refused.contains(wanted), "{refused}");
        }
    }

    #[test]
    fn a_host_gets_another_key_by_file() {
        let place = new_site();
        let issue =
            "site issue --dir @/site --name a --mac 02:00:00:00:00:01 --ip 10.0.0.1 --role router --out @/a.pem";
        run(place.path(), issue).expect("issued");
        let ask = "enroll request --name a --mac 02:00:00:00:00:01 --key @/a.key --out @/a.csr";
        run(place.path(), ask).expect("requested");
        let rekey = "site rekey --dir @/site a --request @/a.csr --out @/a.bundle";
        let printed = run(place.path(), rekey).expect("another key");
        assert!(printed.starts_with("a has another key, the old one is out"), "{printed}");
        run(place.path(), "enroll install --key @/a.key --bundle @/a.bundle --out @/new.pem").expect("installed");
        let [old, new] = ["a.pem", "new.pem"].map(|name| load(&place.path().join(name)));
        assert!(new.certificate().is_router() && new.certificate().addresses() == old.certificate().addresses());
        assert_ne!(new.certificate().record_key(), old.certificate().record_key());
        assert!(run(place.path(), &format!("{rekey} --force")).expect_err("the same key").contains("make a new one"));
        assert!(run(place.path(), "site rekey --dir @/site b").expect_err("unknown").contains("no host \"b\""));
        assert!(run(place.path(), "site rekey --dir @/site a --request @/a.csr").expect_err("where").contains("--out"));
    }
}
