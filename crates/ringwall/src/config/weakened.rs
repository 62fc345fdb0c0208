//! Layers of S-ARP that a laboratory switches off, by the words that they have in mode `cll`.

use std::path::Path;

use super::Config;
use crate::failure::Failure;

impl Config {
    /// What `lab.weaken` means in mode `sarp`.
    pub(crate) fn sarp_weaken(&self, file: &Path) -> Result<::sarp::Weaken, Failure> {
        let mut weaken = ::sarp::Weaken::default();
        for word in self.lab.iter().flat_map(|lab| &lab.weaken) {
            let switch = match word.as_str() {
                "freshness" => &mut weaken.stamps,
                "cross-layer" => &mut weaken.binding,
                "reply-check" => &mut weaken.distributor_nonce,
                "site-mac" => &mut weaken.request_tag,
                "budgets" => &mut weaken.budgets,
                _ => {
                    let what = format!("lab.weaken: \"{word}\" is no layer of mode = \"sarp\"");
                    return Err(Failure::file(
                        file,
                        what,
                        "use freshness, cross-layer, reply-check, site-mac or budgets",
                    ));
                }
            };
            *switch = true;
        }
        Ok(weaken)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::tests::load;

    #[test]
    fn only_layers_that_there_are_can_be_switched_off() {
        let with = |word: &str| {
            load(&format!(
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"lab\"\n[lab]\nweaken = [\"{word}\"]\n"
            ))
        };
        let weaken = with("site-mac").expect("valid").sarp_weaken(Path::new("x")).expect("valid");
        assert_eq!(weaken, ::sarp::Weaken { request_tag: true, ..Default::default() });
        let line = with("tag").expect_err("a layer of frames");
        assert!(line.contains("host.toml: ") && line.contains("is no layer of mode = \"sarp\""), "{line}");
    }
}
