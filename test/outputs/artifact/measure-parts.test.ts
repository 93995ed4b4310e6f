import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { measureParts } from '../../../src/outputs/artifact/parts.ts';
import { planParts } from '../../../src/outputs/artifact/parts.ts';

const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, at) => at % 251));
const options = { signal: new AbortController().signal, onProgress: () => undefined };

describe('an extent that is cut into several layers', () => {
  let home: string;
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'sealift-parts-'));
  });
  afterAll(() => rm(home, { recursive: true }));

  it('is checked against its digest in the index', async () => {
    const extents = [0, 1].map((at) => ({
      ...{ offset: at * bytes.length, size: bytes.length, digest: digestOf(bytes) },
    }));
    const parts = planParts(extents, 70_000);
    const good = join(home, 'good');
    await writeFile(good, Buffer.concat([bytes, bytes]));
    const measured = await measureParts(good, parts, options);
    expect(measured.parts.map(({ size }) => size)).toEqual([
      ...[70_000, 70_000, 60_000, 70_000, 70_000, 60_000],
    ]);
    const damaged = Buffer.from(bytes);
    damaged[80_000] = 255;
    const bad = join(home, 'bad');
    await writeFile(bad, Buffer.concat([bytes, damaged]));
    await expect(measureParts(bad, parts, options)).rejects.toMatchObject({
      code: 'artifact.damaged',
      expected: digestOf(bytes),
      found: digestOf(damaged),
    });
  });
});
