//! The pages: each from what the daemons say, and what stands in the query.
//!
//! - `frame.rs`: what all pages have around them; `listing.rs`: lists that go on over pages.
//! - `hosts.rs`: whom the daemons know, in groups; `chart.rs`, `scene.rs`: pictures as SVG.
//! - `overview.rs`, `peers.rs`, `attacks.rs`, `machine.rs`, `site.rs`: the pages themselves.
//!
//! Templates escape all that is put into them, and what comes from the wire is made harmless first.

mod attacks;
mod chart;
mod frame;
mod hosts;
mod listing;
mod machine;
mod overview;
mod peers;
mod scene;
mod site;

use std::io;

use askama::Template;

use self::frame::Frame;
use super::refusal::Refusal;

pub(super) use attacks::{attacks, history};
pub(super) use machine::{about, certificates, drops, gateway};
pub(super) use overview::overview;
pub(super) use peers::{host, map, peers};
pub(super) use site::site;

/// The text of a page.
fn made(template: &impl Template) -> io::Result<String> {
    template.render().map_err(io::Error::other)
}

#[derive(Template)]
#[template(path = "console/sign_in.html")]
struct SignIn {
    frame: Frame,
    /// Empty where none came with the link.
    token: String,
}

/// Where a link leads. The token is used when the form is sent: what only looks at a link, such as
/// a mail filter, does not use it up.
pub(super) fn sign_in(token: &str) -> String {
    let token = super::tokens::Secret::parse(token).map(|token| token.text().to_string()).unwrap_or_default();
    SignIn { frame: Frame::outside("Sign in"), token }.render().unwrap_or_default()
}

#[derive(Template)]
#[template(path = "console/refused.html")]
struct Refused {
    frame: Frame,
    sentence: &'static str,
    /// Whether a link would help.
    needs_link: bool,
}

pub(super) fn refused(refusal: Refusal) -> String {
    let needs_link = matches!(refusal, Refusal::NotSignedIn | Refusal::Token);
    let frame = Frame::outside("Not shown");
    Refused { frame, sentence: refusal.sentence(), needs_link }.render().unwrap_or_default()
}
