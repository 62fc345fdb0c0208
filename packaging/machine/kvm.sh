#!/bin/sh
# Whether a machine starts under KVM here: its firmware must speak within ten seconds. /dev/kvm alone
# says little: within a virtual machine it may be there and carry no machine.
set -eu
[ -w /dev/kvm ] || exit 1
command -v qemu-system-x86_64 >/dev/null || exit 1
said=$(mktemp)
qemu-system-x86_64 -accel kvm -machine pc -cpu max -m 64 -nodefaults -no-user-config -display none \
    -debugcon "file:$said" -global isa-debugcon.iobase=0x402 >/dev/null 2>&1 &
machine=$!
trap 'kill "$machine" 2>/dev/null || true; rm -f "$said"' EXIT
for _ in 1 2 3 4 5 6 7 8 9 10; do
    if grep -aq SeaBIOS "$said"; then
        exit 0
    fi
    kill -0 "$machine" 2>/dev/null || exit 1
    sleep 1
done
exit 1
