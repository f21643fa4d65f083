#!/usr/bin/env bash
# Coupons: handed out, redeemed once, gone. Most codes that people type are invalid, and those need not reach the database.
# The filter must forget redeemed coupons, so it is a kind with removal.
#
# What to look at: a valid coupon is never refused; a redeemed one is refused from then on, except for false positives; and
# nothing is removed that the database did not confirm.
# Uses `build --deletes`, `add`, `remove`, `check`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-200000} # coupons handed out
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'coupons: %s\n' "$*" >&2; exit 1; }

codes() { awk -v from="$1" -v to="$2" 'BEGIN { for (i = from; i < to; i++) printf "SAVE-%05X-%04d\n", (i * 40503) % 1048576, i % 9973 }'; }
codes 0 "$items" | LC_ALL=C sort -u > coupons.txt # the database
valid=$(wc -l < coupons.txt)
"$mayhap" build coupons.mayhap --deletes --items $((2 * items)) --fpr 0.1% --quiet coupons.txt
echo "handed out: $valid coupons, the filter takes $(wc -c < coupons.mayhap) bytes"

# Every third coupon is redeemed. The database knows which; only those are removed.
awk 'NR % 3 == 0' coupons.txt > redeemed.txt
awk 'NR % 3 != 0' coupons.txt > open.txt
"$mayhap" check -v coupons.mayhap redeemed.txt > refused.txt || true
[ ! -s refused.txt ] || fail "$(wc -l < refused.txt) valid coupons were refused"
"$mayhap" remove coupons.mayhap --quiet redeemed.txt
echo "redeemed: $(wc -l < redeemed.txt), none of them was refused"

# The same coupons are tried a second time.
again=$("$mayhap" check -c coupons.mayhap redeemed.txt || true)
echo "the same again: $again of $(wc -l < redeemed.txt) reach the database, which refuses them"
awk -v again="$again" -v n="$(wc -l < redeemed.txt)" 'BEGIN { exit !(again <= n * 0.001 + 6 * sqrt(n * 0.001) + 1) }' ||
    fail "$again redeemed coupons still look valid, more than 0.1 %"

# The other coupons are still valid.
[ "$("$mayhap" check -c coupons.mayhap open.txt)" -eq "$(wc -l < open.txt)" ] || fail "coupons that are still open were lost"
echo "still open: $(wc -l < open.txt), all of them accepted"

# New coupons are handed out: first into the filter, then to the customer.
codes $((2 * items)) $((2 * items + items / 10)) | LC_ALL=C sort -u | LC_ALL=C comm -23 - coupons.txt > new.txt
"$mayhap" add coupons.mayhap --quiet new.txt
[ "$("$mayhap" check -c coupons.mayhap new.txt)" -eq "$(wc -l < new.txt)" ] || fail "a new coupon is refused"
echo "new: $(wc -l < new.txt), accepted immediately"
