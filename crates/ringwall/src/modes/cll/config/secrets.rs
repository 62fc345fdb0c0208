//! The keys of section `[cll]` for what goes into the keys of associations beside X25519: ML-KEM,
//! and a key that all hosts of the site have.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use identity::pre_shared::PreSharedKey;
use zeroize::Zeroizing;

use super::Cll;
use super::names::PostQuantumName;
use crate::failure::Failure;

/// Longest file of pre-shared keys that is read, in bytes: two keys, and comments around them.
const FILE_LEN_MAX: u64 = 16 * 1024;

impl Cll {
    /// The paper's algorithms have neither.
    pub(super) fn check_secrets(&self, file: &Path) -> Result<(), Failure> {
        let has_some = self.post_quantum != PostQuantumName::Off || self.pre_shared_key.is_some();
        if has_some {
            let what = "cll.post_quantum and cll.pre_shared_key are not in the paper profile";
            return Err(Failure::file(file, what, "remove them, or use profile = \"modern\""));
        }
        Ok(())
    }

    /// The pre-shared keys in force, the one that is used first.
    pub(super) fn pre_shared(&self) -> Result<Vec<PreSharedKey>, Failure> {
        let Some(file) = &self.pre_shared_key else { return Ok(Vec::new()) };
        let remedy = "put one or two blocks RINGWALL PRESHARED KEY of 32 random bytes in it (see docs/manual/keys.md)";
        let text = read_private(file).map_err(|error| Failure::file(file, error, remedy))?;
        PreSharedKey::all_from_pem(&text).map_err(|error| Failure::file(file, error, remedy))
    }
}

fn read_private(file: &Path) -> io::Result<Zeroizing<String>> {
    let opened = File::open(file)?;
    if opened.metadata()?.mode() & 0o077 != 0 {
        return Err(io::Error::other("others than its owner may read it (chmod 600)"));
    }
    let mut text = Zeroizing::new(String::new());
    opened.take(FILE_LEN_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use cll::PostQuantum;

    use super::*;
    use crate::modes::file::Config;

    fn read(cll: &str) -> Result<Config, Failure> {
        Config::read(Path::new("host.toml"), &format!("[host]\ninterface = \"eth0\"\n[cll]\n{cll}\n"))
    }

    #[test]
    fn ml_kem_is_off_and_has_three_words() {
        let chosen = |cll: &str| PostQuantum::from(read(cll).expect("valid").cll.post_quantum);
        assert_eq!(chosen(""), PostQuantum::Off);
        assert_eq!(chosen("post_quantum = \"prefer\""), PostQuantum::Prefer);
        assert_eq!(chosen("post_quantum = \"require\""), PostQuantum::Require);
        assert!(read("post_quantum = \"yes\"").is_err());
    }

    #[test]
    fn a_key_file_is_private_and_whole() {
        let file = std::env::temp_dir().join(format!("ringwall-psk-{}", std::process::id()));
        let block = identity::pem::encode(identity::pem::PRE_SHARED_KEY, &[7; 32]);
        let keys = || read(&format!("pre_shared_key = {file:?}")).expect("valid").cll.pre_shared();
        std::fs::write(&file, &**block).expect("written");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("ours");
        assert!(keys().expect_err("not private").to_string().contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("ours");
        assert_eq!(keys().expect("a key").len(), 1);
        std::fs::write(&file, format!("{}{}", *block, *block)).expect("written");
        assert_eq!(keys().expect("two keys").len(), 2);
        std::fs::write(&file, "secret").expect("written");
        assert!(keys().is_err());
        std::fs::remove_file(&file).expect("ours");
        assert!(keys().is_err(), "a file that is named must be there");
        assert!(read("").expect("valid").cll.pre_shared().expect("none").is_empty());
    }
}
