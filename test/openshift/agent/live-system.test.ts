import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { formatCauses } from '../../../src/iso/index.ts';
import { decodeConfigArchive } from '../../../src/openshift/agent/live-system.ts';

test('a configuration that is not an archive is refused with its reason once', async () => {
  const bytes = gzipSync(Buffer.alloc(512, 'x'));
  const error: unknown = await decodeConfigArchive(bytes).catch((error: unknown) => error);
  expect(formatCauses(error as Error)).toBe(
    '/config.gz is not a newc archive: no newc header at byte 0 of the archive',
  );
});
