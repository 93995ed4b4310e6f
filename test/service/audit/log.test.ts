import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifyAuditLog } from '../../../src/service/audit/verify.ts';
import { mayMount } from '../../support/may-mount.ts';
import { API, PULL_SECRET, startService } from '../../support/service.ts';

describe.skipIf(!mayMount())('an audit log on a full disk', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sealift-audit-full-'));
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', folder]);
  });
  afterAll(() => {
    execFileSync('umount', [folder]);
    rmSync(folder, { recursive: true });
  });

  it('has changes refused, reading goes on, and what was made is written once there is room', async () => {
    const file = join(folder, 'audit.log');
    const service = await startService({ audit: { file, settings: '' } });
    const create = () =>
      service.call('POST', `${API}/v2/infra-envs`, {
        body: { name: 'edge', pull_secret: PULL_SECRET },
      });
    const made = await create();
    expect(made.status).toBe(201);
    await writeFile(join(folder, 'ballast'), Buffer.alloc(1 << 20)).catch(() => undefined);
    // The rest of the last page of the file takes some entries.
    const answers: number[] = [];
    for (let at = 0; at < 12; at += 1) answers.push((await create()).status);
    expect(answers.at(-1)).toBe(503);
    const one = `${API}/v2/infra-envs/${String(made.body['id'])}`;
    expect((await service.call('GET', one)).status).toBe(200);
    expect((await service.call('DELETE', one)).status).toBe(503);
    expect((await service.call('GET', one)).status).toBe(200);
    await rm(join(folder, 'ballast'));
    expect((await service.call('DELETE', one)).status).toBe(204);
    const list = (await service.call('GET', `${API}/v2/infra-envs`)).text;
    await service.close();
    const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
    const created = lines.filter((line) => line.includes('"infra_env.create"'));
    // One was made when the disk was found to be full, answered 503, and is written all the same.
    const successes = answers.filter((status) => status === 201).length + 1;
    expect(created).toHaveLength(successes + 1);
    expect(JSON.parse(list)).toHaveLength(successes);
    await verifyAuditLog([file]);
    expect(service.warnings.filter((text) => text.includes('cannot be written'))).toHaveLength(1);
  });
});
