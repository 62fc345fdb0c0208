#!/bin/sh
# image.sh DIRECTORY KERNEL-PACKAGE: a machine's root file system (base.qcow2), kernel (vmlinuz) and
# initial RAM disk (initrd.img) in DIRECTORY. Debian's part is made once (tree), the program's anew
# each time: the Debian package, installed, and a second revision of it in /opt/ringwall of the
# machine, to upgrade to.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
directory=$1
kernel=$2
tree=$directory/tree-$kernel
part=$tree.part
packages="initramfs-tools zstd network-manager dhcpcd ifupdown wpasupplicant hostapd iw wireless-regdb \
isc-dhcp-client dnsmasq-base etcd-server softhsm2 charon-systemd strongswan-swanctl \
libstrongswan-standard-plugins wireguard-tools iperf3"

mounted=""
unmount() {
    for place in $mounted; do umount -R "$place"; done
    mounted=""
}
trap unmount EXIT

inside() {
    chroot "$part" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"
}

make_tree() {
    # Should a former run have left a mount there, it is not followed.
    rm -rf --one-file-system "$part"
    debootstrap --variant=minbase --include=systemd-sysv,udev,dbus,kmod,iproute2,nftables,iputils-ping,procps,python3 \
        bookworm "$part"
    # Nothing starts while it is made.
    printf '#!/bin/sh\nexit 101\n' >"$part/usr/sbin/policy-rc.d"
    chmod 755 "$part/usr/sbin/policy-rc.d"
    for name in proc sys dev; do
        mount --rbind --make-rslave "/$name" "$part/$name" 2>/dev/null || mount --bind "/$name" "$part/$name"
        mounted="$part/$name $mounted"
    done
    cp /etc/resolv.conf "$part/etc/resolv.conf" 2>/dev/null || true
    cp /etc/apt/apt.conf.d/* "$part/etc/apt/apt.conf.d/" 2>/dev/null || true
    # Newer kernels for this release come that way.
    echo "deb http://deb.debian.org/debian-security bookworm-security main" \
        >"$part/etc/apt/sources.list.d/security.list"
    inside apt-get update -qq
    # shellcheck disable=SC2086
    inside apt-get install -y -qq --no-install-recommends "$kernel" $packages
    inside apt-get clean
    unmount
    rm "$part/usr/sbin/policy-rc.d"
    # Each case switches its own manager on.
    for unit in etcd dhcpcd NetworkManager NetworkManager-wait-online NetworkManager-dispatcher systemd-networkd \
        wpa_supplicant hostapd strongswan iperf3 apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer \
        e2scrub_reap fstrim.timer; do
        inside systemctl disable -q "$unit" 2>/dev/null || true
    done
    inside passwd -q -d root
    echo '/dev/vda / ext4 defaults 0 1' >"$part/etc/fstab"
    printf 'auto lo\niface lo inet loopback\n' >"$part/etc/network/interfaces"
    # Each machine draws its own.
    : >"$part/etc/machine-id"
    echo "$packages" >"$part/etc/machine-packages"
    # One that was not finished is not taken for one that was.
    rm -rf --one-file-system "$tree"
    mv "$part" "$tree"
}

add_program() {
    rm -rf "$directory/package"
    for revision in 1 2; do
        # It is unpacked at once.
        packaging/package.sh --program target/release/ringwall --revision "$revision" --effort 0 \
            --out "$directory/package"
    done
    # A tree of a former run has it already, whole.
    install -D -m 644 "$directory"/package/*-1_*.deb "$tree/opt/ringwall/first.deb"
    install -D -m 644 "$directory"/package/*-2_*.deb "$tree/opt/ringwall/second.deb"
    # Who makes its directories needs it.
    mount --bind /proc "$tree/proc"
    mounted=$tree/proc
    chroot "$tree" env DEBIAN_FRONTEND=noninteractive LC_ALL=C dpkg --install /opt/ringwall/first.deb
    unmount
    install -D -m 755 "$here/agent.py" "$tree/usr/local/lib/machine/agent.py"
    cat >"$tree/etc/systemd/system/agent.service" <<'UNIT'
[Unit]
DefaultDependencies=no
After=local-fs.target
StartLimitIntervalSec=0
[Service]
RestartSec=1
ExecStartPre=-/sbin/modprobe virtio_console
ExecStart=/usr/bin/python3 /usr/local/lib/machine/agent.py
Restart=always
UNIT
    mkdir -p "$tree/etc/systemd/system/sysinit.target.wants"
    ln -sf ../agent.service "$tree/etc/systemd/system/sysinit.target.wants/agent.service"
}

# What was made with other packages is made anew.
[ "$(cat "$tree/etc/machine-packages" 2>/dev/null)" = "$packages" ] || make_tree
add_program
cp "$tree"/boot/vmlinuz-* "$directory/vmlinuz"
cp "$tree"/boot/initrd.img-* "$directory/initrd.img"
raw=$directory/base.raw
rm -f "$raw"
truncate -s 4G "$raw"
mkfs.ext4 -q -F -d "$tree" "$raw"
qemu-img convert -O qcow2 "$raw" "$directory/base.qcow2"
rm "$raw"
