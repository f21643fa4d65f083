#!/usr/bin/env bash
# A feed shows no user the same post twice. Every user has a list of seen posts. Most lists are short, some are very long,
# and it is not known beforehand which. One filter per user, sized for the longest list, would waste nearly all its memory.
#
# What to look at: three users who saw 1,000, 10,000 and 100,000 posts began with the same small filter. Each filter has grown
# to its tier, the false-positive rate is unchanged, and no post is shown twice.
# Uses `build --grows`, `add`, `check -v`, `info`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-100000} # posts the busiest user has seen
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'feed-tiers: %s\n' "$*" >&2; exit 1; }

seq -f 'post-%.0f' 1 $((2 * items)) > posts.txt
for tier in $((items / 100)) $((items / 10)) "$items"; do
    # The first posts create the filter, ten days of reading make it grow.
    awk -v tier="$tier" 'NR % 2 == 1 && NR < 2 * tier' posts.txt > seen.txt
    split -n l/10 seen.txt day-
    "$mayhap" build user.mayhap --grows --items $((items / 100)) --fpr 1% --force --quiet day-aa
    for day in day-a[b-j]; do "$mayhap" add user.mayhap --quiet "$day"; done
    bytes=$(wc -c < user.mayhap)

    # Candidates for the next page: as many seen posts as new ones.
    head -n $((2 * tier)) posts.txt > candidates.txt
    "$mayhap" check -v user.mayhap candidates.txt > show.txt
    twice=$(LC_ALL=C comm -12 <(LC_ALL=C sort seen.txt) <(LC_ALL=C sort show.txt) | wc -l)
    [ "$twice" -eq 0 ] || fail "$twice posts would be shown a second time"
    skipped=$((tier - $(wc -l < show.txt)))
    echo "seen $tier posts: $bytes bytes; $(wc -l < show.txt) of $tier new candidates shown, $skipped skipped, 0 shown twice"
    awk -v skipped="$skipped" -v n="$tier" 'BEGIN { exit !(skipped <= n * 0.01 + 6 * sqrt(n * 0.01) + 1) }' ||
        fail "$skipped of $tier new posts were skipped, more than 1 %"
    # While it grows, it takes at most 5 bytes per post, plus one kilobyte.
    [ "$bytes" -le $((5 * tier + 5 * items / 100 + 1024)) ] || fail "$bytes bytes for $tier posts"
    rm day-a?
done
