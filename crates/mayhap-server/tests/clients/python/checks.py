"""Counts what was checked, for the scripts beside this one: each prints the number at its end, and the test knows it."""

import sys

HOST = "127.0.0.1"
# The address of the server, the address of a server with a password, and the password.
PORT, LOCKED_PORT, PASSWORD = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

done = 0


def same(what, got, expected):
    """`got` is `expected`. Python takes 1 for True, and so does this."""
    global done
    if got != expected:
        raise SystemExit(f"{what}: got {got!r}, expected {expected!r}")
    done += 1


def true(what, got):
    """`got` holds."""
    same(what, bool(got), True)


def refused(what, begins, call):
    """`call` is refused by the server, in words that begin so."""
    try:
        got = call()
    except Exception as error:
        true(f"{what}: {error!r} is to begin with {begins!r}", str(error).startswith(begins))
        return
    raise SystemExit(f"{what}: got {got!r}, expected an error")


def report():
    print(f"{done} checks")
