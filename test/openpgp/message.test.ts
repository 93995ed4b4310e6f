import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stateRelease, type KeyOptions, type MessageOptions } from '../../demo/openpgp-signer.ts';
import { SealiftError } from '../../src/base/errors.ts';
import { parseKeys } from '../../src/openpgp/keys.ts';
import { verifySignedMessage } from '../../src/openpgp/message.ts';
import { parseReleaseStatement } from '../../src/openshift/release/signature.ts';
import { askGpgv } from '../support/gpgv.ts';
import { createThrowAwaySigner } from '../support/throw-away-signer.ts';
import { requireTool } from '../support/tools.ts';

const REAL = '../shared/data/signatures';
const DIGEST = `sha256:${'4f'.repeat(32)}`;
const STATEMENT = stateRelease(DIGEST, 'quay.io/openshift-release-dev/ocp-release:4.21.3-x86_64');
const NOW = Date.now() / 1000;
const HAS_GPGV = requireTool('gpgv');

const { sign, publicKey, fingerprint } = createThrowAwaySigner();

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-gpgv-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** `good`, or the code of the refusal. */
function judge(message: Uint8Array, keys: Uint8Array): string {
  try {
    verifySignedMessage(message, parseKeys(keys, NOW), NOW);
    return 'good';
  } catch (error) {
    if (error instanceof SealiftError) return error.code;
    throw error;
  }
}

describe.skipIf(!existsSync(REAL))('a signature by Red Hat', () => {
  it.each([
    [
      'release-4.16.0-x86_64.signature-1',
      'sha256:3717338045df06e31effea46761b2c7e90f543cc4f00547af8158dd6aea868c3',
      'quay.io/openshift-release-dev/ocp-release:4.16.0-x86_64',
    ],
    [
      'container-v3.signature-1',
      'sha256:50b9402635dd4b312a86bed05dcdbda8c00120d3789ec2e9b527045100b3bdb4',
      'registry.access.redhat.com/albo/aws-load-balancer-operator-bundle:0.0.1',
    ],
    [
      'container-v3.signature-2',
      'sha256:50b9402635dd4b312a86bed05dcdbda8c00120d3789ec2e9b527045100b3bdb4',
      'registry.access.redhat.com/albo/aws-load-balancer-operator-bundle:0.0.1-20',
    ],
  ])('%s is verified with the release key', async (name, digest, identity) => {
    const keys = parseKeys(await readFile(join(REAL, 'redhat-release-keys.asc')), NOW);
    const { content, key } = verifySignedMessage(await readFile(join(REAL, name)), keys, NOW);
    expect(parseReleaseStatement(content)).toEqual({ digest, identity });
    expect(key.fingerprint).toBe('567E347AD0044ADE55BA8A5F199E2F91FD431D51');
  });
});

describe.skipIf(!HAS_GPGV)('an OpenPGP message, here and in gpgv', () => {
  const kinds: MessageOptions[] = ([3, 4] as const).flatMap((version) =>
    (['sha256', 'sha384', 'sha512'] as const).flatMap((hash) =>
      [true, false].map((isCompressed) => ({ version, hash, isCompressed })),
    ),
  );

  it(
    '100 valid signatures of all versions and hashes are accepted by both',
    { timeout: 60_000 },
    async () => {
      const verdicts: Record<string, number> = {};
      for (let at = 0; at < 100; at++) {
        const message = sign(
          Buffer.concat([STATEMENT, Buffer.from(`${at}`)]),
          kinds[at % kinds.length],
        );
        const both = `${judge(message, publicKey)}, ${await askGpgv(directory, message, publicKey)}`;
        verdicts[both] = (verdicts[both] ?? 0) + 1;
      }
      expect(verdicts).toEqual({ 'good, good': 100 });
    },
  );

  const keys: [string, KeyOptions, string][] = [
    ['revoked', { isRevoked: true }, 'signature.key-refused'],
    [
      'revoked with a hash that nobody else may use',
      { isRevoked: true, revocationHash: 'sha1' },
      'signature.key-refused',
    ],
    ['expired', { validFor: 3600 }, 'signature.key-expired'],
    ['of a signature over itself with SHA-1', { hash: 'sha1' }, 'signature.key-refused'],
    ['only for certifying', { flags: 0x01 }, 'signature.key-refused'],
  ];
  it.each(keys)('a signature by a key that is %s is refused', (_, options, code) => {
    const own = createThrowAwaySigner(options);
    expect(judge(own.sign(STATEMENT), own.publicKey)).toBe(code);
  });

  it('an expired signature is refused by both', async () => {
    const message = sign(STATEMENT, { validFor: 60 });
    expect(judge(message, publicKey)).toBe('signature.expired');
    expect(await askGpgv(directory, message, publicKey)).toBe('bad');
  });

  it('a signature with a critical subpacket that is not known is refused by both', async () => {
    const message = sign(STATEMENT, { critical: 100 });
    expect(judge(message, publicKey)).toBe('openpgp.unsupported');
    expect(await askGpgv(directory, message, publicKey)).toBe('bad');
    expect(judge(sign(STATEMENT, { critical: 26 }), publicKey)).toBe('good');
  });

  it('of several statements of a key about itself the newest counts, in either order', () => {
    const early = createThrowAwaySigner();
    const late = createThrowAwaySigner({ stated: 1_700_000_060, flags: 0x01 });
    const message = sign(STATEMENT);
    for (const copies of [
      [early, late],
      [late, early],
    ]) {
      const keys = Buffer.concat(copies.map((copy) => copy.publicKey));
      expect(judge(message, keys)).toBe('signature.key-refused');
    }
    expect(judge(message, early.publicKey)).toBe('good');
  });

  it('a signature with SHA-1 is refused', () => {
    expect(judge(sign(STATEMENT, { hash: 'sha1' }), publicKey)).toBe('openpgp.unsupported');
  });

  it('a signature made before its key is refused by both', async () => {
    const message = sign(STATEMENT, { created: 1_600_000_000 });
    expect(judge(message, publicKey)).toBe('signature.wrong');
    expect(await askGpgv(directory, message, publicKey)).toBe('bad');
  });

  it('a signature by a key that is not trusted is refused with the fingerprints of the trusted keys', () => {
    const other = createThrowAwaySigner({ created: 1_690_000_000 });
    expect(() =>
      verifySignedMessage(other.sign(STATEMENT), parseKeys(publicKey, NOW), NOW),
    ).toThrow(
      expect.objectContaining({
        code: 'signature.untrusted-key',
        expected: fingerprint,
        found: other.fingerprint,
      }),
    );
  });

  it('a key that was revoked with SHA-1 is revoked for both', async () => {
    const own = createThrowAwaySigner({ isRevoked: true, revocationHash: 'sha1' });
    const message = own.sign(STATEMENT);
    expect(judge(message, own.publicKey)).toBe('signature.key-refused');
    expect(await askGpgv(directory, message, own.publicKey)).toBe('bad');
  });

  it('a signature by a key from the future is refused by both, except for a few minutes of clock skew here', async () => {
    const own = createThrowAwaySigner({ created: Math.floor(NOW) + 3600 });
    const message = own.sign(STATEMENT);
    expect(judge(message, own.publicKey)).toBe('signature.in-future');
    expect(await askGpgv(directory, message, own.publicKey)).toBe('bad');
    const early = createThrowAwaySigner({ created: Math.floor(NOW) + 120 });
    expect(judge(early.sign(STATEMENT), early.publicKey)).toBe('good');
  });

  it.each([3, 4] as const)(
    'a signature of version %i from the future is refused, except for a few minutes of clock skew',
    (version) => {
      const after = (seconds: number): Buffer =>
        sign(STATEMENT, { version, created: Math.floor(NOW) + seconds });
      expect(judge(after(3600), publicKey)).toBe('signature.in-future');
      expect(judge(after(240), publicKey)).toBe('good');
    },
  );

  it('two signed messages in a row are refused', () => {
    const one = sign(STATEMENT, { isCompressed: false });
    expect(judge(Buffer.concat([one, one]), publicKey)).toBe('openpgp.malformed');
  });

  it('bytes after compressed data are refused', () => {
    const message = Buffer.concat([sign(STATEMENT), Buffer.from([0])]);
    expect(judge(message, publicKey)).toBe('openpgp.malformed');
  });
});

describe('a file with keys', () => {
  it('is read when armoured, with text around several blocks', () => {
    const base64 = publicKey.toString('base64').replace(/.{64}/g, '$&\n');
    const block = `-----BEGIN PGP PUBLIC KEY BLOCK-----\nVersion: 1\n\n${base64}\n=abcd\n-----END PGP PUBLIC KEY BLOCK-----\n`;
    const keys = parseKeys(Buffer.from(`keys of ours\n${block}\nand the same\n${block}`), NOW);
    expect(keys.map((key) => key.fingerprint)).toEqual([fingerprint]);
  });

  it('has no trusted copy of a key when one copy is revoked, in any order', () => {
    const revoked = createThrowAwaySigner({ isRevoked: true });
    expect(revoked.fingerprint).toBe(fingerprint);
    for (const copies of [
      [revoked.publicKey, publicKey],
      [publicKey, revoked.publicKey],
    ]) {
      expect(judge(sign(STATEMENT), Buffer.concat(copies))).toBe('signature.key-refused');
    }
  });

  it('is refused when it has no RSA key of version 4', () => {
    const userId = Buffer.from([0xb4, 1, 0x61]);
    expect(() => parseKeys(userId, NOW)).toThrow(
      expect.objectContaining({ code: 'openpgp.no-key' }),
    );
  });
});
