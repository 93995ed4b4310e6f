import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { decodeInThread } from '../../src/base/decode/threads.ts';
import { unzstd } from '../../src/base/decode/zstd.ts';
import { readCsvTable, readYamlTable } from '../../src/table/index.ts';
import { parseIgnition } from '../../src/ignition/config.ts';
import { parseObject, scanObject, startScan } from '../../src/fbc/read/json.ts';
import { askHelper } from '../../src/registry/client/credential-helper.ts';
import { readFiles } from '../../src/registry/layers/read.ts';
import { layerOf, packLayer } from '../support/images.ts';

const { signal } = new AbortController();
let folder = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealift-hostile-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** RFC 8878: a frame without content size, of `blocks` blocks that repeat one byte 128 Ki times. */
function repeatedBlocks(blocks: number, window: number): Buffer {
  const block = Buffer.alloc(4);
  const frame = [Buffer.from('28b52ffd00', 'hex'), Buffer.of(window)];
  for (let left = blocks; left > 0; left--) {
    block.writeUIntLE((131_072 << 3) | 2 | Number(left === 1), 0, 3);
    frame.push(Buffer.from(block));
  }
  return Buffer.concat(frame);
}

const read = (bytes: Buffer): Promise<unknown> =>
  readFiles([layerOf(bytes)], () => false, { signal });

describe('a layer of zstd', () => {
  it('with a window of 128 MiB is refused, and the error names the size', async () => {
    await expect(read(repeatedBlocks(2000, (27 - 10) << 3))).rejects.toMatchObject({
      code: 'layer.window-too-large',
      exitCode: 5,
      message: expect.stringContaining('134217728') as string,
    });
  });

  it('whose 16 KB unpack to 512 MiB is refused, even if nothing is extracted', async () => {
    const start = process.cpuUsage();
    await expect(read(repeatedBlocks(4096, (20 - 10) << 3))).rejects.toMatchObject({
      code: 'layer.too-large',
    });
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1e6).toBeLessThan(10);
  });

  it('in 60,000 empty frames is not passed to the decoder frame by frame', async () => {
    const layer = Buffer.alloc(9 * 60_000, Buffer.from('28b52ffd2000010000', 'hex'));
    const start = process.cpuUsage();
    for await (const bytes of unzstd(Readable.from([layer]), signal)) {
      expect(bytes).toHaveLength(0);
    }
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1e6).toBeLessThan(3);
  });

  it('is given up if its decoder does not answer in time', async () => {
    const source = Readable.from([repeatedBlocks(4096, (20 - 10) << 3)]);
    const decoding = async () => {
      for await (const piece of decodeInThread('zstd', source, { signal, limit: 1 })) {
        expect(piece.length).toBeGreaterThan(0);
      }
    };
    await expect(decoding()).rejects.toMatchObject({ problem: 'too-slow' });
  });

  it('is given up on a signal while its decoder works', async () => {
    const stop = new AbortController();
    const source = Readable.from([repeatedBlocks(8192, (20 - 10) << 3)]);
    const decoding = async () => {
      for await (const bytes of decodeInThread('zstd', source, { signal: stop.signal })) {
        if (bytes.length > 0) stop.abort(new Error('enough'));
      }
    };
    await expect(decoding()).rejects.toThrow('enough');
  });
});

describe('a layer', () => {
  it('of gzip whose zeros are skipped is refused if there are too many', async () => {
    const header = (await packHeader()).subarray(0, 512);
    const bomb = gzipSync(Buffer.concat([header, Buffer.alloc(300 << 20)]), { level: 9 });
    await expect(read(bomb)).rejects.toThrow('unpack to more than 256.0 MiB');
  });

  it('with links that have no target is read, and only opening such a link is an error', async () => {
    const layer = await packLayer([
      ['soft', { type: 'symlink', linkname: '' }],
      ['hard', { type: 'link', linkname: '' }],
      ['a', '1'],
    ]);
    const files = await readFiles([layer], (path) => path === 'a', { signal });
    expect([...files.keys()]).toEqual(['a']);
    await expect(readFiles([layer], () => true, { signal })).rejects.toMatchObject({
      code: 'layer.file-unreadable',
    });
  });

  it('with names 1,900 directories deep is refused at the first such name', async () => {
    const layer = await packLayer([[`${'a/'.repeat(1900)}b`, '1']]);
    await expect(readFiles([layer], () => true, { signal })).rejects.toMatchObject({
      code: 'layer.path-malformed',
      message: expect.stringContaining('1901 directories deep') as string,
    });
  });

  it('with a link whose target no file system can hold is refused', async () => {
    const linkname = `/a${'/.'.repeat(3000)}/b`;
    const layer = await packLayer([['l', { type: 'symlink', linkname }]]);
    await expect(readFiles([layer], () => true, { signal })).rejects.toMatchObject({
      code: 'layer.path-malformed',
      message: expect.stringContaining('link target of 6004 bytes') as string,
    });
  });

  it('of 1,000 files of the allowed depth costs time in proportion to their names', async () => {
    const deep = (index: number) => `${`${index % 20}${'a'.repeat(12)}/`.repeat(254)}${index}`;
    const files = Array.from({ length: 1000 }, (_, index) => [deep(index), ''] as const);
    const layers = [await packLayer(files), await packLayer([['top', '']])];
    const start = process.cpuUsage();
    expect((await readFiles(layers, () => true, { signal })).size).toBe(1001);
    const { user, system } = process.cpuUsage(start);
    expect((user + system) / 1e6).toBeLessThan(4);
  });

  it('whose links lead through half a million components in total is refused', async () => {
    const linkname = '/a/..'.repeat(800);
    const links = Array.from({ length: 400 }, (_, index) => {
      return [`l${index}`, { type: 'symlink', linkname }] as const;
    });
    const layer = await packLayer([['a', { type: 'directory' }], ...links]);
    await expect(readFiles([layer], () => true, { signal })).rejects.toMatchObject({
      code: 'layer.links-too-long',
    });
  });

  it('ends the search for its files on a signal', async () => {
    const layer = await packLayer(
      Array.from({ length: 5000 }, (_, index) => [`${index}`, { type: 'symlink', linkname: 'x' }]),
    );
    const stop = new AbortController();
    let asked = 0;
    const wanted = () => {
      if (++asked === 1)
        setImmediate(() => {
          stop.abort(new Error('enough'));
        });
      return true;
    };
    await expect(readFiles([layer], wanted, { signal: stop.signal })).rejects.toThrow('enough');
    expect(asked).toBeLessThan(5000);
  });

  it('that is 20,000 times in an image is refused before it is opened', async () => {
    const layer = await packLayer([['a', '1']]);
    const layers = Array.from({ length: 20_000 }, () => layer);
    await expect(readFiles(layers, () => true, { signal })).rejects.toMatchObject({
      code: 'layer.too-many',
    });
  });
});

/** The header of a file of 8 GiB. */
async function packHeader(): Promise<Buffer> {
  const { pack } = await import('tar-stream');
  const tar = pack();
  tar.entry({ name: 'zeros', size: 8 * 1024 ** 3 - 1 });
  for await (const chunk of tar) return chunk as Buffer;
  throw new Error('tar has no header');
}

describe('a table', () => {
  it('with 650,000 columns in 3.9 MB is refused with one problem', () => {
    const header = Array.from({ length: 650_000 }, (_, index) => `c${index}`).join(',');
    const { tableProblems } = readCsvTable(`${header}\n`);
    expect(tableProblems).toEqual([
      { line: 1, problem: 'has 650000 columns, but a table may have at most 10000' },
    ]);
  });

  it('of more than 2,000,000 cells is refused while it is read, though all but one are empty', () => {
    const text = `name\n${`a${','.repeat(999)}\n`.repeat(2100)}`;
    expect(() => readCsvTable(text)).toThrow(
      expect.objectContaining({
        code: 'sites.too-large',
        message: expect.stringContaining(
          '2000001 cells or more, but may have at most 2000000',
        ) as string,
      }) as Error,
    );
  });

  it('with 10,000 quotes in one cell is refused, and with three it has one problem for the line', () => {
    expect(() => readCsvTable(`name\n${'a"'.repeat(10_000)}\n`)).toThrow(
      expect.objectContaining({
        code: 'sites.too-large',
        message: 'line 2 of the table has too many quotes in cells that do not begin with one',
      }) as Error,
    );
    const problem = 'has a quote in a cell that does not begin with one';
    expect(readCsvTable('name\na"b"c"\nd\ne"\n').rowProblems).toEqual([
      { line: 2, problem },
      { line: 4, problem },
    ]);
  });

  it('of more than 50,000 rows is refused in every format', () => {
    const tooLarge = expect.objectContaining({ code: 'sites.too-large' }) as Error;
    expect(() => readCsvTable(`name\n${'a\n'.repeat(60_000)}`)).toThrow(tooLarge);
    expect(() => readYamlTable('- a: b\n'.repeat(60_000))).toThrow(tooLarge);
  });
});

describe('a document', () => {
  it('of a catalog is refused before it is parsed if it has a million values', () => {
    const bytes = Buffer.from(`{"a":[${'{},'.repeat(1_000_000)}0]}`);
    const scan = startScan();
    expect(scanObject(scan, bytes)).toBe(true);
    expect(parseObject(scan, bytes)).toEqual({
      problem: 'has more than 1000000 values, the most that is read',
    });
  });

  it.each([
    ['a unit', { systemd: { units: [{ enabled: true }] } }, 'systemd.units.0 has no name'],
    [
      'a drop-in',
      { systemd: { units: [{ name: 'a.service', dropins: [{}] }] } },
      'systemd.units.0.dropins.0 has no name',
    ],
    ['a file', { storage: { files: [{}] } }, 'storage.files.0 has no path'],
  ])('of Ignition with %s that has no name is malformed', (_what, part, problem) => {
    const text = JSON.stringify({ ignition: { version: '3.2.0' }, ...part });
    expect(() => parseIgnition(text, 'config')).toThrow(`config is malformed: $.${problem}`);
  });

  it('of Ignition that is nested 100,000 deep is malformed', () => {
    const text = `{"ignition":{"version":"3.2.0"},"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
    expect(() => parseIgnition(text, 'config')).toThrow('config has more than 250 levels');
  });
});

describe('a credential helper', () => {
  it('that prints without end is ended, and its output is not kept in memory', async () => {
    const path = join(folder, 'docker-credential-endless');
    await writeFile(path, '#!/bin/sh\nexec yes 0123456789abcdef\n');
    await chmod(path, 0o755);
    const env = { PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    const asking = { env, redaction: createRedaction(), signal };
    await expect(askHelper('endless', 'registry.test', asking)).rejects.toMatchObject({
      code: 'tool.output-too-large',
      exitCode: 6,
    });
  });
});
