#!/bin/sh
# Installs what a fresh Debian 12 machine lacks: setup.sh build|package|demo|machine|test|bench. Touches
# nothing when all is there.
set -eu
cd "$(dirname "$0")/.."
. packaging/common.sh

# nftables is no tool of the build: the program closes interfaces with it.
build_packages="gcc libc6-dev make cmake nftables"
# The program's libraries by their packages (dpkg-dev), the bill of materials.
package_packages="binutils dpkg-dev python3 xz-utils"
# The LAN (iproute2, ethtool, util-linux), honest traffic (ping), DHCP (dnsmasq, without the service that its own package
# starts, udhcpc, and dhclient for DHCPv6), who watches (tcpdump) and who attacks.
demo_packages="iproute2 iputils-ping util-linux ethtool tcpdump dnsmasq-base udhcpc \
    isc-dhcp-client iputils-arping dsniff ettercap-text-only bettercap yersinia thc-ipv6 python3-scapy python3-cryptography \
    tcpreplay hping3"
# Independent makers and readers of what we write: certificates, capture files, golden vectors. Then further DHCP servers,
# clients and relays of other people, which S-DHCP must leave working, the members that tests of the shared repository start (etcd),
# who looks at what is behind a gateway (nmap, p0f), the IPsec that a shield stands in front of (strongSwan), a network stack that
# stands behind a gateway and reads what it lets through (lwIP), the compiler of the program in the kernel, to compare, and the
# checker of models (SPIN). A token of PKCS#11 in files has an authority's key (SoftHSM). Prometheus
# scrapes daemons, and its tool reads what is shipped for it.
test_packages="openssl softhsm2 opensc spin prometheus strace tshark nmap p0f liblwip-dev clang-14 \
    kea-dhcp4-server isc-dhcp-server isc-dhcp-relay dhcpcd-base etcd-server \
    strongswan-starter strongswan-charon strongswan-swanctl libcharon-extra-plugins libstrongswan-extra-plugins \
    libstrongswan-standard-plugins"
# The LAN again, streams (iperf3), DHCP, the application-level proxy that the gateway is measured beside (squid), algorithms for
# authentication that our own libraries do not have (nettle), and tunnels to be flooded (strongSwan).
bench_packages="iproute2 iputils-ping util-linux ethtool tcpdump iperf3 dnsmasq-base udhcpc squid nettle-dev \
    strongswan-charon strongswan-swanctl libcharon-extra-plugins libstrongswan-extra-plugins libstrongswan-standard-plugins"
# Debian's Rust that is kept new enough for web browsers; it takes the place of Debian's older rustc and cargo.
rust_packages="rustc-web cargo-web rustfmt-web rust-web-clippy"

missing_packages() {
    for package in "$@"; do
        state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
        [ "$state" = installed ] || printf '%s ' "$package"
    done
}

# The packages of etcd, of Prometheus, of DHCP servers, of strongSwan and of Squid would start
# services; where a machine has a policy already, that decides.
policy=/usr/sbin/policy-rc.d
policy_is_ours=no
forbid_services() {
    [ ! -e "$policy" ] || return 0
    policy_is_ours=yes
    trap allow_services EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
}

allow_services() {
    [ "$policy_is_ours" = yes ] || return 0
    as_root rm -f "$policy"
    policy_is_ours=no
}

# Nor shall they begin with the next boot.
leave_off() {
    [ -d /run/systemd/system ] || return 0
    for package in "$@"; do
        case $package in
        etcd-server) as_root systemctl disable --quiet etcd.service ;;
        prometheus) as_root systemctl disable --quiet prometheus.service ;;
        strongswan-starter) as_root systemctl disable --quiet strongswan-starter.service ;;
        isc-dhcp-server | isc-dhcp-relay | kea-dhcp4-server | squid) as_root systemctl disable --quiet "$package.service" ;;
        esac
    done
}

install_packages() {
    # shellcheck disable=SC2046,SC2086 # one word for each package is what is wanted
    set -- $(missing_packages "$@")
    [ $# -gt 0 ] || return 0
    say "installing $*"
    as_root apt-get update -qq
    forbid_services
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
    allow_services
    leave_off "$@"
}

case ${1:-} in
build) packages=$build_packages ;;
package) packages="$build_packages $package_packages" ;;
demo) packages="$build_packages $demo_packages" ;;
machine) packages="$build_packages $package_packages iproute2 tcpdump debootstrap e2fsprogs qemu-system-x86 qemu-utils" ;;
test) packages="$build_packages $demo_packages $test_packages" ;;
bench) packages="$build_packages $bench_packages" ;;
*) fail "usage: setup.sh build|package|demo|machine|test|bench" ;;
esac

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
    # shellcheck disable=SC2086
    install_packages $packages
    # shellcheck disable=SC2086
    rust_is_new_enough || install_packages $rust_packages
else
    echo "setup.sh: not a Debian machine: install what is missing yourself: $packages" >&2
fi

# Read again: /usr/bin/cargo may be there only now.
. packaging/common.sh
rust_is_new_enough || fail "Rust $(rust_wanted) or newer is missing: install it (on Debian 12: $rust_packages)"
