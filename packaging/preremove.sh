#!/bin/sh
# Stops the service before a removal, not before an upgrade. A deb stays enabled until it is
# purged, so that a new installation starts again. An rpm cannot be purged.
set -e
unit=otelcol-tokenpulse.service
command -v systemctl >/dev/null || exit 0
case "$1" in
remove | 0) [ ! -d /run/systemd/system ] || systemctl stop "$unit" ;; # a deb, an rpm
esac
[ "$1" != 0 ] || systemctl disable "$unit"
