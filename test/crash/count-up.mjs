// @ts-check
// Loaded before the program: opens /dev/null in the thread that works for node:fs/promises. strace counts the
// calls of each thread on its own; so the nth call of that thread is not one that starts Node in the first.
// Plain JavaScript: it is named in NODE_OPTIONS, before anything could load TypeScript.
import { open } from 'node:fs/promises';
import { isMainThread } from 'node:worker_threads';

const CALLS = 200;

for (let call = 0; isMainThread && call < CALLS; call++) {
  const file = await open('/dev/null').catch(() => undefined); // it may be the call that is spoiled
  await file?.close();
}
