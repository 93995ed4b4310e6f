import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';

const redaction = createRedaction();

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealift-part-'));
  writeFileSync(join(folder, 'old.iso'), makeTinyIso());
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

const DIGEST = `sha256:${'0'.repeat(64)}`;

/** Heads whose digest is right: whoever wrote the file chose what is in it. */
const HEADS = [
  ['is not JSON', '{'],
  ['is null', 'null'],
  ['is a list', '[]'],
  ['is empty', '{}'],
  ['has no texts', JSON.stringify({ size: 1, partSize: 1, parts: [1], parity: {} })],
  [
    'has an infinite number of parts',
    JSON.stringify({ size: 1, partSize: 0, parts: [DIGEST], parity: DIGEST }),
  ],
  [
    'has parts of less than nothing',
    JSON.stringify({ size: -1, partSize: -1, parts: [DIGEST], parity: DIGEST }),
  ],
] as const;

describe('a part of a delta is refused if its head', () => {
  it.each(HEADS)('%s', async (_what, text) => {
    const digest = createHash('sha256').update(text).digest('hex');
    const line = `sealift delta part 1 ${text.length} sha256:${digest}\n`.padEnd(128);
    writeFileSync(join(folder, 'x.1'), line + text);
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const { signal } = new AbortController();
    const fixed = { env: {}, redaction, isTTY: false, now: () => 0 };
    const host = { ...fixed, stdout, stderr, cwd: folder, signal };
    const exitCode = await runProgram(['apply', 'old.iso', 'x.1', '--in-place'], host);
    const answer = String(stderr.read());
    expect([exitCode, answer]).toEqual([5, expect.stringContaining('[delta.malformed]')]);
  });
});
