#!/bin/sh
# Begins to compare a canary, unless it has begun, and waits for the verdict, such as in a CI job:
#   verdict.sh service.version v1 v2 all
# Exit codes: 0 pass, 1 fail, 2 undecided for TIMEOUT seconds, 3 no verdict (the message has the remedy).
set -eu
[ $# = 4 ] || { echo "usage: $0 dimension baseline candidate slo" >&2; exit 3; }
deadline=$(($(date +%s) + ${TIMEOUT:-3600}))
while :; do
	answer=$(curl --silent --show-error --fail-with-body --max-time 10 --retry 5 --retry-connrefused \
		--get --request POST "${TOKENPULSE:-http://localhost:9464}/api/v1/compare" \
		--data-urlencode "dimension=$1" --data-urlencode "baseline=$2" \
		--data-urlencode "candidate=$3" --data-urlencode "slo=$4") || { echo "$answer" >&2; exit 3; }
	case $answer in
	*'"verdict":"pass"'*) echo "$answer"; exit 0 ;;
	*'"verdict":"fail"'*) echo "$answer"; exit 1 ;;
	*'"verdict":"undecided"'*) ;;
	*) echo "$answer" >&2; exit 3 ;;
	esac
	[ "$(date +%s)" -lt "$deadline" ] || { echo "$answer"; exit 2; }
	sleep "${INTERVAL:-30}"
done
