//! Web pages from an untrusted server: figure 5 of the paper over the size of the page, figure 6 over the number of clients.

use std::time::Duration;

use super::track::Track;
use super::turns::{at, in_turns, rows_of};
use super::web::{self, Ends, Fetched, Load};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::failure::Failure;

/// Sizes along the axis of figure 5, in bytes.
const SIZES: [u64; 4] = [1 << 10, 16 << 10, 256 << 10, 4 << 20];
/// Clients behind each point of figure 5.
const CLIENTS: usize = 16;
/// Clients along the axis of figure 6, up to the paper's 480 of its figure 7.
const CROWDS: [usize; 4] = [4, 40, 160, 480];
/// The page of figure 6.
const SMALL: u64 = 1 << 10;
/// How long clients ask before it counts.
const WARM_UP: Duration = Duration::from_millis(200);
/// How long it counts.
const TIME: Duration = Duration::from_millis(700);

/// Both figures.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for page_len in SIZES {
        let load = Load { page_len, clients: CLIENTS, warm_up: WARM_UP, time: TIME };
        let name = format!("figure5/{page_len}");
        let runs = in_turns(tracks, schedule, &name, |track| Ok(fetch(track, &load)?.goodput_mbit))?;
        rows.extend(at(rows_of(&name, "Mbit/s", &runs), page_len as f64));
    }
    for clients in CROWDS {
        let load = Load { page_len: SMALL, clients, warm_up: WARM_UP, time: TIME };
        let name = format!("figure6/{clients}");
        let runs = in_turns(tracks, schedule, &name, |track| Ok(fetch(track, &load)?.pages_per_second))?;
        rows.extend(at(rows_of(&name, "connections/s", &runs), clients as f64));
    }
    Ok(rows)
}

fn fetch(track: &Track, load: &Load) -> Result<Fetched, Failure> {
    web::fetch(&Ends { server: &track.untrusted, clients: &track.trusted, proxy: track.proxy() }, load)
}
