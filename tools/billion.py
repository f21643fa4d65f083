#!/usr/bin/env python3
"""`mayhap build` of a billion items from a pipe: time, memory, accuracy of the estimated time left; then one lookup.

    tools/billion.py MAYHAP FOLDER [--items N] [BUILD OPTION…]

Needs as much disk space in FOLDER, and as much memory, as the filter has (1.2 GB for a billion items at 1 %).
"""

import argparse
import os
import re
import subprocess
import sys
import time

UNITS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}


def seconds(text):
    """`3 min 20 s` in seconds."""
    words = text.split()
    return sum(float(number) * UNITS[unit] for number, unit in zip(words[::2], words[1::2]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mayhap")
    parser.add_argument("folder")
    parser.add_argument("--items", type=int, default=1_000_000_000)
    arguments, options = parser.parse_known_args()
    os.makedirs(arguments.folder, exist_ok=True)
    path = os.path.join(arguments.folder, "billion.mayhap")
    started = time.monotonic()
    source = subprocess.Popen(["seq", "1", str(arguments.items)], stdout=subprocess.PIPE)
    command = [arguments.mayhap, "build", path, "--force", "--items", str(arguments.items), "--fpr", "1%", "--progress", *options]
    process = subprocess.Popen(command, stdin=source.stdout, stderr=subprocess.PIPE, text=True)
    source.stdout.close()
    told, read_at = [], None
    for line in process.stderr:
        now = time.monotonic() - started
        sys.stdout.write(f"{now:7.1f} s  {line}")
        done = re.search(r"reading: (\d+)% .*about (.*) left", line)
        if done:
            told.append((int(done[1]), now, seconds(done[2])))
        elif "reading" not in line and told and read_at is None:
            read_at = now
    _, status, usage = os.wait4(process.pid, 0)
    took = time.monotonic() - started
    source.wait()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit("the build failed")
    size = os.path.getsize(path)
    print(f"\n{took:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} CPU s, peak {usage.ru_maxrss / 1024:.0f} MiB for a file of {size / 2**20:.0f} MiB")
    for part in (25, 50, 75):
        at = next((told for told in told if told[0] >= part), None)
        if at:
            left = (read_at or took) - at[1]
            print(f"at {at[0]} % it estimated {at[2]:.0f} s left; it took {left:.0f} s ({at[2] / max(left, 1e-9):.2f})")
    for item in (1, arguments.items, arguments.items + 1):
        began = time.monotonic()
        asked = subprocess.run([arguments.mayhap, "check", path], input=f"{item}\n", capture_output=True, text=True, check=False)
        answer = {0: "mayhap", 1: "no"}.get(asked.returncode, asked.stderr.strip())
        print(f"check {item}: {answer}, {(time.monotonic() - began) * 1000:.1f} ms")
    os.remove(path)


if __name__ == "__main__":
    main()
