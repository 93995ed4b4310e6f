import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findPublishedDigest } from '../../src/media/published-digest.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sealift-published-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true, force: true });
});

describe('a checksum beside an ISO', () => {
  const hex = 'ab'.repeat(32);

  async function find(text: string) {
    const iso = join(directory, 'copy.iso');
    writeFileSync(`${iso}.sha256`, text);
    const warnings: string[] = [];
    const digest = await findPublishedDigest(iso, (message) => void warnings.push(message));
    return { digest, warnings };
  }

  it('is taken if it names the ISO', async () => {
    const text = `${'cd'.repeat(32)}  other.iso\n${hex} *copy.iso\n`;
    expect(await find(text)).toEqual({ digest: `sha256:${hex}`, warnings: [] });
  });

  it('is refused if it names two digests of one ISO, in any order', async () => {
    for (const order of [['ab', 'cd'] as const, ['cd', 'ab'] as const]) {
      const text = order.map((pair) => `${pair.repeat(32)}  copy.iso\n`).join('');
      await expect(find(text)).rejects.toMatchObject({ code: 'verify.no-digest' });
    }
  });

  it('says whose checksum it is if it was copied together with an ISO that got a new name', async () => {
    expect(await find(`${hex}  rhcos.iso\n`)).toEqual({
      digest: undefined,
      warnings: [
        'copy.iso.sha256 has the checksum of "rhcos.iso", not of "copy.iso": if this ISO had that name, give it with --sha256',
      ],
    });
  });
});
