import { parentPort, type MessagePort } from 'node:worker_threads';
import type { Keys, RsaPair } from '../../../openshift/image-based/identity/keys/rsa-keys.ts';
import { connectCalls, type Calls } from './calls.ts';
import type { KeyRequest, SiteRequest } from './requests.ts';
import { createSiteWorker, obeyRequest } from './site-worker.ts';

/** A thread that checks sites and makes their ISOs. Keys it has from who started it. */
function run(port: MessagePort): void {
  const calls = connectCalls(port, (request) => obeyRequest(worker, request as SiteRequest));
  const worker = createSiteWorker({ keys: askForKeys(calls) });
}

/** A site's six keys are asked for in one turn, and go in one message. */
function askForKeys(calls: Calls): Keys {
  const ask = (request: KeyRequest): Promise<unknown> => calls.ask(request);
  let asked: { readonly pairs: Promise<unknown>; readonly count: { value: number } } | undefined;
  return {
    async next() {
      asked ??= collect();
      const { pairs, count } = asked;
      const index = count.value++;
      const pair = ((await pairs) as readonly RsaPair[])[index];
      if (!pair) throw new RangeError(`there are fewer than ${index + 1} keys`);
      return pair;
    },
    hashPassword: async (text, salt) => (await ask({ op: 'hash', text, salt })) as string,
  };
  function collect(): NonNullable<typeof asked> {
    const count = { value: 0 };
    const pairs = Promise.resolve().then(() => {
      asked = undefined;
      return ask({ op: 'keys', count: count.value });
    });
    return { pairs, count };
  }
}

if (parentPort) run(parentPort);
