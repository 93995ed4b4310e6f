import { createPrivateKey } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSigner, type KeyOptions, type Signer } from '../../demo/openpgp-signer.ts';

const privateKey = createPrivateKey(
  readFileSync(new URL('throw-away-key.pem', import.meta.url), 'utf8'),
);

/**
 * A signer with the RSA key of the tests, which nobody trusts. To make a key takes seconds on a busy
 * machine; with another time of creation the same one is another OpenPGP key.
 */
export const createThrowAwaySigner = (options: KeyOptions = {}): Signer =>
  createSigner({ privateKey, ...options });
