//! `ringwall site init`: a new site; `ringwall site renew-authority`: one that goes on.

use std::path::PathBuf;

use authority::Directory;
use authority::directory::init_in_token;
use authority::key::TokenUri;
use authority::limits::SITE_VALIDITY;
use clap::Args;
use identity::Profile;
use identity::certificate::utc_text;
use identity::profile::HAS_PAPER;
use serde_json::json;

use super::arguments::whole_days;
use super::{DAY, DEFAULT_DIRECTORY, Surroundings};
use crate::failure::Failure;

/// Arguments of `site init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where the site shall be kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// Name of the site: letters, digits, dots, hyphens, underscores
    #[arg(long)]
    name: String,
    /// How long the authority lasts
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(SITE_VALIDITY))]
    days: u32,
    /// Which algorithms its hosts work with: modern, or paper (those of the papers, to measure
    /// their tables; never for real use)
    #[arg(long, value_name = "PROFILE", default_value = "modern", value_parser = parse_profile)]
    profile: Profile,
    /// Keep the authority's key in a token that never gives it out: a URI (RFC 7512) with token,
    /// object, module-path and pin-source, and x-files where the token is kept in files. A key that
    /// is not there yet is made
    #[arg(long, value_name = "URI")]
    key: Option<TokenUri>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Arguments of `site renew-authority`.
#[derive(Debug, Args)]
pub(crate) struct RenewAuthorityArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// How long the authority lasts from now on
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(SITE_VALIDITY))]
    days: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(super) fn renew_authority(
    arguments: &RenewAuthorityArguments,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Failure> {
    let RenewAuthorityArguments { dir, days, json } = arguments;
    let directory = surroundings.open(dir)?;
    let (unix_s, name) = (surroundings.unix_s, directory.site().name());
    let until = authority::directory::renew_authority(&directory, DAY * *days, surroundings.random, unix_s)?;
    let until = utc_text(until);
    let text = format!(
        "the authority of {name} lasts until {until}\nhosts get its certificate with their next `ringwall host renew`, \
         and believe both meanwhile\nrenew the identity of the site's service first, and make tokens that are open anew"
    );
    surroundings.print(*json, &json!({"site": name, "not_after": until}), &text)
}

pub(super) fn init(arguments: &InitArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let InitArguments { dir, name, days, profile, key, json } = arguments;
    let (lasts, unix_s) = (DAY * *days, surroundings.unix_s);
    let directory = match key {
        None => Directory::init(dir, name, lasts, *profile, surroundings.random, unix_s)?,
        Some(key) => init_in_token(dir, name, (lasts, *profile), key, surroundings.random, unix_s)?,
    };
    let until = utc_text(directory.site().anchor().not_after_unix());
    let value = json!({"site": name, "directory": dir, "profile": profile.name(), "not_after": until});
    let text = match (profile, key) {
        (Profile::Modern, None) => "back the directory up and keep it secret",
        (Profile::Modern, Some(_)) => {
            "back the directory up and keep it secret; the authority's key is in the token and in no backup of it"
        }
        (Profile::Paper, _) => {
            "its hosts sign S-ARP with DSA and SHA-1 or CLL with short RSA keys, which can be forged: NOT for real use"
        }
    };
    surroundings.print(*json, &value, &format!("site {name} is in {} until {until}; {text}", dir.display()))
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    match Profile::from_name(name) {
        Some(Profile::Paper) if !HAS_PAPER => Err("this build has no paper profile".to_owned()),
        Some(profile) => Ok(profile),
        None => Err("a profile is 'modern' or 'paper'".to_owned()),
    }
}
