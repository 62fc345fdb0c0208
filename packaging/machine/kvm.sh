#!/bin/sh
# Whether a machine starts under KVM here: a boot sector that does what a kernel does first must come to
# its end within ten seconds (probe.S). /dev/kvm alone says little, and so does firmware that runs: within
# a virtual machine both may be there, and no kernel gets through its first millisecond.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ -w /dev/kvm ] || exit 1
for tool in qemu-system-x86_64 as ld; do
    command -v "$tool" >/dev/null || exit 1
done
work=$(mktemp -d)
machine=""
trap '[ -z "$machine" ] || kill "$machine" 2>/dev/null || true; rm -rf "$work"' EXIT
as "$here/probe.S" -o "$work/probe.o"
ld -Ttext 0x7c00 --oformat binary "$work/probe.o" -o "$work/probe"
# A fault of the processor ends it.
qemu-system-x86_64 -accel kvm -machine pc -cpu max -m 64 -nodefaults -no-user-config -display none \
    -no-reboot -drive "file=$work/probe,format=raw,if=ide" \
    -debugcon "file:$work/said" -global isa-debugcon.iobase=0x402 >/dev/null 2>&1 &
machine=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    if [ "$(tail -c 1 "$work/said" 2>/dev/null)" = K ]; then
        exit 0
    fi
    kill -0 "$machine" 2>/dev/null || exit 1
    sleep 1
done
exit 1
