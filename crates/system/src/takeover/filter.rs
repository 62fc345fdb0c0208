//! The way for cards that cannot leave their namespace: nothing in and nothing out at the card's own hook.
//!
//! A packet socket that takes every EtherType is served before the ingress hook, so the daemon still hears everything;
//! sockets for one EtherType and the stack hear nothing. On the way out only frames with the daemon's socket mark pass,
//! packet sockets of others included.

use super::TakeoverError;
use super::nft::run;

/// The mark that the daemon's packet socket puts on its frames (`SO_MARK`). Setting a mark needs CAP_NET_ADMIN.
pub(super) const MARK: u32 = 0x5257_4c4c;

/// Closes the devices with these names in the calling thread's namespace, for interface `interface`, in one
/// transaction. Older kernels tie the filter to the device and refuse a name that nobody has; since Linux 6.16 the
/// filter is tied to the name, does not follow a device that is renamed, and waits for a name that nobody has yet.
pub(super) fn close(interface: &str, devices: &[&str]) -> Result<(), TakeoverError> {
    let table = table_name(interface);
    let devices = devices.iter().map(|device| format!("\"{device}\"")).collect::<Vec<_>>().join(", ");
    run(
        interface,
        &format!(
            "table netdev {table}\n\
             delete table netdev {table}\n\
             table netdev {table} {{\n\
             chain from_wire {{ type filter hook ingress devices = {{ {devices} }} priority -500; policy drop; }}\n\
             chain to_wire {{ type filter hook egress devices = {{ {devices} }} priority -500; policy drop; \
             meta mark {MARK:#x} accept; }}\n\
             }}\n"
        ),
    )
}

/// Opens the device again. That it was not closed is no error.
pub(super) fn open(interface: &str) -> Result<(), TakeoverError> {
    let table = table_name(interface);
    run(interface, &format!("table netdev {table}\ndelete table netdev {table}\n"))
}

/// The table's name; what `nft` does not take in a name is spelled out, so that two interfaces never share a table.
pub(super) fn table_name(interface: &str) -> String {
    let mut name = String::from("ringwall_");
    for byte in interface.bytes() {
        if byte.is_ascii_alphanumeric() {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("_{byte:02x}"));
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_interface_has_a_table_of_its_own() {
        assert_eq!(table_name("eth0"), "ringwall_eth0");
        assert_eq!(table_name("eth0.5"), "ringwall_eth0_2e5");
        assert_ne!(table_name("a-b"), table_name("a_b"));
    }
}
