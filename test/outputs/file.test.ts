import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { digestOf } from '../../src/base/digest.ts';
import { readStamp } from '../../src/base/disk/file-digests.ts';
import { createFileOutput } from '../../src/outputs/file.ts';
import { pourIso, type ExtentOpener } from '../../src/pour/index.ts';
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

it.each([
  ['refused if it changes meanwhile', true],
  ['used if it stays the same', false],
])('an ISO whose bytes are taken by their record is %s', async (_verdict, isChanged) => {
  const workDir = await mkdtemp(join(tmpdir(), 'seed-'));
  const [output, seed] = [join(workDir, 'new.iso'), join(workDir, 'old.iso')];
  const context = createStageContext();
  const { layout, blobs } = makeLayout([5000]);
  const openExtent: ExtentOpener = async (extent, options) => {
    if (isChanged) await appendFile(seed, 'another process writes to it');
    return openFrom(blobs)(extent, options);
  };
  const place = { output, workDir, inputs: [], force: false };
  const recognize = () => Promise.resolve(false);
  const tools = { digests: {} as never, records: {} as never, recognize, ...context };
  try {
    await writeFile(seed, 'an ISO of an earlier build');
    const stamp = await readStamp(seed);
    if (!stamp) throw new Error('the seed has no stamp');
    const put = createFileOutput(place, tools).put({
      ...{ layout, mode: 0o644, lanes: 1, checksum: false, openExtent, sourcesOf: () => [] },
      earlier: { path: seed, extents: new Map(), isRecorded: true, stamp },
      onProgress: () => undefined,
    });
    if (isChanged) await expect(put).rejects.toMatchObject({ code: 'seed.changed' });
    else expect((await put).digest).toBeDefined();
  } finally {
    await rm(workDir, { recursive: true });
  }
});
