//! The authority's own certificate is replaced (record 0109): another one for the same key. Hosts that
//! have one of both believe what was issued under the other, so nobody has to have the new one by a
//! certain time; it comes with the next renewal of each.

use std::time::Duration;

use identity::certificate::utc_text;
use identity::pem;

use super::{CERTIFICATE, Directory, acts};
use crate::audit::{Act, FIRST};
use crate::files::{self, Overwrite, Secrecy};
use crate::{Error, Random};

/// Gives the authority another certificate; the second at which that ends.
///
/// # Errors
/// [`Error::EndsNoLater`], [`Error::BadPeriod`], or what the operating system says. Then the one
/// before stays.
pub fn renew_authority(
    directory: &Directory,
    validity: Duration,
    random: &mut Random<'_>,
    unix_s: u64,
) -> Result<u64, Error> {
    let _lock = directory.lock()?;
    let renewed = directory.site.renew_authority(validity, random, unix_s)?;
    let detail = format!("until {}", utc_text(renewed.not_after_unix()));
    acts::tell(directory, &[(Act::AuthorityRenewed, &directory.site.name(), &detail)], unix_s)?;
    let first = directory.path.join(FIRST);
    if !first.exists() {
        files::write(&first, &directory.site.certificate_pem(), Secrecy::Public, Overwrite::Never)?;
    }
    let text = pem::encode(pem::CERTIFICATE, renewed.der());
    files::write(&directory.path.join(CERTIFICATE), &text, Secrecy::Public, Overwrite::Force)?;
    Ok(renewed.not_after_unix())
}
