//! Values of `[gate]` that are read once: what each must be, its type says, with what to write
//! instead.

use std::net::IpAddr;

use scrub::settings::{Network, OPTION_ORDER, OptionKind, OptionOrder};
use scrub::{Action, Rule};
use serde::{Deserialize, Serialize};
use wire::EtherType;

use crate::config::PASSABLE;

/// Longest list of pairs or EtherTypes: each such packet is compared with all of them.
const LIST_MAX: usize = 256;
/// Smallest number that is an EtherType and no length (IEEE 802.3).
const ETHERTYPE_MIN: u16 = 0x0600;

/// A number within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "u64", into = "u64")]
pub(crate) struct Bounded<const LEAST: u64, const MOST: u64>(u64);

impl<const LEAST: u64, const MOST: u64> Bounded<LEAST, MOST> {
    /// The number of a preset, which lies within the bounds.
    pub(super) fn of_preset(number: u64) -> Self {
        Bounded(number.clamp(LEAST, MOST))
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl<const LEAST: u64, const MOST: u64> TryFrom<u64> for Bounded<LEAST, MOST> {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if (LEAST..=MOST).contains(&number) {
            return Ok(Bounded(number));
        }
        Err(format!("{number} is out of range; use {LEAST} to {MOST}"))
    }
}

impl<const LEAST: u64, const MOST: u64> From<Bounded<LEAST, MOST>> for u64 {
    fn from(number: Bounded<LEAST, MOST>) -> u64 {
        number.0
    }
}

/// A list that is short enough to compare each packet with.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(
    try_from = "Vec<T>",
    into = "Vec<T>",
    bound(deserialize = "T: Deserialize<'de>", serialize = "T: Clone + Serialize")
)]
pub(crate) struct List<T>(Vec<T>);

impl<T> List<T> {
    pub(super) const EMPTY: List<T> = List(Vec::new());

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

impl<T> TryFrom<Vec<T>> for List<T> {
    type Error = String;

    fn try_from(listed: Vec<T>) -> Result<List<T>, String> {
        match listed.len() {
            0..=LIST_MAX => Ok(List(listed)),
            len => Err(format!("{len} entries; list at most {LIST_MAX}")),
        }
    }
}

impl<T> From<List<T>> for Vec<T> {
    fn from(list: List<T>) -> Vec<T> {
        list.0
    }
}

/// An address block or a single address, in the words in which it was written.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Block {
    text: String,
    pub(super) network: Network,
}

impl TryFrom<String> for Block {
    type Error = String;

    fn try_from(text: String) -> Result<Block, String> {
        let network = network(&text).map_err(|what| format!("{what}; write it as 192.0.2.0/24"))?;
        Ok(Block { text, network })
    }
}

impl From<Block> for String {
    fn from(block: Block) -> String {
        block.text
    }
}

/// Reads an address block, or a single address.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    let wrong = || format!("\"{text}\" is no address block");
    let (address, prefix_len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix_len = prefix_len.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
    if prefix_len > width { Err(wrong()) } else { Ok(Network { address, prefix_len }) }
}

/// A TCP option by the name that an operator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TcpOption {
    Mss,
    SackPermitted,
    Timestamps,
    WindowScale,
    Sack,
}

impl TcpOption {
    const ALL: [TcpOption; 5] =
        [TcpOption::Mss, TcpOption::SackPermitted, TcpOption::Timestamps, TcpOption::WindowScale, TcpOption::Sack];

    fn kind(self) -> OptionKind {
        match self {
            TcpOption::Mss => OptionKind::MaximumSegmentSize,
            TcpOption::SackPermitted => OptionKind::SackPermitted,
            TcpOption::Timestamps => OptionKind::Timestamps,
            TcpOption::WindowScale => OptionKind::WindowScale,
            TcpOption::Sack => OptionKind::Sack,
        }
    }
}

/// All options that can be ordered, each once.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "Vec<TcpOption>", into = "Vec<TcpOption>")]
pub(crate) struct Order {
    listed: Vec<TcpOption>,
    pub(super) order: OptionOrder,
}

impl Order {
    /// The usual one.
    pub(super) fn usual() -> Order {
        let named = |kind: &OptionKind| TcpOption::ALL.into_iter().find(|option| option.kind() == *kind);
        Order { listed: OPTION_ORDER.iter().filter_map(named).collect(), order: OPTION_ORDER }
    }
}

impl TryFrom<Vec<TcpOption>> for Order {
    type Error = &'static str;

    fn try_from(listed: Vec<TcpOption>) -> Result<Order, &'static str> {
        let kinds: Vec<_> = listed.iter().map(|option| option.kind()).collect();
        let has_all = TcpOption::ALL.iter().all(|option| listed.contains(option));
        let order = OptionOrder::try_from(kinds).ok().filter(|_| has_all);
        let order =
            order.ok_or("no order of all; list mss, sack-permitted, timestamps, window-scale and sack, each once")?;
        Ok(Order { listed, order })
    }
}

impl From<Order> for Vec<TcpOption> {
    fn from(order: Order) -> Vec<TcpOption> {
        order.listed
    }
}

/// An EtherType as it was written: by the name that an operator uses, or by its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Written {
    Name(String),
    Number(u16),
}

/// An EtherType that is let pass.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "Written", into = "Written")]
pub(crate) struct Carried {
    written: Written,
    pub(super) ethertype: EtherType,
}

impl Carried {
    pub(super) fn of(ethertype: EtherType) -> Carried {
        Carried { written: Written::Number(ethertype.0), ethertype }
    }
}

impl TryFrom<Written> for Carried {
    type Error = String;

    fn try_from(written: Written) -> Result<Carried, String> {
        let (found, said) = match &written {
            Written::Number(number) => {
                (Some(EtherType(*number)).filter(|_| *number >= ETHERTYPE_MIN), format!("0x{number:04x}"))
            }
            Written::Name(name) => {
                let known = PASSABLE.iter().find(|(word, _)| word == name);
                (known.map(|(_, ethertype)| *ethertype), format!("\"{name}\""))
            }
        };
        let ethertype = found.ok_or_else(|| {
            let words: Vec<_> = PASSABLE.iter().map(|(word, _)| *word).collect();
            format!("{said} is none; use a number from 0x0600 on, or any of {}", words.join(", "))
        })?;
        Ok(Carried { written, ethertype })
    }
}

impl From<Carried> for Written {
    fn from(carried: Carried) -> Written {
        carried.written
    }
}

/// A rule of the scrubber by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RuleName(pub(super) Rule);

impl TryFrom<String> for RuleName {
    type Error = String;

    fn try_from(name: String) -> Result<RuleName, String> {
        let rule = name.parse().map_err(|what| format!("{what}; `ringwall gate rules` lists those that there are"))?;
        Ok(RuleName(rule))
    }
}

impl From<RuleName> for String {
    fn from(rule: RuleName) -> String {
        rule.0.name().to_owned()
    }
}

/// What a rule does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RuleAction(pub(super) Action);

impl TryFrom<String> for RuleAction {
    type Error = String;

    fn try_from(word: String) -> Result<RuleAction, String> {
        word.parse().map(RuleAction).map_err(|remedy: String| format!("\"{word}\" is no action; {remedy}"))
    }
}

impl From<RuleAction> for String {
    fn from(action: RuleAction) -> String {
        let word = match action.0 {
            Action::Off => "off",
            Action::Scrub => "scrub",
            Action::Sever => "sever",
        };
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_single_addresses_are_read() {
        let any = network("10.1.2.3").expect("an address");
        assert_eq!((any.address, any.prefix_len), ("10.1.2.3".parse().expect("an address"), 32));
        assert_eq!(network("2001:db8::/32").expect("a block").prefix_len, 32);
        for wrong in ["", "10.0.0.0/", "10.0.0.0/33", "::/129", "net", "10.0.0.0/-1"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_list_and_a_number_have_an_end() {
        assert!(List::try_from(vec![0; LIST_MAX]).is_ok() && List::try_from(vec![0; LIST_MAX + 1]).is_err());
        let number = Bounded::<8, 10>::try_from;
        assert!([8, 10].map(number).iter().all(Result::is_ok) && [7, 11].map(number).iter().all(Result::is_err));
    }
}
