#!/usr/bin/env bash
# Cache penetration: requests for users that do not exist miss the cache every time and reach the database.
# A filter of all ids in front of both rejects them.
#
# What to look at: every request of a real user gets through; of the others about one in a thousand does.
# Uses `build --csv`, `check --jsonl`, `check -v`, `add`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-1000000} # users
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'cache-penetration: %s\n' "$*" >&2; exit 1; }

# The dump of the table. The ids have gaps, as in an old table.
awk -v n="$items" 'BEGIN { print "id,name"; for (i = 1; i <= n; i++) print 1000 + 7 * i ",user " i }' > users.csv

# Untrusted clients choose the ids, so the hash gets a secret key: --untrusted.
"$mayhap" build users.mayhap --csv id --fpr 0.1% --untrusted --quiet users.csv
echo "users:    $items in a table of $(wc -c < users.csv) bytes; the filter takes $(wc -c < users.mayhap) bytes"

# A day of requests: every tenth user comes once, and an attacker asks for as many ids that do not exist.
awk -v n="$items" 'BEGIN { for (i = 10; i <= n; i += 10) printf "{\"user\":{\"id\":%d},\"path\":\"/profile\"}\n", 1000 + 7 * i }' > real.jsonl
awk -v n="$items" 'BEGIN { for (i = 10; i <= n; i += 10) printf "{\"user\":{\"id\":%d},\"path\":\"/profile\"}\n", 1003 + 7 * i }' > attack.jsonl
paste -d '\n' real.jsonl attack.jsonl > requests.jsonl

"$mayhap" check users.mayhap --jsonl user.id requests.jsonl > through.jsonl
"$mayhap" check -v users.mayhap --jsonl user.id requests.jsonl > turned-away.jsonl
echo "requests: $(wc -l < requests.jsonl), turned away before cache and database: $(wc -l < turned-away.jsonl)"

# Every request got one answer.
LC_ALL=C sort requests.jsonl | cmp -s - <(LC_ALL=C sort through.jsonl turned-away.jsonl) || fail "requests without an answer, or with two"

# No real user is denied.
denied=$(LC_ALL=C comm -12 <(LC_ALL=C sort real.jsonl) <(LC_ALL=C sort turned-away.jsonl) | wc -l)
echo "real users denied: $denied"
[ "$denied" -eq 0 ] || fail "$denied real users were denied"

# Of the others at most 0.1 % get through, within six standard deviations.
attempts=$(wc -l < attack.jsonl)
wrong=$(LC_ALL=C comm -12 <(LC_ALL=C sort attack.jsonl) <(LC_ALL=C sort through.jsonl) | wc -l)
echo "attackers let through to the database: $wrong of $attempts"
awk -v wrong="$wrong" -v n="$attempts" 'BEGIN { exit !(wrong <= n * 0.001 + 6 * sqrt(n * 0.001) + 1) }' ||
    fail "$wrong of $attempts attempts got through, more than 0.1 %"

# A new user registers: first into the filter, then into the database. In the other order, the filter would deny an
# existing user for a moment.
echo 1003 | "$mayhap" add users.mayhap --quiet
"$mayhap" check -q users.mayhap --item 1003 || fail "the new user is denied"
echo "a new user is found immediately"
