#!/usr/bin/env bash
# A stream of events with repetitions: retries come within seconds, but the same event may legitimately come again much later.
# And a stream has no end to wait for.
#
# What to look at: with a window, retries are dropped and late repetitions are kept, in memory that does not grow. A line is
# written as soon as it was read. The remembered lines survive a restart.
# Uses `uniq --window`, `--line-buffered`, `--state`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=$((${ITEMS:-500000} / 2 * 2)) # events, in two halves
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'stream-dedup: %s\n' "$*" >&2; exit 1; }

# Every event is sent, and sent again ten lines later. Half of all ids come again in the other half of the stream.
awk -v n="$items" 'BEGIN {
    for (i = 0; i < n; i++) {
        print "event-" i % (n / 2)
        if (i >= 10) print "event-" (i - 10) % (n / 2)
    }
}' > stream.txt

# 1. The window: it remembers more lines than a retry is late, and far fewer than lie between the halves.
window=$((items / 20))
"$mayhap" uniq --window "$window" --quiet stream.txt > kept.txt
echo "stream: $(wc -l < stream.txt) lines; kept with a window of $window: $(wc -l < kept.txt)"
# Every event of both halves, once each; a filter may drop one in a hundred thousand.
expected=$items
awk -v kept="$(wc -l < kept.txt)" -v n="$expected" 'BEGIN { exit !(kept <= n && kept >= n - n / 100000 - 6) }' ||
    fail "$(wc -l < kept.txt) lines were kept, not $expected"
[ "$(LC_ALL=C sort -u kept.txt | wc -l)" -eq $((items / 2)) ] || fail "an event is missing"

# 2. Live: a line is written while the pipe is still open.
mkfifo pipe
"$mayhap" uniq --line-buffered --quiet < pipe > live.txt &
reader=$!
exec 3> pipe
printf 'one\none\ntwo\n' >&3
for _ in $(seq 100); do
    [ "$(wc -l < live.txt)" -ge 2 ] && break
    sleep 0.1
done
[ "$(tr '\n' ' ' < live.txt)" = "one two " ] || fail "the lines are not written while the stream goes on"
echo "live: two lines written while the stream is still open"
exec 3>&-
wait "$reader"

# 3. A restart: the second part of a stream continues where the first ended.
head -n "$items" stream.txt > before.txt
tail -n +$((items + 1)) stream.txt > after.txt
"$mayhap" uniq --state seen.mayhap --quiet before.txt > first.txt
"$mayhap" uniq --state seen.mayhap --quiet after.txt > second.txt
awk '!seen[$0]++' stream.txt > exact.txt
cat first.txt second.txt | cmp -s - exact.txt || fail "after a restart the stream is not the same"
echo "restarted in the middle: the same $(wc -l < exact.txt) events as without"
