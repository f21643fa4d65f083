#!/usr/bin/env bash
# One large filter as many small bitmaps on a Redis without modules. A single string of hundreds of megabytes blocks a Redis
# server when it is deleted, copied or moved to another node, and only one node of a cluster serves it.
#
# What to look at: the filter is stored in 64 short strings that share the items evenly; every lookup reads one of them; and
# when a string is lost, only its items are *not ready*. No item of it ever gets a *no*.
# Uses `serve` (in the place of a Redis), `build --backend plain --shards`, `check --annotate`, `info --json`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-1000000}
shards=64
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'split-bitmaps: %s\n' "$*" >&2; exit 1; }

"$mayhap" serve --port 0 --no-http --dir data > greeting.txt 2> log.txt &
server=$!
for _ in $(seq 100); do
    grep -q '  try ' greeting.txt && break
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
done
address=$(sed -n 's/^  RESP  //p' greeting.txt)
[ -n "$address" ] || fail "the server did not start"
# Sends one request and prints the complete reply.
ask() {
    exec 3<> "/dev/tcp/${address%:*}/${address##*:}"
    printf '%s\r\nQUIT\r\n' "$*" >&3
    tr -d '\r' <&3
    exec 3<&-
}

seq -f 'user-%.0f' 1 "$items" > users.txt
"$mayhap" build "redis://$address/users" users.txt --backend plain --shards $shards --fpr 1% --quiet

# The strings and their lengths.
ask KEYS '{users:*' | grep '^{users:' > keys.txt
[ "$(wc -l < keys.txt)" -eq $shards ] || fail "$(wc -l < keys.txt) strings, not $shards"
while read -r key; do ask STRLEN "$key" | sed -n 's/^://p'; done < keys.txt > lengths.txt
echo "$items users in $(wc -l < keys.txt) strings of $(sort -n lengths.txt | tail -n 1) bytes"
[ "$(sort -nu lengths.txt | wc -l)" -eq 1 ] || fail "the strings differ in length"
awk -v n="$items" '{ sum += $1 } END { exit !(sum * 8 / n < 16) }' lengths.txt || fail "more than 16 bits for each user"

# Every user is in it. Other names are not, except for 1 % false positives.
[ "$("$mayhap" check -c "redis://$address/users" users.txt)" -eq "$items" ] || fail "a user gets a no"
seq -f 'guest-%.0f' 1 "$items" > guests.txt
wrong=$("$mayhap" check -c "redis://$address/users" guests.txt || true)
echo "$wrong of $items guests are false positives"
awk -v wrong="$wrong" -v n="$items" 'BEGIN { exit !(wrong <= n * 0.01 + 6 * sqrt(n * 0.01) + 1) }' || fail "more than 1 %"

# A string is lost: evicted, or deleted by mistake.
ask DEL "$(head -n 1 keys.txt)" > /dev/null
"$mayhap" check --annotate "redis://$address/users" users.txt > answers.txt 2> said.txt || [ $? -eq 2 ]
cut -f1 answers.txt | sort | uniq -c | sort -rn > counts.txt
[ "$(wc -l < answers.txt)" -eq "$items" ] || fail "$(wc -l < answers.txt) answers for $items users"
! grep -q "^no$(printf '\t')" answers.txt || fail "a user gets a no after a string was lost"
lost=$(grep -c '^not' answers.txt || true)
echo "one string lost: $lost users are not ready, $((items - lost)) are answered as before, none gets a no"
awk -v lost="$lost" -v n="$items" -v s=$shards 'BEGIN { exit !(lost > n / s / 2 && lost < 2 * n / s) }' ||
    fail "$lost users are not ready, not about $((items / shards))"
