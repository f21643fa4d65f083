"""redis-py, with its default protocol (RESP3) or, if the last argument is 2, with the old one."""

import sys

import redis
from checks import HOST, LOCKED_PORT, PASSWORD, PORT, refused, report, same, true

PROTOCOL = {"protocol": 2} if sys.argv[-1] == "2" else {}


def connect(port=PORT, **more):
    return redis.Redis(host=HOST, port=port, **PROTOCOL, **more)


client = connect()
same("PING", client.ping(), True)
same("ECHO", client.echo("ho"), b"ho")
hello = client.execute_command("HELLO")
hello = hello if isinstance(hello, dict) else dict(zip(hello[::2], hello[1::2]))
same("the protocol", hello[b"proto"], 2 if PROTOCOL else 3)
info = client.info()
true("INFO has a version that clients can read", int(info["redis_version"].split(".")[0]) >= 7)
same("INFO", (info["redis_mode"], info["role"]), ("standalone", "master"))
true("INFO of a section", "connected_clients" in client.info("clients"))
same("DBSIZE", client.dbsize(), 0)

# BF.*
bf = client.bf()
same("BF.RESERVE", bf.create("seen", 0.01, 1000), True)
refused("BF.RESERVE again", "item exists", lambda: bf.create("seen", 0.01, 1000))
same("BF.ADD", [bf.add("seen", "ada"), bf.add("seen", "ada")], [1, 0])
same("BF.MADD", bf.madd("seen", "ada", "bob", "cyd"), [0, 1, 1])
same("BF.EXISTS", [bf.exists("seen", "ada"), bf.exists("seen", "nobody")], [1, 0])
same("BF.EXISTS of nothing", bf.exists("no such filter", "ada"), 0)
same("BF.MEXISTS", bf.mexists("seen", "bob", "nobody", "cyd"), [1, 0, 1])
same("BF.INSERT", bf.insert("made", ["x", "y", "x"], capacity=500, error=0.001, expansion=4), [1, 1, 0])
refused("BF.INSERT NOCREATE", "not found", lambda: bf.insert("no such filter", ["x"], noCreate=True))
same("BF.CARD", [bf.card("seen"), bf.card("made"), bf.card("no such filter")], [3, 2, 0])
about = bf.info("made")
same("BF.INFO", (about.capacity, about.filterNum, about.insertedNum, about.expansionRate), (500, 1, 2, 4))
same("BF.INFO Size", bf.info("seen").size, 32 + 64 + 1384)
same("BF.RESERVE NONSCALING", bf.create("fixed", 0.01, 2, noScale=True), True)
same("no expansion", bf.info("fixed").expansionRate, None)
got = bf.madd("fixed", *range(20))
true("a full filter refuses", len(got) < 20 and isinstance(got[-1], Exception) and "full" in str(got[-1]))
refused("BF.ADD when full", "non scaling filter is full", lambda: [bf.add("fixed", f"more{i}") for i in range(9)])
refused("BF.RESERVE of nonsense", "bad error rate", lambda: client.execute_command("BF.RESERVE", "z", "x", 1))
refused("arity", "wrong number of arguments for 'bf.add'", lambda: client.execute_command("BF.ADD", "seen"))
true("BF.DEBUG", client.execute_command("BF.DEBUG", "seen")[0] == b"size:3")


def move(family, source, target):
    """Copies a filter chunk by chunk, as redis-py has it; says how many chunks that took."""
    iterator, chunks = 0, 0
    while True:
        iterator, chunk = family.scandump(source, iterator)
        if iterator == 0:
            return chunks
        same("LOADCHUNK", family.loadchunk(target, iterator, chunk), b"OK")
        chunks += 1


bf.madd("seen", *range(5000))
true("BF.SCANDUMP", move(bf, "seen", "seen copy") >= 3)
same("a copied filter", bf.mexists("seen copy", *range(10_000)), bf.mexists("seen", *range(10_000)))
same("counts are copied", bf.card("seen copy"), bf.card("seen"))

# CF.*
cf = client.cf()
same("CF.RESERVE", cf.create("have", 1000, bucket_size=4, max_iterations=50, expansion=2), True)
refused("CF.RESERVE again", "item exists", lambda: cf.create("have", 1000))
same("CF.ADD", [cf.add("have", "ada"), cf.add("have", "ada")], [1, 1])
same("CF.COUNT", [cf.count("have", "ada"), cf.count("have", "bob"), cf.count("none", "ada")], [2, 0, 0])
same("CF.ADDNX", [cf.addnx("have", "ada"), cf.addnx("have", "bob")], [0, 1])
same("CF.INSERT", cf.insert("have", ["cyd", "dee"]), [1, 1])
same("CF.INSERT CAPACITY", cf.insert("cap", ["cyd"], capacity=64), [1])
refused("CF.INSERT NOCREATE", "not found", lambda: cf.insert("none", ["x"], nocreate=True))
same("CF.INSERTNX", cf.insertnx("have", ["cyd", "eve"]), [0, 1])
same("CF.EXISTS", [cf.exists("have", "eve"), cf.exists("have", "nobody")], [1, 0])
same("CF.MEXISTS", cf.mexists("have", "ada", "nobody", "dee"), [1, 0, 1])
same("CF.DEL", [cf.delete("have", "dee"), cf.delete("have", "dee")], [1, 0])
refused("CF.DEL of nothing", "Not found", lambda: cf.delete("none", "dee"))
same("CF.EXISTS after CF.DEL", cf.exists("have", "dee"), 0)
about = cf.info("have")
same(
    "CF.INFO",
    (about.size, about.bucketNum, about.filterNum, about.insertedNum, about.deletedNum, about.bucketSize),
    (40 + 16 + 1024, 256, 1, 5, 1, 4),
)
same("CF.INFO, the rest", (about.expansionRate, about.maxIteration), (2, 50))
true("CF.DEBUG", client.execute_command("CF.DEBUG", "have").startswith(b"bktsize:4 buckets:256 items:5"))
same("CF.COMPACT", client.execute_command("CF.COMPACT", "have"), b"OK")
cf.insert("have", list(range(3000)))
true("CF.SCANDUMP", move(cf, "have", "have copy") >= 2)
same("a copied cuckoo filter", cf.mexists("have copy", *range(6000)), cf.mexists("have", *range(6000)))
same("it can forget", [cf.delete("have copy", "eve"), cf.count("have copy", "ada")], [1, 2])

# MF.*, for which no client has methods.
mf = client.execute_command
refused("MF.EXISTS of nothing", "NOTREADY", lambda: mf("MF.EXISTS", "mine", "x"))
refused("MF.ADD to nothing", "NOTREADY", lambda: mf("MF.ADD", "mine", "x"))
same("MF.RESERVE", mf("MF.RESERVE", "mine", "KIND", "cuckoo", "CAPACITY", 1000, "FPR", 0.001), b"OK")
same("MF.ADD", [mf("MF.ADD", "mine", "ada"), mf("MF.EXISTS", "mine", "ada"), mf("MF.EXISTS", "mine", "bob")], [1, 1, 0])
same("MF.MADD", len(mf("MF.MADD", "mine", *range(500))), 500)
same("MF.MEXISTS", mf("MF.MEXISTS", "mine", *range(500)), [1] * 500)
same("MF.DEL", [mf("MF.DEL", "mine", "ada"), mf("MF.EXISTS", "mine", "ada")], [1, 0])
about = mf("MF.INFO", "mine")
about = about if isinstance(about, dict) else dict(zip(about[::2], about[1::2]))
same("MF.INFO", (about[b"kind"], about[b"state"], about[b"inserted"]), (b"cuckoo", b"ready", 500))
for kind in ["bloom", "blocked-bloom", "counting-bloom", "quotient", "growing"]:
    same("MF.RESERVE", mf("MF.RESERVE", kind, "KIND", kind, "CAPACITY", 1000, "FPR", 0.01), b"OK")
    mf("MF.MADD", kind, *range(1000))
    same(f"MF.MEXISTS of {kind}", mf("MF.MEXISTS", kind, *range(1000)), [1] * 1000)
same("MF.BUILD", mf("MF.BUILD", "still", "BEGIN", "KIND", "binary-fuse", "FPR", 0.01), b"OK")
refused("a filter that is being built", "NOTREADY", lambda: mf("MF.EXISTS", "still", 1))
mf("MF.BUILD", "still", "ADD", *range(1000))
same("MF.BUILD COMMIT", mf("MF.BUILD", "still", "COMMIT"), 1)
same("what was built", mf("MF.MEXISTS", "still", *range(1000)), [1] * 1000)
iterator, pieces = 0, []
while True:
    asked = iterator
    iterator, piece = mf("MF.DUMP", "still", iterator)
    pieces.append((asked, piece))
    if iterator == 0:
        break
same("MF.LOAD", [mf("MF.LOAD", "still copy", *piece) for piece in pieces][-1], 0)
same("what was loaded", mf("MF.MEXISTS", "still copy", *range(5000)), mf("MF.MEXISTS", "still", *range(5000)))
true("MF.PLAN", mf("MF.PLAN", 1_000_000, 0.01))

# The keyspace.
same("TYPE", [client.type("seen"), client.type("have"), client.type("none")], [b"MBbloom--", b"MBbloomCF", b"none"])
same("EXISTS", client.exists("seen", "seen", "none"), 2)
refused("WRONGTYPE", "WRONGTYPE Operation against a key", lambda: cf.add("seen", "x"))
same("EXPIRE", [client.expire("made", 100), client.expire("none", 100)], [1, 0])
true("TTL", 90 < client.ttl("made") <= 100 and 90_000 < client.pttl("made") <= 100_000)
same("PERSIST", [client.persist("made"), client.ttl("made"), client.ttl("none")], [1, -1, -2])
same("RENAME", [client.rename("made", "renamed"), client.exists("made", "renamed")], [True, 1])
refused("RENAME of nothing", "no such key", lambda: client.rename("none", "other"))
same("RENAMENX", client.renamenx("renamed", "seen"), False)
same("COPY", [client.copy("renamed", "copied"), bf.card("copied")], [True, 2])
true("MEMORY USAGE", client.memory_usage("seen") > 1384)
payload = client.dump("seen")
same("RESTORE", client.restore("restored", 0, payload), b"OK")
same("what was restored", bf.mexists("restored", *range(10_000)), bf.mexists("seen", *range(10_000)))
same("DEL", client.delete("copied", "none"), 1)
same("UNLINK", client.unlink("renamed"), 1)
with client.pipeline(transaction=False) as pipeline:
    for i in range(500):
        pipeline.bf().add(f"user:{i}", "x")
    same("a pipeline of new filters", pipeline.execute(), [1] * 500)
names = sorted(client.scan_iter(match="user:*", count=50))
same("SCAN", names, sorted(f"user:{i}".encode() for i in range(500)))
same("SCAN TYPE", list(client.scan_iter(_type="MBbloomCF", count=1000)).__len__(), 3)
same("KEYS", len(client.keys("user:1?")), 10)

# Pipelines and transactions.
with client.pipeline(transaction=False) as pipeline:
    for i in range(2000):
        pipeline.execute_command("BF.ADD", "piped", f"item {i}")
        pipeline.execute_command("BF.EXISTS", "piped", f"item {i}")
    replies = pipeline.execute()
true("a pipeline finds what it added", all(replies[1::2]) and sum(map(bool, replies[::2])) >= 1970)
with client.pipeline(transaction=True) as pipeline:
    pipeline.bf().add("in one go", "x")
    pipeline.cf().add("in another", "x")
    pipeline.bf().exists("in one go", "x")
    same("MULTI", pipeline.execute(), [1, 1, 1])
with client.pipeline() as pipeline:
    pipeline.watch("in one go")
    pipeline.multi()
    pipeline.bf().add("in one go", "y")
    client.bf().add("in one go", "from somebody else")
    try:
        pipeline.execute()
        same("WATCH", "nothing happened", "WatchError")
    except redis.WatchError:
        same("WATCH", client.bf().exists("in one go", "y"), 0)
with client.pipeline() as pipeline:
    pipeline.watch("in one go")
    pipeline.multi()
    pipeline.bf().add("in one go", "z")
    same("WATCH of what nobody changes", pipeline.execute(), [1])
pipeline = client.pipeline()
pipeline.bf().add("never", "x")
pipeline.execute_command("BF.ADD", "never")
try:
    pipeline.execute()
    same("EXECABORT", "nothing happened", "an error")
except redis.ResponseError as error:
    true(f"EXECABORT: {error}", "wrong number of arguments" in str(error))
same("nothing of it happened", client.exists("never"), 0)

# Many items, and any bytes.
many = [f"https://example.org/{i}" for i in range(10_000)]
same("BF.RESERVE", bf.create("many", 0.001, 10_000), True)
true("BF.MADD of 10 000", sum(bf.madd("many", *many)) >= 9_980)
same("BF.MEXISTS of 10 000", bf.mexists("many", *many), [1] * 10_000)
strangers = bf.mexists("many", *(f"https://example.com/{i}" for i in range(10_000)))
true(f"false positives: {sum(strangers)} of 10 000", sum(strangers) <= 30)
bytes_of_all_kinds = [bytes([i]) for i in range(256)] + [b"", b"\r\n", b"$-1\r\n", b"\0" * 1000, "布隆".encode()]
name = b"name \0\r\n\xff"
same("any bytes", bf.create(name, 0.0001, 1000), True)
true("any bytes are added", sum(bf.madd(name, *bytes_of_all_kinds)) >= len(bytes_of_all_kinds) - 1)
same("any bytes are found", bf.mexists(name, *bytes_of_all_kinds), [1] * len(bytes_of_all_kinds))
same("and no others", bf.mexists(name, b"\0\0", b"\r\r", "布".encode()), [0, 0, 0])
true("a name of any bytes is listed", name in client.keys("name*"))
long = b"x" * 1_000_000
same("a long item", [bf.add(name, long), bf.exists(name, long), bf.exists(name, long[1:])], [1, 1, 0])

# Connections.
same("CLIENT SETNAME", [client.client_setname("me"), client.client_getname()], [True, "me"])
mine = client.client_id()
true("CLIENT LIST", any(int(entry["id"]) == mine for entry in client.client_list()))
killer = connect()
same("CLIENT KILL", killer.client_kill_filter(_id=str(mine)), 1)
same("a client that was killed comes back", [client.ping(), bf.exists("many", many[0])], [True, 1])
true("with another id", client.client_id() != mine)
true("COMMAND COUNT", client.command_count() > 50)
spec = client.execute_command("COMMAND", "INFO", "BF.ADD")
true("COMMAND INFO", spec and b"bf.add" in repr(spec).encode())
same("CONFIG GET", client.config_get("bf-error-rate"), {"bf-error-rate": "0.01"})
same("CONFIG SET", [client.config_set("bf-initial-size", 500), bf.add("larger", "x"), bf.info("larger").capacity], [True, 1, 500])
refused("an unknown command", "unknown command", lambda: client.execute_command("NOSUCH", "seen"))

# A server with a password.
noauth = "Authentication required" if PROTOCOL else "HELLO must be called with the client already authenticated"
refused("NOAUTH", noauth, lambda: connect(LOCKED_PORT).bf().add("seen", "x"))
try:
    connect(LOCKED_PORT, password="wrong").ping()
    same("WRONGPASS", "nothing happened", "an error")
except redis.AuthenticationError as error:
    true(f"WRONGPASS: {error}", "invalid username-password pair" in str(error))
locked = connect(LOCKED_PORT, password=PASSWORD)
same("AUTH", [locked.ping(), locked.bf().add("seen", "x")], [True, 1])
locked = connect(LOCKED_PORT, username="default", password=PASSWORD)
same("AUTH with a user", locked.bf().exists("seen", "x"), 1)

same("FLUSHALL", [client.flushall(), client.dbsize()], [True, 0])
report()
