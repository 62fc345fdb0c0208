//! The keys of section `[cll]` for compression, which is off unless somebody wants it: the lengths
//! of compressed frames tell of their content.

use std::path::Path;

use wire::cll::Compression;
use wire::cll::compression::Algorithm;

use super::Cll;
use super::names::CompressName;
use crate::failure::Failure;

const WARNING: &str = "cll.compress: whoever sees the wire learns from the lengths of encrypted frames how well their content compresses, \
    and who can have text of his choice travel beside a secret guesses the secret from that (as CRIME, BREACH and VORACLE did)";

impl Cll {
    /// What this host says of compression in its offers. Who compresses also reads.
    pub(super) fn compression(&self) -> Compression {
        let sends = self.compress.algorithm();
        let reads: &[Algorithm] = if sends.is_some() || self.decompress { &Algorithm::ALL } else { &[] };
        Compression::new(sends, reads)
    }

    /// Whoever demands secrecy of others neither gives it up nor has them do so.
    pub(super) fn check_compression(&self, file: &Path) -> Result<(), Failure> {
        if !self.require_confidentiality || self.compression() == Compression::NONE {
            return Ok(());
        }
        let key = if self.compress == CompressName::None { "cll.decompress" } else { "cll.compress" };
        let what = format!("{key} and cll.require_confidentiality contradict each other: lengths tell of the content");
        Err(Failure::file(file, what, "remove one of the two"))
    }

    /// What is unwise about it.
    pub(super) fn compression_warning(&self) -> Option<String> {
        let compresses = self.compress != CompressName::None;
        (compresses && self.confidentiality).then(|| WARNING.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::file::Config;

    fn read(cll: &str) -> Result<Config, Failure> {
        Config::read(Path::new("host.toml"), &format!("[host]\ninterface = \"eth0\"\n[cll]\n{cll}\n"))
    }

    #[test]
    fn it_is_off_and_each_direction_is_chosen_by_itself() {
        let offered = |cll: &str| read(cll).expect("valid").cll.compression().0;
        assert_eq!(offered(""), 0x00);
        assert_eq!(offered("compress = \"none\""), 0x00);
        assert_eq!(offered("compress = \"lz4\""), 0x11);
        assert_eq!(offered("decompress = true"), 0x10);
        assert!(read("compress = \"zstd\"").is_err());
    }

    #[test]
    fn its_price_is_said() {
        let warnings = |cll: &str| read(cll).expect("valid").warnings();
        assert_eq!(warnings("compress = \"lz4\""), [WARNING]);
        assert!(warnings("decompress = true").is_empty(), "this host gives nothing away");
        assert!(warnings("compress = \"lz4\"\nconfidentiality = false").is_empty(), "nothing is secret");
    }

    #[test]
    fn who_demands_secrecy_does_not_compress() {
        for key in ["compress = \"lz4\"", "decompress = true"] {
            let failure =
                read(&format!("{key}\nrequire_confidentiality = true")).expect_err("a contradiction").to_string();
            assert!(
                failure.contains(key.split(' ').next().expect("a key")) && failure.contains("remove one"),
                "{failure}"
            );
        }
    }
}
