#!/bin/sh
# Closes an interface at the card's own hooks, or opens it again: closed.sh close|open|release INTERFACE
# Nothing comes in (but to packet sockets for every protocol, which the kernel serves before the
# hook) and nothing goes out, packet sockets included. The outgoing half needs Linux 5.16 and
# nftables 1.0.1. A VLAN is closed at the card below it, too.
# - `ahead` closes each interface that ringwall-virtual@ is enabled for and whose device is yet to
#   be made: a VLAN at its card (record 0104), a bond or bridge by its name. `ahead INTERFACE`
#   closes one alone.
# - `made INTERFACE INDEX` closes a device that was just made, unless udev has come to it already.
# - `release` is the way out for an administrator: it opens, and takes away what a daemon has left
#   at the card.
# - `appear INTERFACE NAME` closes a card that may have just come and is called NAME until udev has
#   renamed it, unless its daemon guards it (record 0120).
# - `device INTERFACE` prints the path by which units find it (record 0092).
set -eu

fail() {
    echo "closed.sh: $*" >&2
    exit 1
}

usage() {
    fail "usage: closed.sh close|open|release|device INTERFACE, appear INTERFACE NAME, made INTERFACE INDEX," \
        "or ahead [INTERFACE]"
}

enabled=/etc/systemd/system/multi-user.target.wants/ringwall-virtual@
PATH=$PATH:/usr/sbin:/sbin
command -v nft >/dev/null || fail "the program nft is missing: install nftables"

check_name() {
    case $1 in
    '' | . | .. | *[!A-Za-z0-9._@-]*) return 1 ;;
    esac
    [ ${#1} -le 15 ]
}

# One at a time, or rules made for a device that was not there yet would come after its opening. What locks is the
# script, since the units cannot write elsewhere. Nobody stays open for want of the lock.
lock() {
    exec 9<"$0"
    flock -w 10 9 || {
        echo "closed.sh: no lock" >&2
        return 1
    }
}

# A device that was just made is closed by a rule of udev. Whoever opens it must not come before that.
await_udev() {
    [ -e /run/udev/control ] && read -r index <"/sys/class/net/$interface/ifindex" || return 0
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ ! -e "/run/udev/data/n$index" ] || return 0
        sleep 0.5
    done
}

# nft takes no dots and hyphens in a name, so they are spelled out and no two interfaces share a table.
table() {
    printf 'ringwall_closed_'
    printf %s "$interface" | sed 's/_/__/g; s/\./_2e/g; s/-/_2d/g; s/@/_40/g'
}

is_vlan() {
    case $vlan in '' | *[!0-9]* | 0* | ?????*) return 1 ;; esac
    [ "$vlan" -le 4094 ] && check_name "$card"
}

# The card and the number of a VLAN: as a daemon has noted them, or else as the name tells them.
find_card() {
    note=/var/lib/ringwall/$interface.vlan card='' vlan=''
    [ ! -r "$note" ] || read -r card vlan <"$note" || :
    if ! is_vlan; then
        card=${interface%.*} vlan=${interface##*.}
        is_vlan || return 1
    fi
    [ -e "/sys/class/net/$card" ]
}

# Where `nft` reads, it sees a tag be it in the frame or beside it. The kernel takes off one with number 0, and looks
# at the next.
at_card() {
    for side in "from_card ingress" "to_card egress"; do
        cat <<RULES
    chain ${side% *} {
        type filter hook ${side#* } device "$card" priority -500;
        @ll,96,16 { 0x8100, 0x88a8 } @ll,116,12 $vlan drop
        @ll,96,16 { 0x8100, 0x88a8 } @ll,116,12 0 @ll,128,16 { 0x8100, 0x88a8 } drop
    }
RULES
    done
}

at_device() {
    cat <<RULES
    chain from_wire { type filter hook ingress ${1:-device \"$device\"} priority -500; policy drop; }
    chain to_wire { type filter hook egress ${1:-device \"$device\"} priority -500; policy drop; }
RULES
}

# Before Linux 6.16 a chain stays at its device over a renaming; from then on it goes by the name, and may name one
# that is not there yet.
at_both_names() {
    [ "$device" != "$interface" ] && at_device "devices = { \"$device\", \"$interface\" }" | put 2>/dev/null
}

# Puts the chains that are read in place of those that stand.
put() {
    table=$(table)
    {
        printf 'table netdev %s\ndelete table netdev %s\ntable netdev %s {\n' "$table" "$table" "$table"
        cat
        echo "}"
    } | nft -f -
}

# A device that is not there yet is closed by its name: where the stack hands packets to it and
# takes them from it, and for a bridge where it meets its ports. What one family cannot do hinders
# no other; not every kernel has nftables for bridges.
put_by_name() {
    put_at bridge input output "meta ibrname" "meta obrname" || :
    all=0
    put_at arp input output iifname oifname || all=1
    put_at inet prerouting postrouting iifname oifname || all=1
    return $all
}

# Family, two hooks, and how a rule of each names the device.
put_at() {
    table=$(table)
    nft -f - <<RULES
table $1 $table
delete table $1 $table
table $1 $table {
    chain from_device { type filter hook $2 priority -500; $4 "$interface" drop; }
    chain to_device { type filter hook $3 priority -500; $5 "$interface" drop; }
}
RULES
}

# They are not there unless the device was closed by its name.
delete_tables() {
    table=$(table)
    for family in "$@"; do
        ! nft list table "$family" "$table" >/dev/null 2>&1 || nft delete table "$family" "$table"
    done
}

# Who makes a device again while a daemon guards it finds it shut by the daemon (record 0104).
close_ahead() {
    check_name "$interface" && [ ! -e "/sys/class/net/$interface" ] || return 0
    if find_card; then
        at_card | put
    else
        put_by_name
    fi
}

close_all_ahead() {
    status=0
    for unit in "$enabled"*.service; do
        interface=${unit#"$enabled"}
        interface=${interface%.service}
        close_ahead || status=1
    done
    return $status
}

open() {
    table=$(table)
    printf 'table netdev %s\ndelete table netdev %s\n' "$table" "$table" | nft -f -
    # What ringwall-made@ has silenced: by its handle, so that nobody else's goes.
    tc qdisc del dev "$interface" root handle 5257: blackhole 2>/dev/null || :
    delete_tables bridge arp inet
}

# The filters of a daemon, by the number that it gives them (in_place/below.rs).
open_card() {
    handle=$(printf '0x5257%04x' "$vlan")
    for side in ingress egress; do
        ! tc filter show dev "$card" "$side" 2>/dev/null | grep -q "handle $handle " ||
            tc filter del dev "$card" "$side" pref 1 handle "$handle" protocol all bpf
    done
}

# A card that a daemon guards in place has its rules, which go with a card, and its program.
is_guarded() {
    rules=ringwall_$(printf %s "$interface" | sed 's/_/_5f/g; s/\./_2e/g; s/-/_2d/g; s/@/_40/g')
    nft list chain netdev "$rules" to_wire >/dev/null 2>&1 &&
        ip -o link show dev "$device" 2>/dev/null | grep -q ' xdp'
}

# Another device has the name, as its own or as another one: udev will not rename this one. Mostly it is this one that
# has it already: udev gives a card all its other names first, the one that becomes its own among them.
is_taken() {
    [ "$device" != "$interface" ] && holder=$(ip -o link show dev "$interface" 2>/dev/null) || return 1
    read -r index <"/sys/class/net/$device/ifindex" && [ "${holder%%:*}" != "$index" ]
}

[ "$*" != ahead ] || {
    lock || :
    close_all_ahead
    exit
}
case $#:$1 in
2:appear | 2:made) usage ;;
2:* | 3:appear | 3:made) ;;
*) usage ;;
esac
interface=$2 device=$2
[ "$1" != appear ] || device=$3
check_name "$interface" && check_name "$device" || fail "not an interface name: $interface $device"
case $1 in
device) printf '/sys/subsystem/net/devices/%s\n' "$interface" | tr - / ;;
close | appear | made)
    # What is silent already rather stays so than is closed behind its daemon's opening.
    lock || [ "$1" != made ]
    # Its rule has closed the device then, and a daemon may have opened it since.
    [ "$1" != made ] || [ ! -e "/run/udev/data/n$3" ] || exit 0
    if [ ! -e "/sys/class/net/$device" ]; then
        echo "closed.sh: $interface is not there; a rule of udev closes a card when it comes" >&2
        exit 0
    fi
    [ "$1" != appear ] || ! { is_guarded || is_taken; } || exit 0
    ! at_both_names || exit 0
    if find_card; then
        ! { at_device && at_card; } | put || exit 0
        echo "closed.sh: $interface is not closed at the card $card" >&2
    fi
    at_device | put
    # With br_netfilter they would drop what passes between guests of a bridge.
    delete_tables arp inet
    ;;
ahead)
    lock || :
    close_ahead
    ;;
open)
    await_udev
    lock || :
    open
    ;;
release)
    await_udev
    lock || :
    open
    ! find_card || open_card
    ;;
*) usage ;;
esac
