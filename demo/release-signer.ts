import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSigner, stateRelease, type Signer } from './openpgp-signer.ts';

/** Signs releases with a throw-away key, and has the signatures as a signature store has them. */
export type ReleaseSigner = {
  readonly sign: (digest: string, identity: string) => void;
  /** What a store has at `sha256=HEX/signature-N`. */
  readonly find: (path: string) => Buffer | undefined;
  /** Writes signatures and key to where `SIGNATURE_SETTINGS` look for them in a folder. */
  readonly write: (directory: string) => void;
};

const [FOLDER, KEYS] = ['release-signatures', 'release-keys.gpg'];

/** Of a configuration below `build`, beside what a signer has written. */
export const SIGNATURE_SETTINGS = { signatures: FOLDER, signatureKeys: KEYS } as const;

/** The same as lines of YAML. */
export const SIGNATURE_LINES: readonly string[] = Object.entries(SIGNATURE_SETTINGS).map(
  ([name, path]) => `  ${name}: ${path}`,
);

/** @param signer default: one with a new key */
export function createReleaseSigner(signer?: Signer): ReleaseSigner {
  let own = signer;
  const messages = new Map<string, Buffer>();
  const getSigner = (): Signer => (own ??= createSigner({ name: 'Throw-away release key' }));
  return {
    sign(digest, identity) {
      const message = getSigner().sign(stateRelease(digest, identity));
      messages.set(`${digest.replace(':', '=')}/signature-1`, message);
    },
    find: (path) => messages.get(path),
    write(directory) {
      mkdirSync(directory, { recursive: true });
      for (const [path, message] of messages) {
        mkdirSync(join(directory, FOLDER, path, '..'), { recursive: true });
        writeFileSync(join(directory, FOLDER, path), message);
      }
      writeFileSync(join(directory, KEYS), getSigner().publicKey);
    },
  };
}
