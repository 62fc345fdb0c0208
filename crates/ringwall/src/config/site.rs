//! Section `[site]`: where this host reports how it is.

use std::net::SocketAddr;
use std::path::Path;

use identity::tls::Service;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Section `[site]`. The daemon has no part in it: `ringwall report` reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Site {
    /// An address and a port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<String>,
    /// The host that it is, where its certificate does not have that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) service_name: Option<String>,
}

impl Site {
    pub(crate) fn check(&self, file: &Path) -> Result<(), Failure> {
        if self.service.is_some() { self.way(file).map(drop) } else { Ok(()) }
    }

    /// Where the service is, and whose certificate it is to show.
    pub(crate) fn way(&self, file: &Path) -> Result<(SocketAddr, Service), Failure> {
        let Some(text) = &self.service else {
            let remedy = "write [site] service = \"192.0.2.5:9478\", where `ringwall site serve` listens";
            return Err(Failure::file(file, "nothing says where to report", remedy));
        };
        let address: Option<SocketAddr> = text.parse().ok().filter(|address: &SocketAddr| address.port() > 0);
        let address = address.ok_or_else(|| {
            let what = format!("site.service = \"{text}\" is no address with a port");
            Failure::file(file, what, "write \"192.0.2.5:9478\" or \"[2001:db8::5]:9478\"; names are not looked up")
        })?;
        let service = match &self.service_name {
            Some(name) => Service::Named(name.clone()),
            None => Service::At(address.ip()),
        };
        Ok((address, service))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_the_host_with_that_address_unless_it_is_named() {
        let way = |text: &str| toml::from_str::<Site>(text).expect("a section").way(Path::new("host.toml"));
        let address: SocketAddr = "192.0.2.5:9478".parse().expect("an address");
        let (found, service) = way("service = \"192.0.2.5:9478\"").expect("a way");
        assert_eq!((found, service), (address, Service::At(address.ip())));
        let (_, service) = way("service = \"192.0.2.5:9478\"\nservice_name = \"files\"").expect("a way");
        assert_eq!(service, Service::Named("files".to_owned()));
        for wrong in ["service = \"files:9478\"", "service = \"192.0.2.5\"", "service = \"192.0.2.5:0\"", ""] {
            let line = way(wrong).expect_err("no way").to_string();
            assert!(line.starts_with("host.toml: ") && line.contains("; write "), "{line}");
        }
    }
}
