#!/usr/bin/env bash
# A crawler finds the same links again and again, including those it fetched last week. It should fetch each page once.
#
# What to look at: three runs share one state file. The second and third fetch only pages that no earlier run has seen.
# Uses `uniq --state`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-500000} # links found in each run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'crawler: %s\n' "$*" >&2; exit 1; }

# The links of one run. Most lead to few pages; every run reaches a little further.
links() {
    awk -v n="$items" -v run="$1" 'BEGIN {
        srand(run)
        for (i = 0; i < n; i++) {
            page = int(rand() * rand() * (n / 2) * (1 + run / 2))
            print "https://example.org/shop/" int(page / 100) "/item?id=" page
        }
    }'
}

for run in 1 2 3; do
    links "$run" > "found-$run.txt"
    "$mayhap" uniq --state seen.mayhap --quiet "found-$run.txt" > "fetch-$run.txt"
    echo "run $run: $(wc -l < "found-$run.txt") links found, $(wc -l < "fetch-$run.txt") pages to fetch"
done
echo "what it remembers takes $(wc -c < seen.mayhap) bytes; the addresses themselves $(cat fetch-*.txt | wc -c)"

# No page is fetched twice and none is missed: the same pages, in the same order, as with all addresses in memory.
[ -z "$(cat fetch-*.txt | LC_ALL=C sort | uniq -d | head -n 1)" ] || fail "a page is fetched twice"
cat found-*.txt | awk '!seen[$0]++' > exact.txt
cat fetch-*.txt | cmp -s - exact.txt || fail "not the pages that an exact set gives"
echo "every page once, none missing: the same $(wc -l < exact.txt) pages as with an exact set"
