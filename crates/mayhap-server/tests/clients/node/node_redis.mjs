// node-redis: with its default protocol, and once more with the other.

import { HOST, LOCKED_PORT, PASSWORD, PORT, holds, load, range, refused, report, same, sum } from './checks.mjs';

const { createClient, RESP_TYPES, WatchError } = load('redis');

async function connect(options = {}, port = PORT) {
  const client = createClient({ socket: { host: HOST, port, reconnectStrategy: () => 20 }, ...options });
  // A connection that is lost is reported here, and made again.
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function filters(client, protocol) {
  const { bf, cf } = client;
  same('PING', await client.ping(), 'PONG');
  same('FLUSHALL', await client.flushAll(), 'OK');
  holds('INFO', /\r\nredis_version:\d+\.\d+\.\d+\r\n/.test(await client.info()));

  same('BF.RESERVE', await bf.reserve('seen', 0.01, 1000), 'OK');
  await refused('BF.RESERVE again', 'ERR item exists', () => bf.reserve('seen', 0.01, 1000));
  same('BF.ADD', [await bf.add('seen', 'ada'), await bf.add('seen', 'ada')], [true, false]);
  same('BF.MADD', await bf.mAdd('seen', ['ada', 'bob', 'cyd']), [false, true, true]);
  same('BF.EXISTS', [await bf.exists('seen', 'ada'), await bf.exists('seen', 'nobody')], [true, false]);
  same('BF.MEXISTS', await bf.mExists('seen', ['bob', 'nobody', 'cyd']), [true, false, true]);
  same('BF.INSERT', await bf.insert('made', ['x', 'y', 'x'], { CAPACITY: 500, ERROR: 0.001, EXPANSION: 4 }), [true, true, false]);
  await refused('BF.INSERT NOCREATE', 'ERR not found', () => bf.insert('none', 'x', { NOCREATE: true }));
  same('BF.CARD', await bf.card('seen'), 3);
  const about = await bf.info('made');
  same('BF.INFO', { ...about }, {
    Capacity: 500, Size: about.Size, 'Number of filters': 1, 'Number of items inserted': 2, 'Expansion rate': 4,
  });
  same('BF.RESERVE NONSCALING', await bf.reserve('fixed', 0.01, 100, { NONSCALING: true }), 'OK');
  same('no expansion', (await bf.info('fixed'))['Expansion rate'], null);

  same('CF.RESERVE', await cf.reserve('have', 1000, { BUCKETSIZE: 4, MAXITERATIONS: 50, EXPANSION: 2 }), 'OK');
  same('CF.ADD', [await cf.add('have', 'ada'), await cf.add('have', 'ada')], [true, true]);
  same('CF.COUNT', [await cf.count('have', 'ada'), await cf.count('have', 'bob')], [2, 0]);
  same('CF.ADDNX', [await cf.addNX('have', 'ada'), await cf.addNX('have', 'bob')], [false, true]);
  same('CF.INSERT', await cf.insert('have', ['cyd', 'dee'], { CAPACITY: 100 }), [true, true]);
  same('CF.INSERTNX', Array.from(await cf.insertNX('have', ['cyd', 'eve']), Number), [0, 1]);
  same('CF.EXISTS', [await cf.exists('have', 'eve'), await cf.exists('have', 'nobody')], [true, false]);
  same('CF.MEXISTS', await cf.mExists('have', ['ada', 'nobody', 'dee']), [true, false, true]);
  same('CF.DEL', [await cf.del('have', 'dee'), await cf.del('have', 'dee')], [true, false]);
  await refused('CF.DEL of nothing', 'Not found', () => cf.del('none', 'dee'));
  same('CF.INFO', { ...(await cf.info('have')) }, {
    Size: 40 + 16 + 1024, 'Number of buckets': 256, 'Number of filters': 1, 'Number of items inserted': 5,
    'Number of items deleted': 1, 'Bucket size': 4, 'Expansion rate': 2, 'Max iterations': 50,
  });
  same('CF.COMPACT', await client.sendCommand(['CF.COMPACT', 'have']), 'OK');

  // Chunks are bytes, so bytes are asked for.
  await bf.mAdd('seen', range(5000));
  await cf.insert('have', range(3000));
  const bytes = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
  for (const [family, from, to] of [['bf', 'seen', 'seen copy'], ['cf', 'have', 'have copy']]) {
    for (let iterator = 0; ;) {
      const dumped = await bytes[family].scanDump(from, iterator);
      iterator = dumped.iterator;
      if (iterator === 0) break;
      same('LOADCHUNK', String(await client[family].loadChunk(to, iterator, dumped.chunk)), 'OK');
    }
    const asked = range(10_000);
    same('a copied filter', await client[family].mExists(to, asked), await client[family].mExists(from, asked));
  }

  same('TYPE', [await client.type('seen'), await client.type('have')], ['MBbloom--', 'MBbloomCF']);
  same('EXPIRE', Number(await client.expire('made', 100)), 1);
  holds('TTL', (await client.ttl('made')) > 90);
  same('RENAME', [await client.rename('made', 'renamed'), await client.exists(['made', 'renamed'])], ['OK', 1]);
  const dumped = await bytes.dump('seen');
  same('RESTORE', await client.restore('restored', 0, dumped), 'OK');
  same('what was restored', await bf.card('restored'), await bf.card('seen'));
  same('DEL', await client.del(['renamed', 'none']), 1);

  // Requests of one tick go out together.
  same('a pipeline', sum(await Promise.all(range(500, (i) => bf.add(`user:${i}`, 'x')))), 500);
  const names = [];
  for await (const page of client.scanIterator({ MATCH: 'user:*', COUNT: 50 })) names.push(...page);
  same('SCAN', names.sort(), range(500, (i) => `user:${i}`).sort());

  same('MULTI', await client.multi().bf.add('in one go', 'x').cf.add('in another', 'x').bf.exists('in one go', 'x').exec(), [true, true, true]);
  const other = await connect({ RESP: protocol });
  await other.watch('in one go');
  await bf.add('in one go', 'from somebody else');
  let disturbed = false;
  try {
    await other.multi().bf.add('in one go', 'y').exec();
  } catch (error) {
    disturbed = error instanceof WatchError;
  }
  same('WATCH', [disturbed, await bf.exists('in one go', 'y')], [true, false]);
  await other.watch('in one go');
  same('WATCH of what nobody changes', await other.multi().bf.add('in one go', 'z').exec(), [true]);

  const many = range(10_000, (i) => `https://example.org/${i}`);
  same('BF.RESERVE', await bf.reserve('many', 0.001, 10_000), 'OK');
  holds('BF.MADD of 10 000', sum(await bf.mAdd('many', many)) >= 9_980);
  same('BF.MEXISTS of 10 000', sum(await bf.mExists('many', many)), 10_000);
  const every = range(256, (i) => Buffer.from([i])).concat([Buffer.alloc(0), Buffer.from('\r\n'), Buffer.from('布隆')]);
  const name = Buffer.from([0, 13, 10, 255]);
  await bf.reserve(name, 0.0001, 1000);
  await bf.mAdd(name, every);
  same('any bytes', sum(await bf.mExists(name, every)), every.length);
  same('and no others', await bf.mExists(name, [Buffer.from([0, 0]), Buffer.from('\r\r')]), [false, false]);

  const mine = await other.clientId();
  same('CLIENT KILL', Number(await client.clientKill({ filter: 'ID', id: mine })), 1);
  same('a client that was killed comes back', await other.bf.exists('many', many[0]), true);
  holds('with another id', (await other.clientId()) !== mine);
  await refused('an unknown command', 'ERR unknown command', () => client.sendCommand(['NOSUCH', 'seen']));
  other.destroy();
}

const plain = await connect();
const hello = await plain.sendCommand(['HELLO']);
const byDefault = Array.isArray(hello) ? hello[hello.indexOf('proto') + 1] : hello.proto;
await filters(plain, byDefault);
const proto = byDefault === 3 ? 2 : 3;
await filters(await connect({ RESP: proto }), proto);

await refused('NOAUTH', 'NOAUTH', async () => {
  const client = await connect({ socket: { host: HOST, port: LOCKED_PORT, reconnectStrategy: false } }, LOCKED_PORT);
  return client.bf.add('seen', 'x');
});
await refused('WRONGPASS', 'WRONGPASS', () => connect({ password: 'wrong', socket: { host: HOST, port: LOCKED_PORT, reconnectStrategy: false } }));
const locked = await connect({ password: PASSWORD }, LOCKED_PORT);
same('AUTH', await locked.bf.add('seen', 'x'), true);
const named = await connect({ url: `redis://default:${PASSWORD}@${HOST}:${LOCKED_PORT}`, socket: undefined });
same('AUTH by URL', await named.bf.exists('seen', 'x'), true);
report();
