"""Starts `mayhap serve` for an example, on a free port of this machine, with a data folder that is deleted at the end."""

import contextlib
import os
import socket
import subprocess
import tempfile
import time

import redis


@contextlib.contextmanager
def local_server():
    """Yields the port and the process of a running server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ.get("MAYHAP", "mayhap"), "serve", "--port", str(port), "--http-port", "off"]
        log = open(os.path.join(folder, "log"), "w+")
        server = subprocess.Popen([*command, "--dir", os.path.join(folder, "data")], stdout=log, stderr=log)
        try:
            wait_until_ready(server, port, log)
            yield port, server
        finally:
            if server.poll() is None:
                server.terminate()
            server.wait(timeout=30)
            log.close()


def wait_until_ready(server, port, log):
    client = redis.Redis(port=port)
    for _ in range(300):
        if server.poll() is not None:
            log.seek(0)
            raise SystemExit(f"the server ended with code {server.returncode}: {log.read()}")
        try:
            if client.ping():
                return
        except redis.ConnectionError:
            time.sleep(0.1)
    raise SystemExit(f"no server on port {port} after 30 seconds")
