"""valkey-glide: RESP3 as it is by default, then RESP2. It has no methods for filters, so commands are given word by word."""

import asyncio

from checks import HOST, LOCKED_PORT, PASSWORD, PORT, report, same, true
from glide import (
    Batch,
    BackoffStrategy,
    GlideClient,
    GlideClientConfiguration,
    InfoSection,
    NodeAddress,
    ProtocolVersion,
    RequestError,
    ServerCredentials,
)


async def connect(port=PORT, protocol=None, credentials=None):
    more = {} if protocol is None else {"protocol": protocol}
    return await GlideClient.create(
        GlideClientConfiguration(
            [NodeAddress(HOST, port)],
            credentials=credentials,
            request_timeout=20_000,
            reconnect_strategy=BackoffStrategy(num_of_retries=5, factor=20, exponent_base=2),
            **more,
        )
    )


async def refused(what, part, call):
    try:
        got = await call
    except Exception as error:
        true(f"{what}: {error!r} is to have {part!r} in it", part in str(error))
        return
    raise SystemExit(f"{what}: got {got!r}, expected an error")


def pairs(reply):
    """A map in RESP3, a flat list in RESP2."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2]))


async def filters(client):
    async def call(*words):
        return await client.custom_command([word if isinstance(word, bytes) else str(word) for word in words])

    same("FLUSHALL", await client.flushall(), "OK")
    same("PING", await client.ping(), b"PONG")
    true("INFO", b"role:master" in await client.info([InfoSection.REPLICATION]))

    same("BF.RESERVE", await call("BF.RESERVE", "seen", 0.01, 1000), "OK")
    await refused("BF.RESERVE again", "item exists", call("BF.RESERVE", "seen", 0.01, 1000))
    same("BF.ADD", [await call("BF.ADD", "seen", "ada"), await call("BF.ADD", "seen", "ada")], [1, 0])
    same("BF.MADD", await call("BF.MADD", "seen", "ada", "bob", "cyd"), [0, 1, 1])
    same("BF.EXISTS", await call("BF.EXISTS", "seen", "nobody"), 0)
    same("BF.MEXISTS", await call("BF.MEXISTS", "seen", "bob", "nobody", "cyd"), [1, 0, 1])
    same("BF.INSERT", await call("BF.INSERT", "made", "CAPACITY", 500, "EXPANSION", 4, "ITEMS", "x", "y", "x"), [1, 1, 0])
    await refused("BF.INSERT NOCREATE", "not found", call("BF.INSERT", "none", "NOCREATE", "ITEMS", "x"))
    same("BF.CARD", await call("BF.CARD", "seen"), 3)
    about = pairs(await call("BF.INFO", "made"))
    same("BF.INFO", (about[b"Capacity"], about[b"Number of items inserted"], about[b"Expansion rate"]), (500, 2, 4))

    same("CF.RESERVE", await call("CF.RESERVE", "have", 1000, "BUCKETSIZE", 4), "OK")
    same("CF.ADD", [await call("CF.ADD", "have", "ada"), await call("CF.ADD", "have", "ada")], [1, 1])
    same("CF.COUNT", [await call("CF.COUNT", "have", "ada"), await call("CF.COUNT", "have", "bob")], [2, 0])
    same("CF.ADDNX", [await call("CF.ADDNX", "have", "ada"), await call("CF.ADDNX", "have", "bob")], [0, 1])
    same("CF.INSERT", await call("CF.INSERT", "have", "ITEMS", "cyd", "dee"), [1, 1])
    same("CF.INSERTNX", await call("CF.INSERTNX", "have", "ITEMS", "cyd", "eve"), [0, 1])
    same("CF.EXISTS", await call("CF.EXISTS", "have", "eve"), 1)
    same("CF.MEXISTS", await call("CF.MEXISTS", "have", "ada", "nobody", "dee"), [1, 0, 1])
    same("CF.DEL", [await call("CF.DEL", "have", "dee"), await call("CF.DEL", "have", "dee")], [1, 0])
    same("CF.INFO", pairs(await call("CF.INFO", "have"))[b"Number of items inserted"], 5)
    same("CF.COMPACT", await call("CF.COMPACT", "have"), "OK")

    await call("BF.MADD", "seen", *range(5000))
    await call("CF.INSERT", "have", "ITEMS", *range(3000))
    for family, source, target in [("BF", "seen", "seen copy"), ("CF", "have", "have copy")]:
        iterator, chunk = await call(f"{family}.SCANDUMP", source, 0)
        while iterator:
            same("LOADCHUNK", await call(f"{family}.LOADCHUNK", target, iterator, chunk), "OK")
            iterator, chunk = await call(f"{family}.SCANDUMP", source, iterator)
        asked = await call(f"{family}.MEXISTS", source, *range(10_000))
        same("a copied filter", await call(f"{family}.MEXISTS", target, *range(10_000)), asked)

    same("TYPE", [await client.type("seen"), await client.type("have")], [b"MBbloom--", b"MBbloomCF"])
    same("EXPIRE", await client.expire("made", 100), True)
    true("TTL", await client.ttl("made") > 90)
    same("RESTORE", await client.restore("restored", 0, await client.dump("seen")), "OK")
    same("DEL", await client.delete(["made", "none"]), 1)

    batch = Batch(is_atomic=False)
    for i in range(500):
        batch.custom_command(["BF.ADD", f"user:{i}", "x"])
    same("a pipeline", await client.exec(batch, raise_on_error=True), [1] * 500)
    cursor, names = "0", []
    while True:
        cursor, page = await client.scan(cursor, match="user:*", count=50)
        names += page
        if cursor == b"0":
            break
    same("SCAN", sorted(names), sorted(f"user:{i}".encode() for i in range(500)))

    batch = Batch(is_atomic=True)
    batch.custom_command(["BF.ADD", "in one go", "x"])
    batch.custom_command(["CF.ADD", "in another", "x"])
    same("MULTI", await client.exec(batch, raise_on_error=True), [1, 1])
    same("WATCH", await client.watch(["in one go"]), "OK")
    other = await connect()
    await other.custom_command(["BF.ADD", "in one go", "from somebody else"])
    batch = Batch(is_atomic=True)
    batch.custom_command(["BF.ADD", "in one go", "y"])
    same("a transaction somebody disturbed", await client.exec(batch, raise_on_error=True), None)
    same("nothing of it happened", await call("BF.EXISTS", "in one go", "y"), 0)

    many = [f"https://example.org/{i}" for i in range(10_000)]
    same("BF.RESERVE", await call("BF.RESERVE", "many", 0.001, 10_000), "OK")
    true("BF.MADD of 10 000", sum(await call("BF.MADD", "many", *many)) >= 9_980)
    same("BF.MEXISTS of 10 000", await call("BF.MEXISTS", "many", *many), [1] * 10_000)
    every = [bytes([i]) for i in range(256)] + [b"", b"\r\n", "布隆".encode()]
    name = b"\0\r\n\xff"
    await call("BF.RESERVE", name, 0.0001, 1000)
    await call("BF.MADD", name, *every)
    same("any bytes", await call("BF.MEXISTS", name, *every), [1] * len(every))
    same("and no others", await call("BF.MEXISTS", name, b"\0\0", b"\r\r"), [0, 0])

    mine = await client.client_id()
    same("CLIENT KILL", await other.custom_command(["CLIENT", "KILL", "ID", str(mine)]), 1)
    for _ in range(100):
        try:
            same("a client that was killed comes back", await call("BF.EXISTS", "many", many[0]), 1)
            break
        except Exception:
            # Whether the request that found the connection closed is tried again is the client's choice.
            await asyncio.sleep(0.02)
    true("with another id", await client.client_id() != mine)
    await refused("an unknown command", "unknown command", call("NOSUCH", "seen"))
    await other.close()
    await client.close()


async def main():
    await filters(await connect())
    await filters(await connect(protocol=ProtocolVersion.RESP2))
    await refused("NOAUTH", "NOAUTH", connect(LOCKED_PORT))
    await refused("WRONGPASS", "WRONGPASS", connect(LOCKED_PORT, credentials=ServerCredentials("wrong")))
    locked = await connect(LOCKED_PORT, credentials=ServerCredentials(PASSWORD))
    same("AUTH", await locked.custom_command(["BF.ADD", "seen", "x"]), 1)
    await locked.close()
    report()


asyncio.run(main())
