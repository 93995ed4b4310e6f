import { hkdfSync } from 'node:crypto';
import { KEY_SIZE, openSealedBytes, sealBytes } from '../base/digest.ts';
import { ConfigError, IntegrityError } from '../base/errors.ts';
import type { Secret } from '../base/secret.ts';
import type { State } from './state/state.ts';

/** Bytes that a key must have: what people think up is shorter. */
const LEAST = 32;

/** What the service makes of `--key`; each use has a key of its own. */
export type ServiceKey = {
  /** @param owner what the text belongs to: it opens for nothing else */
  readonly seal: (text: string, owner: string) => string;
  /** @throws IntegrityError `service.key-wrong` */
  readonly open: (sealed: string, owner: string) => string;
  /** The key for another purpose: 32 bytes. */
  readonly derive: (purpose: string) => Uint8Array;
};

/** @throws ConfigError `service.key-short` */
export function readServiceKey(secret: Secret): ServiceKey {
  const given = Buffer.from(secret.reveal());
  if (given.length < LEAST) {
    throw new ConfigError('service.key-short', `--key has ${given.length} bytes`, {
      expected: `at least ${LEAST} bytes`,
      found: `${given.length} bytes`,
      hint: 'make one with "openssl rand -hex 32"',
    });
  }
  // RFC 5869: the given text has its randomness somewhere, not in every byte.
  const derive = (purpose: string): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', given, 'sealift serve', purpose, KEY_SIZE));
  const records = derive('records');
  return {
    seal: (text, owner) => sealBytes(Buffer.from(text), records, owner).toString('base64'),
    open(sealed, owner) {
      const bytes = openSealedBytes(Buffer.from(sealed, 'base64'), records, owner);
      if (bytes) return bytes.toString('utf8');
      throw new IntegrityError(
        'service.key-wrong',
        `--key does not open what is stored: ${owner}`,
        {
          hint: 'give the key that the service was started with before',
        },
      );
    },
    derive,
  };
}

const CHECKED = 'key-check';

/**
 * Whether it is the key that the records are of; the first one is.
 *
 * @throws IntegrityError `service.key-wrong`
 */
export async function checkServiceKey(key: ServiceKey, state: State): Promise<void> {
  key.open(await state.keepFirst(CHECKED, key.seal('', CHECKED)), CHECKED);
}
