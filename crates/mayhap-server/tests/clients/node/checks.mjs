// Counts the checks of the scripts in this folder. Each prints the number at its end, and the test compares it.

import { isDeepStrictEqual, inspect } from 'node:util';
import { createRequire } from 'node:module';
import path from 'node:path';

// The address of the server, the address of a server with a password, and the password.
const [port, lockedPort, password] = process.argv.slice(2);
export const HOST = '127.0.0.1';
export const PORT = Number(port);
export const LOCKED_PORT = Number(lockedPort);
export const PASSWORD = password;

/** What `require` gives in the folder that the packages are in. */
export const load = createRequire(path.join(process.env.MAYHAP_TEST_NODE_FOLDER, 'package.json'));

let done = 0;

function stop(what) {
  console.error(what);
  process.exit(1);
}

export function same(what, got, expected) {
  if (!isDeepStrictEqual(got, expected)) {
    stop(`${what}: got ${inspect(got)}, expected ${inspect(expected)}`);
  }
  done += 1;
}

/** `got` holds. */
export function holds(what, got) {
  same(what, Boolean(got), true);
}

/** What is asked for is refused by the server, in words that begin so. */
export async function refused(what, begins, call) {
  let got;
  try {
    got = await call();
  } catch (error) {
    holds(`${what}: ${error} is to begin with ${begins}`, String(error.message).startsWith(begins));
    return;
  }
  stop(`${what}: got ${inspect(got)}, expected an error`);
}

export const range = (count, item = String) => Array.from({ length: count }, (_, i) => item(i));
export const sum = (numbers) => numbers.reduce((all, one) => all + Number(one), 0);
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

export function report() {
  console.log(`${done} checks`);
  process.exit(0);
}

process.on('unhandledRejection', (error) => stop(`nobody waited for: ${inspect(error)}`));
