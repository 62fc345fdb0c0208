#!/bin/sh
# A generator of systemd: runs at boot and with each daemon-reload (systemd.generator(7)).
exec @SBINDIR@/ringwall host unit-rights "$1" @LIBEXECDIR@/namespace.conf
