#!/usr/bin/env bash
# A billion phone numbers: is this one of ours? Numbers of 11 digits come from a range not much larger than the set.
# Then one bit for each possible number takes less memory than a filter, is exact, and supports removal.
#
# What to look at: `plan` recommends a bitmap. The same on a small range, built and checked: not one answer is wrong.
# Uses `plan --range`, `build --range`, `check`, `remove`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-100000} # numbers that are ours, of ten times as many possible ones
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'phone-numbers: %s\n' "$*" >&2; exit 1; }

# First the plan for the real set.
"$mayhap" plan --items 1e9 --fpr 1% --range 13000000000..19999999999 > plan.txt
awk '/^Use / { use = 1 } use && !NF { exit } { print }' plan.txt
grep -q '^\* bitmap' plan.txt || fail "the plan is not a bitmap"

# The same for a part of the numbers. 7919 and ten times `items` have no common divisor unless 7919 divides it.
low=13000000000
high=$((low + 10 * items - 1))
awk -v n="$items" -v low="$low" 'BEGIN { for (i = 0; i < n; i++) printf "%.0f\n", low + (i * 7919) % (10 * n) }' > ours.txt
"$mayhap" build ours.mayhap --kind bitmap --range "$low..$high" --quiet ours.txt
echo "numbers: $items of $((10 * items)) possible ones; the bitmap takes $(wc -c < ours.mayhap) bytes, the list $(wc -c < ours.txt)"

# Every possible number is checked, and every answer is correct.
seq -f %.0f "$low" "$high" > all.txt
"$mayhap" check ours.mayhap all.txt > found.txt
LC_ALL=C sort ours.txt | cmp -s - <(LC_ALL=C sort found.txt) || fail "not exactly our numbers were found"
echo "asked about all $(wc -l < all.txt) possible numbers: found exactly ours, none wrong"

# A customer leaves. Bits can be cleared.
gone=$(head -n 1 ours.txt)
echo "$gone" | "$mayhap" remove ours.mayhap --quiet
if "$mayhap" check -q ours.mayhap --item "$gone"; then fail "$gone is still there"; fi
[ "$("$mayhap" check -c ours.mayhap all.txt)" -eq $((items - 1)) ] || fail "more than one number is gone"
echo "$gone removed, all others are there"
