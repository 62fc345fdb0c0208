//! Handing a script to `nft`, or to another program of the system; the table of an interface, and
//! the mark that its rules let pass.

use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use super::TakeoverError;

/// The mark that the daemon's packet socket puts on its frames (`SO_MARK`). Setting a mark needs CAP_NET_ADMIN.
pub(super) const MARK: u32 = 0x5257_4c4c;

/// Where `nft` is looked for: services often run without the administrator's directories in their search path.
const NFT_PATHS: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];

/// Runs `script` for `interface` as one transaction in the calling thread's namespace.
pub(super) fn run(interface: &str, script: &str) -> Result<(), TakeoverError> {
    match hand_over(interface, &NFT_PATHS, &["-f", "-"], script) {
        Err(TakeoverError::NoProgram { interface, .. }) => Err(TakeoverError::NoNft { interface }),
        other => other.map(drop),
    }
}

/// Takes the table of `interface` away. That there is none is no error.
pub(super) fn remove_table(interface: &str) -> Result<(), TakeoverError> {
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

/// Has the first of `programs` that is there read `script` for `interface`, in the calling thread's namespaces; what it
/// says.
pub(super) fn hand_over(
    interface: &str,
    programs: &[&'static str],
    arguments: &[&str],
    script: &str,
) -> Result<String, TakeoverError> {
    let refused = |cause| TakeoverError::Filter { interface: interface.to_owned(), cause };
    for program in programs {
        match run_program(program, arguments, script) {
            Ok(output) if output.status.success() => {
                return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
            }
            Ok(output) => {
                let text = String::from_utf8_lossy(&output.stderr);
                return Err(refused(text.lines().next().unwrap_or("no message").to_owned()));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error.to_string())),
        }
    }
    let program = programs.first().copied().unwrap_or_default();
    Err(TakeoverError::NoProgram { interface: interface.to_owned(), program })
}

fn run_program(program: &str, arguments: &[&str], script: &str) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // If the program ends early its message says why.
        let _ = input.write_all(script.as_bytes());
    }
    child.wait_with_output()
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
