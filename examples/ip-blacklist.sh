#!/usr/bin/env bash
# Which of these requests came from an address on the blacklist? The list is long, the logs are longer, and compressed.
#
# What to look at: the filter selects a small part of the log that contains every matching line. An exact check of that part
# gives the exact result for the whole log.
# Uses `build`, `check -k`, gzip by content.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-300000} # addresses on the blacklist
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'ip-blacklist: %s\n' "$*" >&2; exit 1; }

address='function address(i) { return 1 + int(i / 16777216) % 223 "." int(i / 65536) % 256 "." int(i / 256) % 256 "." i % 256 }'
awk -v n="$items" "$address"' BEGIN { for (i = 0; i < n; i++) print address(i * 7001) }' > blacklist.txt
"$mayhap" build blacklist.mayhap --fpr 0.1% --quiet blacklist.txt
echo "blacklist: $items addresses in $(wc -c < blacklist.txt) bytes; the filter takes $(wc -c < blacklist.mayhap)"

# Two days of logs, one line in fifty from the list, one file compressed. The address is the first field.
log() {
    awk -v n="$items" -v day="$1" "$address"' BEGIN {
        for (i = 0; i < n; i++) {
            from = i % 50 == 0 ? address(i * 7001) : address(i * 7001 + 1 + i % 3000)
            printf "%s - - [%02d/Nov/2026:12:00:00 +0000] \"GET /%d HTTP/1.1\" 200 512\n", from, day, i
        }
    }'
}
log 15 > yesterday.log
log 16 | gzip -1 > today.log.gz
lines=$((2 * items))

"$mayhap" check -k 1 blacklist.mayhap yesterday.log today.log.gz > suspicious.log
echo "log lines: $lines; suspicious: $(wc -l < suspicious.log)"

# The exact result, from a table in memory: once for all lines, and once for the lines that the filter selected.
exact='NR == FNR { bad[$1] = 1; next } $1 in bad'
{ cat yesterday.log; gzip -dc today.log.gz; } | awk "$exact" blacklist.txt - > exact.log
awk "$exact" blacklist.txt suspicious.log > confirmed.log
cmp -s exact.log confirmed.log || fail "the filter lost lines that are on the list"
echo "confirmed: $(wc -l < confirmed.log), exactly the lines that a search through everything gives"

wrong=$(($(wc -l < suspicious.log) - $(wc -l < confirmed.log)))
echo "suspicious without reason: $wrong"
# The same addresses come every day, and so do their false positives: only half of the lines are independent.
awk -v wrong="$wrong" -v n="$items" 'BEGIN { mean = n * 0.001; exit !(wrong <= 2 * (mean + 6 * sqrt(mean) + 1)) }' ||
    fail "$wrong lines were suspected without reason, more than 0.1 %"
