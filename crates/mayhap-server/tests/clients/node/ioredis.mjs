// ioredis and iovalkey, which have one interface: the last argument says which. Filters are asked for by plain commands.

import { once } from 'node:events';

import { HOST, LOCKED_PORT, PASSWORD, PORT, holds, load, pause, range, refused, report, same, sum } from './checks.mjs';

const { Redis } = load(process.argv.at(-1));

const opened = [];
function connect(options = {}, port = PORT) {
  const client = new Redis({ host: HOST, port, retryStrategy: () => 20, ...options });
  client.on('error', () => {});
  opened.push(client);
  return client;
}

// Booleans in RESP3, numbers in RESP2.
const numbers = (reply) => (Array.isArray(reply) ? reply.map(Number) : Number(reply));
// A map in RESP3, a flat list in RESP2.
function pairs(reply) {
  if (!Array.isArray(reply)) return reply instanceof Map ? Object.fromEntries(reply) : { ...reply };
  return Object.fromEntries(range(reply.length / 2, (i) => [reply[2 * i], reply[2 * i + 1]]));
}

async function filters(client) {
  const call = (...words) => client.call(...words);
  same('FLUSHALL', await client.flushall(), 'OK');
  same('PING', await client.ping(), 'PONG');
  holds('INFO', /\r\nredis_version:\d+\.\d+\.\d+\r\n/.test(await client.info()));

  same('BF.RESERVE', await call('BF.RESERVE', 'seen', 0.01, 1000), 'OK');
  await refused('BF.RESERVE again', 'ERR item exists', () => call('BF.RESERVE', 'seen', 0.01, 1000));
  same('BF.ADD', numbers([await call('BF.ADD', 'seen', 'ada'), await call('BF.ADD', 'seen', 'ada')]), [1, 0]);
  same('BF.MADD', numbers(await call('BF.MADD', 'seen', 'ada', 'bob', 'cyd')), [0, 1, 1]);
  same('BF.EXISTS', numbers(await call('BF.EXISTS', 'seen', 'nobody')), 0);
  same('BF.MEXISTS', numbers(await call('BF.MEXISTS', 'seen', 'bob', 'nobody', 'cyd')), [1, 0, 1]);
  same('BF.INSERT', numbers(await call('BF.INSERT', 'made', 'CAPACITY', 500, 'ERROR', 0.001, 'ITEMS', 'x', 'y', 'x')), [1, 1, 0]);
  await refused('BF.INSERT NOCREATE', 'ERR not found', () => call('BF.INSERT', 'none', 'NOCREATE', 'ITEMS', 'x'));
  same('BF.CARD', await call('BF.CARD', 'seen'), 3);
  const about = pairs(await call('BF.INFO', 'made'));
  same('BF.INFO', [about.Capacity, about['Number of items inserted'], about['Expansion rate']], [500, 2, 2]);

  same('CF.RESERVE', await call('CF.RESERVE', 'have', 1000, 'BUCKETSIZE', 4), 'OK');
  same('CF.ADD', numbers([await call('CF.ADD', 'have', 'ada'), await call('CF.ADD', 'have', 'ada')]), [1, 1]);
  same('CF.COUNT', [await call('CF.COUNT', 'have', 'ada'), await call('CF.COUNT', 'have', 'bob')], [2, 0]);
  same('CF.ADDNX', numbers([await call('CF.ADDNX', 'have', 'ada'), await call('CF.ADDNX', 'have', 'bob')]), [0, 1]);
  same('CF.INSERT', numbers(await call('CF.INSERT', 'have', 'ITEMS', 'cyd', 'dee')), [1, 1]);
  same('CF.INSERTNX', await call('CF.INSERTNX', 'have', 'ITEMS', 'cyd', 'eve'), [0, 1]);
  same('CF.EXISTS', numbers(await call('CF.EXISTS', 'have', 'eve')), 1);
  same('CF.MEXISTS', numbers(await call('CF.MEXISTS', 'have', 'ada', 'nobody', 'dee')), [1, 0, 1]);
  same('CF.DEL', numbers([await call('CF.DEL', 'have', 'dee'), await call('CF.DEL', 'have', 'dee')]), [1, 0]);
  same('CF.INFO', pairs(await call('CF.INFO', 'have'))['Number of items inserted'], 5);
  same('CF.COMPACT', await call('CF.COMPACT', 'have'), 'OK');

  await call('BF.MADD', 'seen', ...range(5000));
  await call('CF.INSERT', 'have', 'ITEMS', ...range(3000));
  for (const [family, from, to] of [['BF', 'seen', 'seen copy'], ['CF', 'have', 'have copy']]) {
    for (let iterator = 0; ;) {
      const [next, chunk] = await client.callBuffer(`${family}.SCANDUMP`, from, iterator);
      iterator = Number(next);
      if (iterator === 0) break;
      same('LOADCHUNK', await call(`${family}.LOADCHUNK`, to, iterator, chunk), 'OK');
    }
    const asked = range(10_000);
    same('a copied filter', await call(`${family}.MEXISTS`, to, ...asked), await call(`${family}.MEXISTS`, from, ...asked));
  }

  same('TYPE', [await client.type('seen'), await client.type('have')], ['MBbloom--', 'MBbloomCF']);
  same('EXPIRE', await client.expire('made', 100), 1);
  holds('TTL', (await client.ttl('made')) > 90);
  same('RESTORE', await client.restore('restored', 0, await client.dumpBuffer('seen')), 'OK');
  same('DEL', await client.del('made', 'none'), 1);

  const pipeline = client.pipeline();
  range(500).forEach((i) => pipeline.call('BF.ADD', `user:${i}`, 'x'));
  const added = await pipeline.exec();
  same('a pipeline', [added.every(([error]) => error === null), sum(added.map(([, reply]) => reply))], [true, 500]);
  const names = [];
  for await (const page of client.scanStream({ match: 'user:*', count: 50 })) names.push(...page);
  same('SCAN', names.sort(), range(500, (i) => `user:${i}`).sort());

  const both = await client.multi().call('BF.ADD', 'in one go', 'x').call('CF.ADD', 'in another', 'x').exec();
  same('MULTI', both.map(([error, reply]) => [error, Number(reply)]), [[null, 1], [null, 1]]);
  const other = connect(client.options.protocol === undefined ? {} : { protocol: client.options.protocol });
  await other.watch('in one go');
  await call('BF.ADD', 'in one go', 'from somebody else');
  same('WATCH', await other.multi().call('BF.ADD', 'in one go', 'y').exec(), null);
  same('nothing of it happened', numbers(await call('BF.EXISTS', 'in one go', 'y')), 0);

  const many = range(10_000, (i) => `https://example.org/${i}`);
  same('BF.RESERVE', await call('BF.RESERVE', 'many', 0.001, 10_000), 'OK');
  holds('BF.MADD of 10 000', sum(await call('BF.MADD', 'many', ...many)) >= 9_980);
  same('BF.MEXISTS of 10 000', sum(await call('BF.MEXISTS', 'many', ...many)), 10_000);
  const every = range(256, (i) => Buffer.from([i])).concat([Buffer.alloc(0), Buffer.from('\r\n'), Buffer.from('布隆')]);
  const name = Buffer.from([0, 13, 10, 255]);
  await call('BF.RESERVE', name, 0.0001, 1000);
  await call('BF.MADD', name, ...every);
  same('any bytes', sum(await call('BF.MEXISTS', name, ...every)), every.length);
  same('and no others', numbers(await call('BF.MEXISTS', name, Buffer.from([0, 0]), '\r\r')), [0, 0]);

  const mine = await other.client('ID');
  same('CLIENT KILL', await client.client('KILL', 'ID', mine), 1);
  for (let tries = 0; other.status === 'ready' && tries < 500; tries += 1) await pause(2);
  same('a client that was killed comes back', numbers(await other.call('BF.EXISTS', 'many', many[0])), 1);
  holds('with another id', (await other.client('ID')) !== mine);
  await refused('an unknown command', 'ERR unknown command', () => call('NOSUCH', 'seen'));
}

await filters(connect());
if (process.argv.at(-1) === 'ioredis') await filters(connect({ protocol: 2 }));

await refused('NOAUTH', 'NOAUTH', () => connect({ enableReadyCheck: false }, LOCKED_PORT).call('BF.ADD', 'seen', 'x'));
const wrong = new Redis({ host: HOST, port: LOCKED_PORT, password: 'wrong', retryStrategy: () => null });
const [error] = await once(wrong, 'error', { signal: AbortSignal.timeout(20_000) }).catch((cause) => [cause]);
holds(`WRONGPASS: ${error}`, /WRONGPASS/.test(error.message));
wrong.disconnect();
const locked = connect({ password: PASSWORD }, LOCKED_PORT);
same('AUTH', numbers(await locked.call('BF.ADD', 'seen', 'x')), 1);
opened.forEach((client) => client.disconnect());
report();
