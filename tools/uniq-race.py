#!/usr/bin/env python3
"""`mayhap uniq` against others on ten million made-up URLs, seven million of them distinct: CPU time, memory, and whether the output is the same.

    tools/uniq-race.py MAYHAP FOLDER [--lines N] [--rounds N] [--huniq PATH]

Each program runs once per round, all on one file, with the output in a file in FOLDER. `ratio` is CPU time (user and system) over
huniq's of the same round. A program that is not installed is skipped.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys

WORDS = "about archive article blog catalog category comment detail forum gallery help index item list news page post product profile search".split()


def url(number):
    """72 bytes with the line ending, like a real URL: a few hosts, a few paths, and a unique part."""
    mixed = (number * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    start = f"https://www.site-{mixed % 9973}.example/{WORDS[mixed % 20]}/{WORDS[mixed // 32 % 20]}/{number:x}?ref="
    return start + f"{mixed:016x}{mixed * 31 & 0xffffffffffffffff:016x}"[: max(4, 71 - len(start))] + "\n"


def generate(path, lines):
    """Three of every ten lines repeat an earlier one; early lines are repeated more often."""
    distinct, state, out = 0, 1, []
    with open(path + ".part", "w", 1 << 20) as file:
        for line in range(lines):
            if line % 10 in (3, 6, 9):
                state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
                part = (state >> 11) / (1 << 53)
                out.append(url(int(distinct * part * part * part)))
            else:
                out.append(url(distinct))
                distinct += 1
            if len(out) == 10000:
                file.write("".join(out))
                out.clear()
        file.write("".join(out))
    os.rename(path + ".part", path)
    return distinct


def run(command, output, environment=None):
    """CPU seconds, peak resident KiB and standard error of one run."""
    with open(output, "wb") as out:
        process = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, env={**os.environ, **(environment or {})})
        said = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss, said


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def lost(path, input_path):
    """The number of distinct lines of the input that are missing in the output."""
    command = ["bash", "-c", 'LC_ALL=C comm -13 <(LC_ALL=C sort -u "$0") <(LC_ALL=C sort -u "$1") | wc -l', path, input_path]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mayhap")
    parser.add_argument("folder")
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--huniq", default="huniq")
    arguments = parser.parse_args()
    folder = arguments.folder
    os.makedirs(folder, exist_ok=True)
    urls, output = os.path.join(folder, f"urls-{arguments.lines}.txt"), os.path.join(folder, "out.txt")
    if not os.path.exists(urls):
        generate(urls, arguments.lines)
    print(f"{arguments.lines:,} lines, {os.path.getsize(urls) / 1e6:.0f} MB")

    with_stdin = lambda program: ["bash", "-c", f'exec {program} < "$0"', urls]
    small = ["--memory", "32MiB", "--fpr", "1e-3"]
    contenders = {
        "mayhap uniq": ([arguments.mayhap, "uniq", "--quiet", urls], None),
        "mayhap uniq, 32 MiB": ([arguments.mayhap, "uniq", *small, urls], None),
        "huniq": (with_stdin(arguments.huniq) if shutil.which(arguments.huniq) else None, None),
        "sort -u": (["sort", "-u", "-S", "2G", urls], {"LC_ALL": "C"}),
        "awk '!seen[$0]++'": (["awk", "!seen[$0]++", urls], {"LC_ALL": "C"}),
    }
    exact = None
    for number in range(1, arguments.rounds + 1):
        rows = {}
        for name, (command, environment) in contenders.items():
            # Once is enough for the slow program, which only provides the reference output.
            if command is None or (name.startswith("awk") and number > 1):
                continue
            cpu, memory, said = run(command, output, environment)
            same = ""
            if name.startswith("awk"):
                exact = digest(output)
            if name == "mayhap uniq":
                ours = digest(output)
            if name == "mayhap uniq, 32 MiB" and number == 1:
                same = f"{lost(output, urls)} lines lost; it said: " + said.strip().splitlines()[-1]
            rows[name] = (cpu, memory, same)
        if exact is not None:
            assert ours == exact, "the lines of mayhap uniq are not those of awk"
            rows["mayhap uniq"] = (*rows["mayhap uniq"][:2], "the same lines as awk")
        peer = rows.get("huniq", rows["sort -u"])[0]
        print(f"\nround {number:<24} CPU s   ratio   peak MiB")
        for name, (cpu, memory, note) in rows.items():
            print(f"{name:<28} {cpu:7.2f} {cpu / peer:7.2f} {memory / 1024:10.1f}   {note}")
    os.remove(output)


if __name__ == "__main__":
    main()
