import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { createFileOutput } from '../../src/outputs/file.ts';
import { pourIso } from '../../src/pour/index.ts';
import { makeLayout, openFrom } from '../support/pour-layout.ts';
import { createStageContext } from '../support/stage-context.ts';

it('a device that was written is sealed, even if it is no longer writable', async () => {
  const workDir = await mkdtemp(join(tmpdir(), 'seal-'));
  const path = join(workDir, 'stick');
  const device = { path: '/dev/sdz', name: 'sdz', serial: '', sequence: '', size: 1 };
  const place = {
    ...{ output: path, workDir, inputs: [], force: false },
    device: { ...device, isReadOnly: true }, // claimDevice refuses it
  };
  const { layout, blobs } = makeLayout([1]);
  const pour = { layout, openExtent: openFrom(blobs) };
  const recognize = () => Promise.resolve(false);
  const noRecords = { digests: {} as never, records: {} as never };
  const output = createFileOutput(place, { ...noRecords, recognize, ...createStageContext() });
  try {
    await expect(output.claim()).rejects.toMatchObject({ code: 'device.read-only' });
    await pourIso({ ...pour, output: path, lanes: 1, signal: new AbortController().signal }); // as to a device
    await output.seal({ layout: digestOf(''), report: { isOf: 'a device' } });
    const report = await readFile(`${path}.report.json`, 'utf8');
    expect(JSON.parse(report)).toEqual({ isOf: 'a device' });
  } finally {
    await rm(workDir, { recursive: true });
  }
});
