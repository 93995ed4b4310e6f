import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import { sealIso } from '../../../src/stages/5-pour/pour.ts';
import { createStageContext } from '../../support/stage-context.ts';

it('a device that was written is sealed, even if it is no longer writable', async () => {
  const workDir = await mkdtemp(join(tmpdir(), 'seal-'));
  const output = join(workDir, 'stick');
  const device = { path: '/dev/sdz', name: 'sdz', serial: '', sequence: '', size: 1 };
  const place = {
    ...{ output, workDir, inputs: [], force: false },
    device: { ...device, isReadOnly: true }, // claimDevice refuses it
  };
  const noRecords = { digests: {} as never, records: {} as never };
  const input = { place, layout: digestOf(''), report: { isOf: 'a device' } };
  try {
    await sealIso.run(input, noRecords, createStageContext());
    const report = await readFile(`${output}.report.json`, 'utf8');
    expect(JSON.parse(report)).toEqual({ isOf: 'a device' });
  } finally {
    await rm(workDir, { recursive: true });
  }
});
