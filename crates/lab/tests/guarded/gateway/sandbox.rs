//! The sandbox of a gateway: it needs no privilege at all.

use super::perform_between;
use crate::sandbox::{WITHOUT_WORKER, assert_inside};

#[test]
fn a_gateway_is_inside_whatever_its_way_out() {
    for on_exit in ["closed", "restore"] {
        perform_between(&format!("on_exit = \"{on_exit}\""), |path| {
            assert_inside(path.process.as_ref().expect("it runs").id(), 0, WITHOUT_WORKER);
            let events = path.ask(&["events"])?.stdout;
            assert!(!events.contains("the sandbox refuses"), "{events}");
            Ok(())
        });
    }
}
