//! Small servers: the console, the site's service and the exporter of metrics. Each is a *door*, a
//! process without privileges that another one starts with a socket as its standard input, and
//! asks that one what its clients want to know.
//!
//! - `door.rs`: how such a process begins, gives up what it may not have, and ends; `way.rs`: lines
//!   between it and the process behind it.
//! - `listener.rs`: where clients come to, and who they are; `clients.rs`: a thread for each, and
//!   how many at one time; `hurried.rs`: connections that are over at a time; `talk.rs`: the same in
//!   clear or through TLS.
//! - `http.rs`: one request, one answer.
//! - `counts.rs`: whom a door turned away; `recent.rs`: what was fetched a moment ago.

mod clients;
mod counts;
pub(crate) mod door;
pub(crate) mod http;
mod hurried;
mod listener;
mod recent;
mod talk;
mod way;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use clients::{Full, Place, Places, Service, hear_out, serve};
pub(crate) use counts::Counts;
pub(crate) use hurried::Hurried;
pub(crate) use listener::{Client, Listener, Who, remove_socket};
pub(crate) use recent::Recent;
pub(crate) use talk::Talk;
pub(crate) use way::{Patience, Way};

/// What a thread that panicked has left is as good as before: each change is whole.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
