#!/usr/bin/env bash
# One large set in many parts: every worker builds a filter of its part, and one step merges them. The result is the same
# filter that one worker would have built from everything.
#
# What to look at: the merged filter and the one built in one step give the same answer for every item; a part that was built
# with another size is rejected, and nothing is written.
# Uses `build --kind --items`, `merge`, `check`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-1000000} # lines of the whole log, two for each visitor
parts=8
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'map-reduce: %s\n' "$*" >&2; exit 1; }

# A log of visits. The same visitor is in many parts of it.
awk -v n="$items" 'BEGIN { for (i = 0; i < n; i++) print "visitor-" (i * 40503) % (n / 2) }' > visits.txt
split -n l/$parts visits.txt part-

# Map: one filter for each part. All have the size of the whole; otherwise they could not be merged.
shape=(--kind bloom --items $((items / 2)) --fpr 1% --quiet)
workers=()
for part in part-*; do
    "$mayhap" build "$part.mayhap" "${shape[@]}" "$part" &
    workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker" || fail "a worker failed"; done
echo "map: $(ls part-*.mayhap | wc -l) filters of $(wc -c < part-aa.mayhap) bytes each"

# Reduce: only the filters. No worker sends its items.
"$mayhap" merge all.mayhap --quiet part-*.mayhap
"$mayhap" build one.mayhap "${shape[@]}" visits.txt
echo "reduce: one filter of $(wc -c < all.mayhap) bytes, from $(cat part-*.mayhap | wc -c) bytes instead of $(wc -c < visits.txt) bytes of items"

# Every visitor of every part is in it.
[ "$("$mayhap" check -c all.mayhap visits.txt)" -eq "$(wc -l < visits.txt)" ] || fail "a visitor was lost"
# It answers as the filter built in one step, including its false positives.
awk -v n="$items" 'BEGIN { for (i = 0; i < n; i++) print "guest-" i }' > others.txt
"$mayhap" check all.mayhap others.txt > merged.txt || [ $? -eq 1 ]
"$mayhap" check one.mayhap others.txt > single.txt || [ $? -eq 1 ]
cmp -s merged.txt single.txt || fail "the merged filter answers otherwise than the one built in one piece"
awk -v wrong="$(wc -l < merged.txt)" -v n="$items" 'BEGIN { exit !(wrong <= n * 0.01 + 6 * sqrt(n * 0.01) + 1) }' ||
    fail "$(wc -l < merged.txt) false positives in $items, more than 1 %"
echo "the same answers as a filter built in one piece: $(wc -l < merged.txt) false positives in $items for both"

# A worker that sized its filter for its own part only.
"$mayhap" build small.mayhap --kind bloom --fpr 1% --quiet part-aa
if "$mayhap" merge wrong.mayhap --quiet part-ab.mayhap small.mayhap 2> refused.txt; then fail "other measurements were merged"; fi
[ ! -e wrong.mayhap ] || fail "a refused merge wrote a file"
echo "a part with other measurements is refused: $(cut -c1-100 refused.txt)"
