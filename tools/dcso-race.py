#!/usr/bin/env python3
"""`mayhap build` and `check` against DCSO's `bloom` on ten million made-up URLs, seven million of them distinct.

    tools/dcso-race.py MAYHAP FOLDER [--lines N] [--rounds N] [--bloom PATH]

Each program runs once a round, all on one file of URLs and one of probes, every second of which is a member. `ratio` is CPU time (user and
system) of building and checking over DCSO's of the same round, `size` the bytes of the file over those of DCSO's. All filters have a target
rate of 0.001. A member that is not found ends the race.
"""

import argparse
import os
import subprocess
import sys

RATE = 0.001
WORDS = "archive article catalog comment contact detail download forum gallery news product profile review search".split()
MASK = (1 << 64) - 1


def url(number, salt):
    """About 72 bytes, like a real URL: a host, a path, and a unique part."""
    mixed = (number * 0x9E3779B97F4A7C15 + salt) & MASK
    path = f"{WORDS[mixed % 14]}/{WORDS[mixed // 64 % 14]}"
    return f"https://www.host{mixed >> 48:05d}.example/{path}/{number:09d}?from={mixed & 0xffffffffff:010x}\n"


def generate(path, lines):
    """Three of ten lines repeat an earlier one; early lines are repeated more often. Returns the number of distinct lines."""
    distinct, state, out = 0, 1, []
    with open(path + ".part", "w", 1 << 20) as file:
        for line in range(lines):
            if line % 10 in (3, 6, 9):
                state = (state * 6364136223846793005 + 1442695040888963407) & MASK
                out.append(url(int(distinct * ((state >> 11) / (1 << 53)) ** 3), 1))
            else:
                out.append(url(distinct, 1))
                distinct += 1
            if len(out) == 10_000:
                file.write("".join(out))
                out.clear()
        file.write("".join(out))
    os.rename(path + ".part", path)


def generate_probes(path, probes, distinct):
    """Every second one is a member."""
    with open(path + ".part", "w", 1 << 20) as file:
        for probe in range(probes // 2):
            file.write(url(probe * 7919 % distinct, 1) + url(probe, 2))
    os.rename(path + ".part", path)


def run(command, stdin, stdout=os.devnull, answers=(0,)):
    """CPU seconds and peak resident MiB of one run."""
    with open(stdin, "rb") as source, open(stdout, "wb") as out:
        process = subprocess.Popen(command, stdin=source, stdout=out, stderr=subprocess.PIPE)
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in answers:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mayhap")
    parser.add_argument("folder")
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--bloom", default="bloom")
    arguments = parser.parse_args()
    lines, folder = arguments.lines, arguments.folder
    distinct, probes = lines * 7 // 10, lines // 5
    os.makedirs(folder, exist_ok=True)
    urls, asked = os.path.join(folder, f"race-{lines}.txt"), os.path.join(folder, f"race-probes-{lines}.txt")
    filter_path, answers = os.path.join(folder, "race.filter"), os.path.join(folder, "race.answers")
    if not os.path.exists(urls):
        generate(urls, lines)
    if not os.path.exists(asked):
        generate_probes(asked, probes, distinct)

    mayhap, bloom = arguments.mayhap, arguments.bloom
    build = [mayhap, "build", filter_path, urls, "--force", "--quiet", "--fpr", str(RATE)]
    told = ["--items", str(distinct)]
    ways = [("mayhap " + " ".join(extra).replace(str(distinct), "N"), build + extra) for extra in (
        ["--kind", "bloom"] + told, ["--kind", "bloom"], [], told, ["--static"],
        ["--kind", "binary-fuse"], ["--kind", "ribbon"], ["--format", "dcso"] + told, ["--kind", "bloom", "-j", "1"] + told,
    )]
    print(f"{lines:,} lines, {os.path.getsize(urls) / 1e6:.0f} MB, {distinct:,} distinct; {probes:,} probes")
    print(f"{'':44} {'build s':>8} {'MiB':>5} {'check s':>8} {'ratio':>6} {'bytes':>12} {'size':>6} {'wrong':>9}")
    for _ in range(arguments.rounds):
        base = base_bytes = None
        for name, command in [("dcso create, insert, check", None)] + ways:
            if os.path.exists(filter_path):
                os.remove(filter_path)
            if command is None:
                made, _ = run([bloom, "create", "-p", str(RATE), "-n", str(distinct), filter_path], os.devnull)
                filled, memory = run([bloom, "insert", filter_path], urls)
                built = made + filled
                checked, _ = run([bloom, "check", filter_path], asked, answers)
            else:
                built, memory = run(command, os.devnull)
                checked, _ = run([mayhap, "check", filter_path, asked], os.devnull, answers, answers=(0, 1))
            size = os.path.getsize(filter_path)
            with open(answers, "rb") as file:
                found = sum(1 for _ in file)
            base, base_bytes = base or built + checked, base_bytes or size
            if found < probes // 2:
                sys.exit(f"{name}: {probes // 2 - found} members are not found")
            wrong = (found - probes // 2) / (probes // 2)
            print(f"{name:44} {built:8.2f} {memory:5.0f} {checked:8.2f} {(built + checked) / base:6.2f} {size:12,} "
                  f"{size / base_bytes:6.3f} {wrong:9.6f}", flush=True)
    for path in (filter_path, answers):
        os.remove(path)


if __name__ == "__main__":
    main()
