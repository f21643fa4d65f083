"""redis-py over TLS, with a certificate of its own: PORT CA CERTIFICATE KEY."""
import sys

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

port, ca, certificate, key = sys.argv[1:]
checks = 0


def true(what, right):
    global checks
    if not right:
        sys.exit(f"wrong: {what}")
    checks += 1


client = redis.Redis(
    host="localhost", port=int(port), ssl=True, ssl_ca_certs=ca, ssl_certfile=certificate, ssl_keyfile=key
)
true("PING", client.ping())
true("BF.ADD", client.bf().add("seen", "ada"))
true("BF.MEXISTS", list(client.bf().mexists("seen", "ada", "bob")) == [1, 0])
with client.pipeline(transaction=True) as pipeline:
    for item in range(2_000):
        pipeline.execute_command("BF.ADD", "many", item)
    true("pipeline", sum(bool(new) for new in pipeline.execute()) > 1_900)

client.acl_setuser("ada", enabled=True, passwords=["+word"], categories=["+@read"], keys=["a:*"])
ada = redis.Redis(
    host="localhost", port=int(port), username="ada", password="word",
    ssl=True, ssl_ca_certs=ca, ssl_certfile=certificate, ssl_keyfile=key,
)
try:
    ada.execute_command("BF.EXISTS", "seen", "ada")
    true("refused", False)
except redis.exceptions.NoPermissionError:
    true("refused", True)

try:
    once = Retry(NoBackoff(), 0)
    redis.Redis(host="localhost", port=int(port), ssl=True, ssl_ca_certs=ca, retry=once).ping()
    true("no certificate", False)
except (redis.exceptions.ConnectionError, OSError):
    true("no certificate", True)
print(f"{checks} checks")
