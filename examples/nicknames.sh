#!/usr/bin/env bash
# "This nickname is taken", while the user is still typing, without asking the server for every letter.
# The list of taken names goes to every client as a small static filter, until the next version.
#
# What to look at: a name with the answer no is certainly free, so the form can say so immediately. Only the few other names
# need a request. The file is a fraction of the list.
# Uses `build --static`, `check -v`, `check`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-500000} # names that are taken
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'nicknames: %s\n' "$*" >&2; exit 1; }

awk -v n="$items" 'BEGIN {
    split("amber bold calm dusty early fuzzy grand happy icy jolly", first)
    split("otter raven lynx heron badger salmon beetle walnut cedar comet", second)
    for (i = 0; i < n; i++) print first[1 + i % 10] "-" second[1 + int(i / 10) % 10] "-" i
}' > taken.txt
"$mayhap" build taken.mayhap --static --fpr 0.1% --quiet taken.txt
list=$(wc -c < taken.txt)
filter=$(wc -c < taken.mayhap)
echo "taken names: $items, a list of $list bytes; the filter clients load takes $filter bytes"
[ $((filter * 5)) -lt "$list" ] || fail "the filter is not even five times smaller than the list"

# The names that people try: half of them are taken.
awk 'NR % 10 == 0' taken.txt > try-taken.txt
awk 'NR % 10 == 0 { print $0 "x" }' taken.txt > try-free.txt
cat try-taken.txt try-free.txt > try.txt

"$mayhap" check -v taken.mayhap try.txt > free.txt
"$mayhap" check taken.mayhap try.txt > ask.txt
echo "tried: $(wc -l < try.txt); certainly free, without a request: $(wc -l < free.txt); need a request: $(wc -l < ask.txt)"

# No taken name is reported as free.
wrong=$(LC_ALL=C comm -12 <(LC_ALL=C sort try-taken.txt) <(LC_ALL=C sort free.txt) | wc -l)
[ "$wrong" -eq 0 ] || fail "$wrong taken names were called free"
echo "taken names called free: 0"

# At most 0.1 % of the free names cost a request, within six standard deviations.
asked=$(LC_ALL=C comm -12 <(LC_ALL=C sort try-free.txt) <(LC_ALL=C sort ask.txt) | wc -l)
echo "free names that cost a request: $asked of $(wc -l < try-free.txt)"
awk -v asked="$asked" -v n="$(wc -l < try-free.txt)" 'BEGIN { exit !(asked <= n * 0.001 + 6 * sqrt(n * 0.001) + 1) }' ||
    fail "$asked free names cost a request, more than 0.1 %"
