#!/bin/sh
# Closes an interface at the card's own hooks, or opens it again: closed.sh close|open INTERFACE
# Nothing comes in (but to packet sockets for every protocol, which the kernel serves before the hook) and nothing goes
# out, packet sockets included. The outgoing half needs Linux 5.16 and nftables 1.0.1.
set -eu

fail() {
    echo "closed.sh: $*" >&2
    exit 1
}

[ $# -eq 2 ] || fail "usage: closed.sh close|open INTERFACE"
action=$1
interface=$2
case $interface in
'' | . | .. | *[!A-Za-z0-9._@-]*) fail "not an interface name: $interface" ;;
esac
[ ${#interface} -le 15 ] || fail "not an interface name: $interface"
PATH=$PATH:/usr/sbin:/sbin
command -v nft >/dev/null || fail "the program nft is missing: install nftables"

# A device that was just made is closed by a rule of udev. Whoever opens it must not come before that.
await_udev() {
    [ -e /run/udev/control ] && read -r index <"/sys/class/net/$interface/ifindex" || return 0
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ ! -e "/run/udev/data/n$index" ] || return 0
        sleep 0.5
    done
}

# nft takes no dots and hyphens in a name, so they are spelled out and no two interfaces share a table.
table=ringwall_closed_$(printf %s "$interface" | sed 's/_/__/g; s/\./_2e/g; s/-/_2d/g; s/@/_40/g')
case $action in
close)
    nft -f - <<RULES
table netdev $table
delete table netdev $table
table netdev $table {
    chain from_wire { type filter hook ingress device "$interface" priority -500; policy drop; }
    chain to_wire { type filter hook egress device "$interface" priority -500; policy drop; }
}
RULES
    ;;
open)
    await_udev
    printf 'table netdev %s\ndelete table netdev %s\n' "$table" "$table" | nft -f -
    ;;
*) fail "usage: closed.sh close|open INTERFACE" ;;
esac
