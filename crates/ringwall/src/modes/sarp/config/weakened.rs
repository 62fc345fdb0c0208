//! Layers of S-ARP that a laboratory switches off, by the words that they have in mode `cll`.

use std::path::Path;

use crate::config::{Lab, Switch};
use crate::failure::Failure;

/// The layers that there are in this mode.
const LAYERS: [Switch; 5] =
    [Switch::Freshness, Switch::CrossLayer, Switch::ReplyCheck, Switch::SiteMac, Switch::Budgets];

/// That no other is named.
pub(super) fn check(lab: &Lab, file: &Path) -> Result<(), Failure> {
    match lab.weaken.iter().find(|layer| !LAYERS.contains(layer)) {
        None => Ok(()),
        Some(layer) => {
            let what = format!("lab.weaken: \"{}\" is no layer of mode = \"sarp\"", layer.word());
            Err(Failure::file(file, what, "use freshness, cross-layer, reply-check, site-mac or budgets"))
        }
    }
}

/// What `lab.weaken` means in this mode.
pub(super) fn weaken(lab: &Lab) -> sarp::Weaken {
    let is_off = |layer| lab.weaken.contains(&layer);
    sarp::Weaken {
        stamps: is_off(Switch::Freshness),
        binding: is_off(Switch::CrossLayer),
        distributor_nonce: is_off(Switch::ReplyCheck),
        request_tag: is_off(Switch::SiteMac),
        budgets: is_off(Switch::Budgets),
        ..sarp::Weaken::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sarp;
    use crate::modes::file::tests::load;

    #[test]
    fn only_layers_that_there_are_can_be_switched_off() {
        let with = |word: &str| {
            load(&format!(
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"lab\"\n[lab]\nweaken = [\"{word}\"]\n"
            ))
        };
        let weaken = Sarp::weaken(with("site-mac").expect("valid").lab.as_ref());
        assert_eq!(weaken, sarp::Weaken { request_tag: true, ..Default::default() });
        let line = with("tag").expect_err("a layer of frames");
        assert!(line.contains("host.toml: ") && line.contains("is no layer of mode = \"sarp\""), "{line}");
    }
}
