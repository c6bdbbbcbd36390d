#!/bin/sh
# Starts the service: after a first installation if the distribution enables new services
# (Debian and Ubuntu do, Fedora does not), later if it is enabled.
set -e
unit=otelcol-tokenpulse.service
command -v systemctl >/dev/null || exit 0
case "$1,$2" in
configure, | 1,) systemctl preset "$unit" ;; # the first installation of a deb, of an rpm
esac
[ -d /run/systemd/system ] || exit 0 # an image or a chroot
systemctl daemon-reload
verb=try-restart
! systemctl is-enabled --quiet "$unit" || verb=restart
systemctl "$verb" "$unit" || echo "$unit does not run; see: journalctl -u $unit" >&2
