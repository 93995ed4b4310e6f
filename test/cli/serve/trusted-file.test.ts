import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { requireTrustedFile } from '../../../src/cli/serve/trusted-file.ts';
import { claimDataDirectory } from '../../../src/service/state/data-directory.ts';
import { makeDirectory } from '../../../src/base/disk/files.ts';

const directory = mkdtempSync(join(tmpdir(), 'trusted-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

it.each([
  [0o600, undefined],
  [0o644, undefined],
  [0o660, 'service.key-shared'],
  [0o666, 'service.key-shared'],
])('a key file that others can write is refused: mode %i', (mode, code) => {
  const path = join(directory, `key-${mode}`);
  writeFileSync(path, 'x');
  chmodSync(path, mode);
  symlinkSync(path, `${path}.link`);
  for (const name of [path, `${path}.link`]) {
    const check = (): void => {
      requireTrustedFile('--auth-keys', name);
    };
    if (code === undefined) check();
    else expect(check).toThrow(expect.objectContaining({ code }));
  }
});

it('a key file that is not there is left to its reader', () => {
  requireTrustedFile('--auth-keys', join(directory, 'missing'));
});

it.each([
  [0o700, undefined, 0],
  [0o755, undefined, 0],
  [0o2775, undefined, 1],
  [0o777, 'service.data-shared', 0],
])(
  'a folder of the service that others can write is refused: mode %i',
  async (mode, code, count) => {
    const data = join(directory, `data-${mode}`);
    await makeDirectory(data);
    chmodSync(data, mode);
    const warnings: string[] = [];
    const claiming = claimDataDirectory(data, (message) => warnings.push(message));
    if (code === undefined) await claiming;
    else await expect(claiming).rejects.toMatchObject({ code, exitCode: 7 });
    expect(warnings).toHaveLength(count);
  },
);

it.each(['records', 'cache', 'overlays'])(
  'a folder below it that others could have written, or a link, is refused: %s',
  async (name) => {
    const data = join(directory, `below-${name}`);
    await makeDirectory(join(data, name));
    chmodSync(join(data, name), 0o775);
    const refused = { code: 'service.data-shared' };
    await expect(claimDataDirectory(data, () => undefined)).rejects.toMatchObject(refused);
    rmSync(join(data, name), { recursive: true });
    symlinkSync(directory, join(data, name));
    await expect(claimDataDirectory(data, () => undefined)).rejects.toMatchObject(refused);
  },
);
