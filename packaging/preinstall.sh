#!/bin/sh
# Creates the user of the service.
set -e
user=otelcol-tokenpulse
getent passwd "$user" >/dev/null ||
	useradd --system --user-group --no-create-home --home-dir "/var/lib/$user" --shell /usr/sbin/nologin "$user"
