//! Where in the kernel the shield's program stands: `kernel_hook` of the sections `[cll]`, `[sarp]` and `[shield]`.

use serde::{Deserialize, Serialize};
use shield::Hook;

/// See [`Hook`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum HookName {
    #[default]
    Socket,
    Xdp,
    XdpGeneric,
}

impl HookName {
    pub(crate) fn hook(self) -> Hook {
        match self {
            HookName::Socket => Hook::Socket,
            HookName::Xdp => Hook::Xdp,
            HookName::XdpGeneric => Hook::XdpGeneric,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modes::file::tests::load;

    #[test]
    fn each_place_has_its_word_in_all_sections() {
        for hook in Hook::ALL {
            let line = format!("kernel_hook = \"{}\"", hook.word());
            let cll = load(&format!("[host]\ninterface = \"eth0\"\n[cll]\n{line}\n")).expect("valid");
            let sarp =
                load(&format!("[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[sarp]\n{line}\n")).expect("valid");
            let head = "[host]\ninterface = \"eth0\"\nmode = \"shield\"\n[shield]\n";
            let peer = "[[shield.peers]]\naddress = \"10.0.0.2\"\n";
            let shield = load(&format!("{head}{line}\n{peer}")).expect("valid").shield.expect("a section");
            let read = [cll.cll.kernel_hook, sarp.sarp.kernel_hook, shield.kernel_hook];
            assert_eq!(read.map(HookName::hook), [hook; 3]);
        }
        let refused = load("[host]\ninterface = \"eth0\"\n[cll]\nkernel_hook = \"tc\"\n").expect_err("no such place");
        assert!(refused.contains("host.toml:4") && refused.contains("xdp-generic"), "{refused}");
    }

    #[test]
    fn the_place_is_the_socket_unless_somebody_chooses() {
        let config = load("[host]\ninterface = \"eth0\"\n").expect("valid");
        assert_eq!(config.cll.kernel_hook.hook(), Hook::Socket);
    }
}
