#!/bin/sh
# Purging a deb deletes the state, the user, and what systemctl enable has written. Removing
# a deb or an rpm keeps the state and the user.
set -e
user=otelcol-tokenpulse
[ ! -d /run/systemd/system ] || systemctl daemon-reload
[ "$1" = purge ] || exit 0
rm -rf "/var/lib/$user" "/etc/systemd/system/multi-user.target.wants/$user.service"
! getent passwd "$user" >/dev/null || userdel "$user"
