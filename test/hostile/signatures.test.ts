import { describe, expect, it } from 'vitest';
import { stateRelease, type Signer } from '../../demo/openpgp-signer.ts';
import { SealiftError } from '../../src/base/errors.ts';
import { createRedaction } from '../../src/base/text/redact.ts';
import { readSignatureGate } from '../../src/cli/ask-iso.ts';
import { parseKeys } from '../../src/openpgp/keys.ts';
import { verifySignedMessage } from '../../src/openpgp/message.ts';
import { parseReleaseStatement } from '../../src/openshift/release/signature.ts';
import { listStoredSignatures } from '../../src/openshift/release/signature-store.ts';
import { createThrowAwaySigner } from '../support/throw-away-signer.ts';
import { createRandom } from '../faults/random.ts';

const DIGEST = `sha256:${'4f'.repeat(32)}`;
const IDENTITY = 'quay.io/openshift-release-dev/ocp-release:4.21.3-x86_64';
const STATEMENT = stateRelease(DIGEST, IDENTITY);
const NOW = Date.now() / 1000;

const signer = createThrowAwaySigner();
const keys = parseKeys(signer.publicKey, NOW);

type Verdict = 'accepted' | 'refused';

/** Anything but a foreseen refusal fails the test. */
function judge(message: Uint8Array): Verdict {
  try {
    const { content } = verifySignedMessage(message, keys, NOW);
    return parseReleaseStatement(content).digest === DIGEST ? 'accepted' : 'refused';
  } catch (error) {
    if (error instanceof SealiftError) return 'refused';
    throw error;
  }
}

/** RFC 4880 5.9: name and time of literal data are not signed. Behind the one-pass packet of 16 bytes. */
const UNSIGNED = { start: 16 + 3 + 1, end: 16 + 3 + 1 + 1 + 4 };

const random = createRandom(20260112);

function mutate(bytes: Buffer): Buffer {
  const at = random.below(bytes.length);
  const value = [0, 1, 0x7f, 0x80, 0xff, random.below(256)][random.below(6)] ?? 0;
  const changed = Buffer.from(bytes);
  switch (random.below(5)) {
    case 0:
      changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
      return changed;
    case 1:
      changed[at] = value;
      return changed;
    case 2:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + random.below(4))]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at), Buffer.from([value]), bytes.subarray(at)]);
    default:
      return bytes.subarray(0, at);
  }
}

/**
 * Without what is not signed: name and time of the literal data, and of version 4 the subpackets that
 * are not hashed, in front of the 16 bits of the digest and a number of 2048 bits (RFC 4880 5.2.3).
 */
function signedPart(message: Buffer, { length, version }: Form): string {
  const unhashed = { end: length - 2 - 256 - 2, start: length - 2 - 256 - 2 - 10 };
  return Buffer.concat([
    message.subarray(0, UNSIGNED.start),
    ...(version === 3
      ? [message.subarray(UNSIGNED.end)]
      : [message.subarray(UNSIGNED.end, unhashed.start), message.subarray(unhashed.end)]),
  ]).toString('hex');
}

/** Of the message before its mutation. */
type Form = { readonly length: number; readonly version: 3 | 4 };

describe('the address of a signature store', () => {
  const redaction = createRedaction();
  const read = (signatureUrl: string) =>
    readSignatureGate({ signatureUrl }, { cwd: '/', env: {}, redaction }).store;

  it('may have a password with https or on this machine, and is otherwise refused without showing it', () => {
    expect(read('https://me:hush-hush-8@store.example/s/')).toContain('hush-hush-8');
    expect(read('http://me:hush-hush-8@127.0.0.1/s/')).toContain('hush-hush-8');
    expect(() => read('http://me:hush-hush-8@store.example/s/')).toThrow(
      expect.objectContaining({
        code: 'usage.signature-url',
        found: 'http://store.example/s/',
      }),
    );
    expect(redaction.mask('answers to hush-hush-8')).toBe('answers to [redacted]');
  });
});

describe('a verifier of release signatures', () => {
  it('accepts none of 1000 mutated signatures, and all of 100 unchanged ones', () => {
    const tally = { mutated: 0, accepted: 0 };
    while (tally.mutated < 1000) {
      const version = random.below(2) === 0 ? 3 : 4;
      const message = signer.sign(STATEMENT, { version, isCompressed: false });
      const changed = mutate(message);
      const form = { length: message.length, version } as const;
      if (signedPart(changed, form) === signedPart(message, form)) continue;
      tally.mutated++;
      if (judge(changed) === 'accepted') tally.accepted++;
    }
    expect(tally).toEqual({ mutated: 1000, accepted: 0 });
    const whole = Array.from({ length: 100 }, (_, at) =>
      judge(signer.sign(STATEMENT, { version: at % 2 === 0 ? 3 : 4, isCompressed: at % 3 > 0 })),
    );
    expect(whole.filter((verdict) => verdict === 'accepted')).toHaveLength(100);
  });

  it('accepts only the original content from a mutated compressed signature', () => {
    const message = signer.sign(STATEMENT);
    for (let count = 0; count < 1000; count++) {
      let content: Buffer;
      try {
        content = verifySignedMessage(mutate(message), keys, NOW).content;
      } catch (error) {
        if (error instanceof SealiftError) continue;
        throw error;
      }
      expect(content.equals(STATEMENT)).toBe(true);
    }
  });

  it('refuses statements with a valid signature that deviate from the required text', () => {
    const accepted = listStatements().filter(
      (text) => judge(signText(signer, text)) === 'accepted',
    );
    expect(accepted).toEqual([]);
    expect(judge(signText(signer, STATEMENT.toString()))).toBe('accepted');
  });

  it('a file with keys that begins armour in every line, or has an endless user ID, is refused at once', () => {
    const begins = 'a:-----BEGIN PGP PUBLIC KEY BLOCK-----\n'.repeat(27_000);
    const keyLength = signer.publicKey.readUInt16BE(1) + 3;
    const name = Buffer.concat([Buffer.from([0xcd, 0xff, 0, 7, 0, 0]), Buffer.alloc(0x70000, 'n')]);
    const key = signer.publicKey.subarray(0, keyLength);
    const { user } = process.cpuUsage();
    for (const file of [Buffer.from(begins), Buffer.concat([key, name])]) {
      expect(() => parseKeys(file, NOW)).toThrow(SealiftError);
    }
    expect(process.cpuUsage().user - user).toBeLessThan(2_000_000);
  });

  it('takes time in proportion to the size of ConfigMaps with a text for data and of messages with a million packets', () => {
    const { user } = process.cpuUsage();
    expect(listStoredSignatures({ binaryData: 'x'.repeat(3_000_000) })).toEqual([]);
    for (const packet of [[0xc4, 0], [0xe0]]) {
      const message = Buffer.alloc(4_000_000, Buffer.from(packet));
      expect(judge(message)).toBe('refused');
    }
    expect(process.cpuUsage().user - user).toBeLessThan(1_500_000);
  });

  it('reads or refuses a mutated file with keys, and trusts no other key', () => {
    const other = createThrowAwaySigner({ created: 1_690_000_000 });
    const forged = other.sign(STATEMENT);
    for (let count = 0; count < 500; count++) {
      const changed = mutate(signer.publicKey);
      try {
        verifySignedMessage(forged, parseKeys(changed, NOW), NOW);
      } catch (error) {
        if (error instanceof SealiftError) continue;
        throw error;
      }
      expect.unreachable('a key that the file does not hold was trusted');
    }
  });
});

const signText = ({ sign }: Signer, text: string): Buffer => sign(Buffer.from(text, 'latin1'));

function listStatements(): string[] {
  const whole = STATEMENT.toString();
  const change = (from: string | RegExp, to: string): string => {
    const changed = whole.replace(from, to);
    if (changed === whole) throw new Error(`${String(from)} is not in the statement`);
    return changed;
  };
  return [
    '',
    'null',
    '[]',
    '{}',
    `[${whole}]`,
    `${whole}${whole}`,
    `\uFEFF${whole}`,
    `${whole}\0`,
    '{'.repeat(20_000),
    change('"critical"', '"Critical"'),
    change('"critical":', '"__proto__":'),
    change('{"critical"', '{"more":1,"critical"'),
    change('"type"', '"more":1,"type"'),
    change('"image":{', '"image":{"more":1,'),
    change('"identity":{', '"identity":{"more":1,'),
    change('"image":{', '"image":{},"image":{'),
    change('"type":', '"type":"x","type":'),
    change(
      '"docker-manifest-digest":',
      `"docker-manifest-digest":"${DIGEST}","docker-manifest-\\u0064igest":`,
    ),
    change('atomic container signature', 'cosign container image signature'),
    change('atomic container signature', 'atomic container signature '),
    change('"atomic container signature"', '["atomic container signature"]'),
    change(DIGEST, DIGEST.toUpperCase()),
    change(DIGEST, DIGEST.slice(0, -1)),
    change(DIGEST, DIGEST.replace(/.$/, '0')),
    change(DIGEST, `${DIGEST}\\n`),
    change(`"${DIGEST}"`, `["${DIGEST}"]`),
    change(IDENTITY, ''),
    change(IDENTITY, ' '),
    change(IDENTITY, `${IDENTITY}\\nsigned by: somebody else`),
    change(IDENTITY, `${IDENTITY}\\u202e`),
    change(`"${IDENTITY}"`, 'null'),
    change(/"optional":\{.*\}\}$/, '"optional":null}'),
    change(/,"optional":\{.*\}\}$/, '}'),
    change(IDENTITY, `${IDENTITY}\xff`),
  ];
}
