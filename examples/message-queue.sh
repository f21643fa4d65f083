#!/usr/bin/env bash
# A queue delivers each message at least once: again after a time-out, after a crash, to another worker. Each message should
# be handled once. A worker that marks a message as seen and then dies would lose it, so there are two steps: claim, then
# confirm.
#
# What to look at: two workers get the same messages and handle none twice; one of them dies with claimed messages, and the
# other handles these after the claims have expired. No message is lost.
# Uses `serve`, `MF.RESERVE` (a window for claims, a growing filter for finished messages), `MF.MADD`, `MF.MEXISTS`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-100000} # messages
claim_secs=2           # longer than a worker needs for a message
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null || true; wait; rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'message-queue: %s\n' "$*" >&2; exit 1; }

"$mayhap" serve --port 0 --no-http --dir data > greeting.txt 2> log.txt &
server=$!
for _ in $(seq 100); do
    grep -q '  try ' greeting.txt && break
    kill -0 "$server" 2> /dev/null || break
    sleep 0.1
done
address=$(sed -n 's/^  RESP  //p' greeting.txt)
[ -n "$address" ] || fail "the server did not start"

# ask WORD ...: sends one request, with the items on standard input after its words; prints one answer per line.
ask() {
    exec 3<> "/dev/tcp/${address%:*}/${address##*:}"
    { printf '%s\n' "$@"; cat; } |
        awk '{ words[NR] = $0 } END { printf "*%d\r\n", NR; for (i = 1; i <= NR; i++) printf "$%d\r\n%s\r\n", length(words[i]), words[i] }' >&3
    printf 'QUIT\r\n' >&3
    tr -d '\r' <&3 | sed '$d' | sed '/^\*/d'
    exec 3<&-
}

# Claims expire; finished messages are kept. All claims may come in one moment, so the window has room for a peak.
ask MF.RESERVE claims KIND window SECONDS $claim_secs CAPACITY $((4 * items)) FPR 0.0001 < /dev/null | grep -qx '+OK' || fail "no claims"
ask MF.RESERVE done KIND growing CAPACITY 1000 FPR 0.001 < /dev/null | grep -qx '+OK' || fail "no filter"
touch results.txt # the database: one line for each message that was handled

# work NAME LIVES < messages: processes the messages that a worker gets. With LIVES=no it dies after claiming them.
work() {
    local name=$1 lives=$2
    cat > "$name.got"
    # 1. Is it done? A no is certain. A maybe is looked up in the database; only repeated messages get that far.
    ask MF.MEXISTS done < "$name.got" > "$name.done"
    paste -d ' ' "$name.done" "$name.got" | sed -n 's/^:1 //p' > "$name.maybe"
    paste -d ' ' "$name.done" "$name.got" | sed -n 's/^:0 //p' > "$name.open"
    LC_ALL=C sort "$name.maybe" | LC_ALL=C comm -23 - <(cut -d' ' -f1 results.txt | LC_ALL=C sort) >> "$name.open"
    [ -s "$name.open" ] || { echo "$name: all $(wc -l < "$name.got") are done"; return; }
    # 2. Claim it, unless it is claimed: adding it again would extend the claim of a dead worker forever.
    ask MF.MEXISTS claims < "$name.open" > "$name.answers"
    paste -d ' ' "$name.answers" "$name.open" | sed -n 's/^:0 //p' > "$name.free"
    [ -s "$name.free" ] || { echo "$name: got $(wc -l < "$name.got"), handled 0: all that are open are claimed"; return; }
    # 1: certainly new, so it is ours. 0: another worker was faster; the queue will deliver it again.
    ask MF.MADD claims < "$name.free" > "$name.answers"
    paste -d ' ' "$name.answers" "$name.free" | sed -n 's/^:1 //p' > "$name.ours"
    [ "$lives" = yes ] || { echo "$name: dies with $(wc -l < "$name.ours") messages claimed"; return; }
    # 3. Do the work. 4. Confirm.
    sed "s/\$/ handled by $name/" "$name.ours" >> results.txt
    [ ! -s "$name.ours" ] || ask MF.MADD done < "$name.ours" > /dev/null
    echo "$name: got $(wc -l < "$name.got"), handled $(wc -l < "$name.ours")"
}

seq -f 'order-%.0f' 1 "$items" > queue.txt
deliver() { sed -n "$(($1 * items / 10 + 1)),$(($2 * items / 10))p" queue.txt; }
deliver 0 5 | work ada yes
# The queue delivers a part of these again, to the other worker.
deliver 4 9 | work bob yes
claimed_at=$SECONDS
deliver 8 10 | work bob no

# All unhandled messages are delivered again immediately. Those that the dead worker has claimed are left alone for now.
work ada yes < queue.txt
left=$((items - $(wc -l < results.txt)))
[ "$left" -gt 0 ] || [ $((SECONDS - claimed_at)) -ge $((claim_secs - 1)) ] || fail "the claims of the dead worker were not respected"
echo "$left messages wait for the claims of bob to expire"
for _ in $(seq 30); do
    sleep 0.5
    work ada yes < queue.txt > said.txt
    [ "$(wc -l < results.txt)" -lt "$items" ] || break
done
cat said.txt

handled=$(cut -d' ' -f1 results.txt | LC_ALL=C sort -u | wc -l)
[ "$handled" -eq "$items" ] || fail "$((items - handled)) messages were lost"
[ "$(wc -l < results.txt)" -eq "$items" ] || fail "$(($(wc -l < results.txt) - items)) messages were handled twice"
echo "all $items messages were handled, each of them once"
