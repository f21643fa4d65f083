"""Cache penetration, stopped by a filter on a server: a service with a database, a cache and redis-py.

A request for a user takes this way: filter, cache, database. Attackers ask for ids that do not exist. Without a filter
each of these requests reaches the database, because there is nothing to cache.

What to look at: the number of database queries with and without the filter; that no real user is ever denied, also not
before the filter is built, when a user is new, and when the server is gone.

    pip install redis && python3 cache_penetration.py        # ITEMS=1000000 for a larger table
"""

import math
import os
import sqlite3

import redis

from local_server import local_server

USERS = int(os.environ.get("ITEMS", 100_000))
FPR = 0.001
BATCH = 5_000


class Service:
    def __init__(self, port):
        self.redis = redis.Redis(port=port, socket_timeout=5)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT)")
        self.cache = {}
        self.queries = 0

    def may_exist(self, user):
        """False: certainly no such user. True: ask the cache, then the database."""
        try:
            return self.redis.execute_command("MF.EXISTS", "users", user) == 1
        except redis.ConnectionError:
            return True  # The server is gone: let the request through.
        except redis.ResponseError as error:
            if str(error).startswith("NOTREADY"):
                return True  # The filter is missing or not built yet: let the request through.
            raise

    def user(self, user, with_filter=True):
        if with_filter and not self.may_exist(user):
            return None
        if user not in self.cache:
            self.queries += 1
            row = self.database.execute("SELECT name FROM users WHERE id = ?", (user,)).fetchone()
            if row is None:
                return None
            self.cache[user] = row[0]
        return self.cache[user]

    def register(self, user):
        """A new user: first the filter, then the database. A rolled-back id is only one more false positive."""
        self.redis.execute_command("MF.ADD", "users", user)
        with self.database:
            self.database.execute("INSERT INTO users VALUES (?, ?)", (user, f"user {user}"))

    def build_filter(self):
        """Fills the filter from the table. It answers NOTREADY until COMMIT, so it is never half filled."""
        command = self.redis.execute_command
        command("MF.BUILD", "users", "BEGIN", "KIND", "blocked-bloom-split", "CAPACITY", USERS * 2, "FPR", FPR)
        rows = self.database.execute("SELECT id FROM users")
        while batch := rows.fetchmany(BATCH):
            command("MF.BUILD", "users", "ADD", *(row[0] for row in batch))
        return command("MF.BUILD", "users", "COMMIT")


def check(holds, what):
    if not holds:
        raise SystemExit(f"cache_penetration: {what}")


def main():
    with local_server() as (port, server):
        service = Service(port)
        members = range(1, 2 * USERS, 2)
        with service.database:
            service.database.executemany("INSERT INTO users VALUES (?, ?)", ((id, f"user {id}") for id in members))

        check(service.user(1) == "user 1", "a user was denied before the filter was built")
        print("before the build: the filter is not ready, and requests pass through")
        generation = service.build_filter()
        print(f"built generation {generation} from {USERS} rows")

        asked = members[:: max(1, USERS // 2_000)]
        check(all(service.user(id) for id in asked), "a real user was denied")
        print(f"{len(asked)} real users asked for: none denied")

        attack = range(2 * USERS + 2, 2 * USERS + 2 + 2 * 5_000, 2)
        service.queries = 0
        check(not any(service.user(id, with_filter=False) for id in attack), "an attacker found a user")
        without = service.queries
        service.queries = 0
        check(not any(service.user(id) for id in attack), "an attacker found a user")
        most = len(attack) * FPR + 6 * math.sqrt(len(attack) * FPR) + 1
        check(service.queries <= most, f"{service.queries} database queries, more than {most:.0f}")
        print(f"{len(attack)} ids that do not exist: {without} database queries without the filter, {service.queries} with it")

        new = 2 * USERS + 1_000_001
        check(service.user(new) is None, "a user exists who never registered")
        service.register(new)
        check(service.user(new) == f"user {new}", "a new user was denied")
        print("a new user is found immediately")

        server.terminate()
        server.wait(timeout=30)
        check(service.user(members[5]), "a user was denied while the server was gone")
        print("the server is gone: requests pass through, none is denied")


if __name__ == "__main__":
    main()
