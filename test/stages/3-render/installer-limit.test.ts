import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Secret } from '../../../src/base/secret.ts';
import { createFileDigests } from '../../../src/base/disk/file-digests.ts';
import { runInstaller } from '../../../src/stages/3-render/run-installer.ts';
import { createStageContext } from '../../support/stage-context.ts';

const SECRET = '{"auths":{"a.example":{"auth":"c2VjcmV0OnNlY3JldA=="}}}';

it('an installer past its time limit ends with everything that it started, and no secret is shown', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-limit-'));
  try {
    const [installer, pid] = [join(directory, 'openshift-install'), join(directory, 'pid')];
    const script = `cat cluster-manifests/pull-secret.yaml >&2\nsleep 600 & echo $! > ${pid}\nwait`;
    await writeFile(installer, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    const digests = createFileDigests(join(directory, 'digests'));
    const file = await digests.identify(installer);
    if (!file) throw new Error('the installer was just written');
    const path = 'cluster-manifests/pull-secret.yaml';
    const error = await runInstaller
      .run(
        { installer: file, args: [], files: [{ path, text: new Secret(SECRET) }] },
        { workDir: join(directory, 'work'), installerLimit: 1500, digests },
        createStageContext(),
      )
      .catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'tool.timeout', exitCode: 6 });
    expect(String(error)).not.toContain('c2VjcmV0');
    expect(await readdir(join(directory, 'work'))).toEqual([]);
    const grandchild = `/proc/${(await readFile(pid, 'utf8')).trim()}`;
    await expect.poll(() => isRunning(grandchild)).toBe(false);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});

/** A process that nobody has waited for yet is a zombie, and runs no more. */
async function isRunning(process: string): Promise<boolean> {
  if (!existsSync(process)) return false;
  const status = await readFile(`${process}/status`, 'utf8').catch(() => 'State:\tX');
  return !/^State:\t[ZX]/m.test(status);
}
