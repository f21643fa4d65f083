#!/usr/bin/env bash
# A list of addresses that send spam is too long to send to every mail server every hour. A filter of it is a tenth of its
# size. A false positive costs a good mail, so the rate is low, and caught mails are checked again.
#
# What to look at: no spam gets past. The same filter works for the Java server and for this shell: it is written as a Guava
# filter, converted to a mayhap filter, and both give the same answers.
# Uses `build --kind`, `build --format`, `check --csv`, `convert`, `sniff`.
set -euo pipefail
mayhap=${MAYHAP:-mayhap}
items=${ITEMS:-300000} # addresses on the list
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { printf 'spam-addresses: %s\n' "$*" >&2; exit 1; }

awk -v n="$items" 'BEGIN { for (i = 0; i < n; i++) print "offer" i "@cheap-" i % 97 ".example" }' > spam.txt
"$mayhap" build spam.mayhap --kind ribbon --fpr 1-in-100000 --quiet spam.txt
echo "addresses: $items, a list of $(wc -c < spam.txt) bytes; the filter takes $(wc -c < spam.mayhap)"

# The mail of an hour: a third is spam.
awk -v n="$items" 'BEGIN {
    print "from,subject"
    for (i = 0; i < n; i += 3) {
        print "offer" i "@cheap-" i % 97 ".example,\"cheap, cheap!\""
        print "anna" i "@mail.example,lunch"
        print "bert" i "@mail.example,minutes"
    }
}' > mail.csv
"$mayhap" check spam.mayhap --csv from mail.csv > caught.csv
"$mayhap" check -v spam.mayhap --csv from mail.csv > delivered.csv
# The output begins with the header of the table.
echo "mails: $(($(wc -l < mail.csv) - 1)), caught: $(tail -n +2 caught.csv | wc -l), delivered: $(tail -n +2 delivered.csv | wc -l)"
if grep -q '^offer' delivered.csv; then fail "spam was delivered"; fi
[ "$(grep -c '^offer' caught.csv)" -eq "$(grep -c '^offer' mail.csv)" ] || fail "spam was lost without a word"
echo "spam that was delivered: 0"
lost=$(grep -c '^[ab].*@mail' caught.csv || true)
echo "good mails that were caught: $lost"
awk -v lost="$lost" -v n="$items" 'BEGIN { mean = n * 2 / 3 / 100000; exit !(lost <= mean + 6 * sqrt(mean) + 1) }' ||
    fail "$lost good mails were caught, more than 1 in 100,000"

# The mail server is a Java program and reads Guava filters. It needs no knowledge of mayhap.
"$mayhap" build spam.guava --format guava --items-as utf8 --fpr 0.1% --quiet spam.txt
"$mayhap" sniff spam.guava
"$mayhap" convert spam.guava moved.mayhap --to mayhap --items-as utf8
tail -n +2 mail.csv | cut -d , -f 1 > senders.txt
"$mayhap" check spam.guava --items-as utf8 senders.txt > by-guava.txt
"$mayhap" check moved.mayhap senders.txt > by-ours.txt
cmp -s by-guava.txt by-ours.txt || fail "the moved filter answers otherwise"
echo "the filter of Guava and what was made of it: the same answers for $(wc -l < senders.txt) senders"
