"""A feed that shows no post twice: one filter per user on a server, with redis-py.

Each request has thousands of candidates. One MF.MEXISTS asks about all of them. MF.INSERT creates the filter of a new
user, with tiers, and EXPIRE deletes the filters of users who stay away.

What to look at: no user sees a post twice; at most 1 % of the new posts are skipped; users who read little cost little
memory.

    pip install redis && python3 feed_tiers.py               # ITEMS=1000000 for a busier reader
"""

import math
import os

import redis

from local_server import local_server

MOST = int(os.environ.get("ITEMS", 50_000))  # posts that the busiest user has seen
CANDIDATES = 2_000
PAGE = 500
FPR = 0.01
AWAY = 180 * 86_400  # seconds after which the filter of an absent user is deleted


class Feed:
    def __init__(self, port):
        self.redis = redis.Redis(port=port)

    def unseen(self, user, candidates):
        """The candidates that this user has not seen: one request for all of them."""
        try:
            seen = self.redis.execute_command("MF.MEXISTS", f"seen:{user}", *candidates)
        except redis.ResponseError as error:
            if not str(error).startswith("NOTREADY"):
                raise
            return candidates  # No filter: a new user, or one who was away for long.
        return [post for post, maybe in zip(candidates, seen) if not maybe]

    def shown(self, user, posts):
        """Marks posts as seen, and starts the 180 days again."""
        pipe = self.redis.pipeline()
        pipe.execute_command(
            "MF.INSERT", f"seen:{user}", "TIERS", "1000,10000,100000", "FPR", FPR, "EXPIRE", AWAY, "ITEMS", *posts
        )
        pipe.expire(f"seen:{user}", AWAY)
        pipe.execute()

    def memory(self, user):
        return self.redis.execute_command("MF.INFO", f"seen:{user}", "memory_bytes")


def check(holds, what):
    if not holds:
        raise SystemExit(f"feed_tiers: {what}")


def read(feed, user, posts):
    """Reads pages until `posts` were shown. Returns the number of new candidates and of those that were skipped."""
    seen, new, skipped, first = set(), 0, 0, 0
    while len(seen) < posts:
        # Half of the candidates may have been shown already, the others are new.
        old = list(seen)[: CANDIDATES // 2]
        fresh = [f"post-{number}" for number in range(first, first + CANDIDATES - len(old))]
        unseen = feed.unseen(user, old + fresh)
        check(not seen.intersection(unseen), f"user {user} would see a post twice")
        page = unseen[: min(PAGE, posts - len(seen))]
        passed = fresh.index(page[-1]) + 1
        first += passed
        new += passed
        skipped += passed - len(page)
        feed.shown(user, page)
        seen.update(page)
    return new, skipped


def main():
    with local_server() as (port, _server):
        feed = Feed(port)
        check(len(feed.unseen(0, ["a", "b"])) == 2, "a new user has seen something")
        total_new = total_skipped = 0
        for user, posts in enumerate([20, MOST // 100, MOST // 10, MOST]):
            new, skipped = read(feed, user, posts)
            total_new += new
            total_skipped += skipped
            print(f"user {user}: {new - skipped} posts shown, {skipped} skipped, none twice, {feed.memory(user)} bytes")
            left = feed.redis.ttl(f"seen:{user}")
            check(0 < left <= AWAY, f"the filter of user {user} expires in {left} seconds")
        most = total_new * FPR + 6 * math.sqrt(total_new * FPR) + 1
        check(total_skipped <= most, f"{total_skipped} of {total_new} new posts skipped, more than {most:.0f}")
        print(f"{total_skipped} of {total_new} new posts skipped: at most 1 % was promised")
        check(feed.memory(0) * 4 < feed.memory(3), "a user who read little costs as much as a busy one")


if __name__ == "__main__":
    main()
