//! Enrolment by token: tokens as text, and a machine that hears anything.

use std::net::Ipv4Addr;

use bump::{Generator, Instant};
use identity::distributor::RequestMaster;
use identity::token::{Place, Token};
use sarp::applicant::{Applicant, News, Settings};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::{DATA_AT, Kind, Message, seal};
use wire::{EtherType, MacAddress};

use crate::input::Input;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 7]);
const PLACE: Place = Place { ip: Ipv4Addr::new(10, 0, 0, 9), mac: MacAddress([2, 0, 0, 0, 0, 9]) };
const STEPS_MAX: usize = 256;

/// A token that is read writes the same text.
pub fn token(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Ok(token) = text.parse::<Token>() {
        assert_eq!(token.to_text().as_str(), text.trim());
        assert!(!token.distributors().is_empty() && !token.name().is_empty());
    }
}

/// A machine that enrols, and answers of any content: with the right tag, with none, or whole frames of anybody.
pub fn applicant(data: &[u8]) {
    let mut input = Input::new(data);
    let token = Token::new(&RequestMaster::from_bytes([5; 32]), 7, b"authority", "desk", &[PLACE]);
    let key = token.key();
    let settings =
        Settings { mac: MAC, key: key.clone(), distributors: vec![PLACE], sealing_key: [1; 32], request: vec![2; 100] };
    let mut now = Instant::from_millis(1);
    let mut machine = Applicant::new(settings, Generator::from_seed([3; 32]), now);
    for _ in 0..STEPS_MAX {
        now = machine.deadline().unwrap_or(now).max(now);
        let Some(asked) = machine.send(now) else { return };
        if input.is_empty() {
            return;
        }
        let is_tagged = match input.below(3) {
            0 => {
                assert_eq!(machine.hear(now, input.counted(300)), None);
                continue;
            }
            choice => choice == 1,
        };
        // The question repeated; behind it state, length, place and piece, whatever they are.
        let question = &asked[HEADER_LEN + DATA_AT..][..24];
        let data = [question, &[input.byte()], input.counted(300)].concat();
        let unsigned = Message { arp: answer(), kind: Kind::Enrolment, seconds: 0, data: &data, signature: &[] };
        let unsigned = unsigned.signed_bytes();
        let tag = if is_tagged { key.answer_tag(&unsigned) } else { [0; 16] };
        let header = Header { destination: MAC, source: PLACE.mac, ethertype: EtherType::ARP };
        let news = machine.hear(now, &[&header.emit()[..], &seal(unsigned, &tag)].concat());
        assert!(is_tagged || news.is_none(), "an answer without a tag was heard");
        if let Some(News::Sealed(sealed)) = news {
            assert!((1..=usize::from(u16::MAX)).contains(&sealed.len()));
            machine.installed(now);
        }
    }
}

fn answer() -> Arp {
    Arp {
        operation: Operation::Reply,
        sender_mac: MacAddress::ZERO,
        sender_ip: PLACE.ip,
        target_mac: MAC,
        target_ip: Ipv4Addr::UNSPECIFIED,
    }
}
