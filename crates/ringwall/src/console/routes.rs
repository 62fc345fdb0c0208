//! Which page is where, and who may see it.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use super::http::{self, Request, Response};
use super::look::Look;
use super::pages;
use super::refusal::Refusal;

/// Files that every page uses; they say nothing of this machine.
const FILES: &[(&str, &str, &str)] = &[
    ("/console.css", "text/css; charset=utf-8", include_str!("../../templates/console/console.css")),
    ("/console.js", "text/javascript; charset=utf-8", include_str!("../../templates/console/console.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../../templates/console/icon.svg")),
];

/// What there is to make pages from.
pub(super) struct Around<'a> {
    pub(super) look: &'a Look,
    /// How many are signed in.
    pub(super) sessions: usize,
    /// Whom the door turned away, by reason.
    pub(super) refused: BTreeMap<&'static str, u64>,
}

/// What everybody may see: the files of all pages, and the one where a link leads.
pub(super) fn open(request: &Request) -> Option<Response> {
    if request.path == http::SIGN_IN {
        let token = http::value(&request.query, "token").unwrap_or_default();
        return Some(whole(pages::sign_in(&token)));
    }
    let (_, kind, text) = FILES.iter().find(|(path, ..)| *path == request.path)?;
    Some(Response { status: "200 OK", kind, body: text.as_bytes().to_vec(), fields: String::new() })
}

/// What those see who are signed in.
pub(super) fn page(request: &Request, around: &Around<'_>) -> Result<Response, Refusal> {
    let query = request.query.as_str();
    let look = around.look;
    let made = match request.path.as_str() {
        "/" => pages::overview(look, query),
        "/peers" => pages::peers(look, query),
        "/host" => pages::host(look, query),
        "/map" => pages::map(look),
        "/attacks" => pages::attacks(look, query),
        "/drops" => pages::drops(look),
        "/history" => pages::history(look, query),
        "/certificates" => pages::certificates(look),
        "/gateway" => pages::gateway(look, query),
        "/site" => match pages::site(look, query) {
            Ok(None) => return Err(Refusal::NoSite),
            Ok(Some(html)) => Ok(html),
            Err(error) => Err(error),
        },
        "/about" => pages::about(look, around.sessions, &around.refused),
        _ => return Err(Refusal::Elsewhere),
    };
    // What cannot be told from the daemons is told to nobody.
    made.map(whole).map_err(|_| Refusal::Silent)
}

fn whole(html: String) -> Response {
    Response::page("200 OK", html)
}

pub(super) fn refused(refusal: Refusal) -> Response {
    let mut response = Response::page(refusal.status(), pages::refused(refusal));
    if refusal == Refusal::Method {
        response.fields.push_str("Allow: GET\r\n");
    }
    response
}

/// A number that changes when something is new.
pub(super) fn fingerprint(look: &Look) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for daemon in look.daemons()?.iter() {
        daemon.verdict().line(daemon.interface()).hash(&mut hasher);
        daemon.drops().map(|(_, drops)| drops).hash(&mut hasher);
        daemon.host().map(|status| status.peers).hash(&mut hasher);
        daemon.gate().map(|status| status.flows.all).hash(&mut hasher);
        if let Some(account) = daemon.account() {
            let attacks = account.attacks();
            attacks.open.iter().for_each(|attack| (attack.number, attack.count).hash(&mut hasher));
            attacks.opened.hash(&mut hasher);
        }
    }
    look.site()?.map(|site| site.number).hash(&mut hasher);
    Ok(hasher.finish())
}
