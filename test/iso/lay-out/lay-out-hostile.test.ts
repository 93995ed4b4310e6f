import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf } from '../../../src/base/digest.ts';
import type { TreeFile } from '../../../src/iso/extent.ts';
import { layOutIso, type LayoutOptions } from '../../../src/iso/lay-out/lay-out.ts';
import { scanBaseIso, type BaseImage } from '../../../src/iso/lay-out/scan.ts';
import { makeTestDirectory } from '../../support/iso.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';

let directory: string;
let base: BaseImage;

beforeAll(async () => {
  directory = await makeTestDirectory();
  const path = join(directory, 'base.iso');
  await writeFile(path, makeTinyIso());
  base = await scanBaseIso(path);
});

afterAll(() => rm(directory, { recursive: true, force: true }));

const layOut = (options: Partial<LayoutOptions>) => (): unknown =>
  layOutIso({ base, files: [], remove: [], patches: [], epoch: 0, ...options });

const file = (path: string, text = 'x'): TreeFile => ({
  path,
  content: { kind: 'bytes', bytes: Buffer.from(text) },
});

const blob = (path: string, size: number): TreeFile => ({
  path,
  content: { kind: 'blob', digest: digestOf('blob'), size },
});

describe('a layout is refused', () => {
  it('when a new file would take the place of a directory', () => {
    expect(layOut({ files: [file('/sub')] })).toThrow(
      expect.objectContaining({ code: 'layout.conflict', exitCode: 5 }),
    );
  });

  it('when a file of the base is at the path of a new directory', () => {
    expect(layOut({ files: [file('/readme.txt/below')] })).toThrow(
      'file /readme.txt/below cannot be added: "readme.txt" in its path is already a file',
    );
  });

  it('when a name is longer than Linux reads, though ISO 9660 could hold it', () => {
    expect(layOut({ files: [file(`/${'n'.repeat(253)}`)] })).not.toThrow();
    expect(layOut({ files: [file(`/${'n'.repeat(254)}`)] })).toThrow(
      expect.objectContaining({ code: 'layout.name-too-long', exitCode: 3 }),
    );
    expect(layOut({ files: [file(`/${'ü'.repeat(127)}/x`)] })).toThrow('has 254 bytes');
  });

  it('when one digest comes with two sizes', () => {
    expect(layOut({ files: [blob('/a', 10), blob('/b', 11)] })).toThrow(
      expect.objectContaining({ code: 'layout.size-conflict', expected: '10', found: '11' }),
    );
  });

  it('when it would end after the last sector that has a number', () => {
    expect(layOut({ files: [blob('/a', 2 ** 43)] })).toThrow(
      expect.objectContaining({ code: 'layout.too-large', exitCode: 3 }),
    );
  });
});

describe('a layout is a bug of the caller', () => {
  it('when a path is relative, has dots in it, or comes twice', () => {
    for (const path of ['relative', '/a//b', '/a/../b', '/', '/a/.']) {
      expect(layOut({ files: [file(path)] })).toThrow('not absolute and plain');
    }
    expect(layOut({ files: [file('/a'), file('/a', 'y')] })).toThrow('added twice');
  });

  it('when a patch is outside the base, or in bytes that the scan did not keep', () => {
    const bytes = Uint8Array.of(1);
    expect(layOut({ patches: [{ offset: base.size, bytes }] })).toThrow('is not in');
    const pieces = base.pieces.map(({ offset, size, digest, paths }) => ({
      offset,
      size,
      digest,
      paths,
    }));
    const patches = [{ offset: 22 * 2048, bytes }];
    expect(layOut({ base: { ...base, pieces }, patches })).toThrow('was not kept by the scan');
  });

  it('when the index comes out longer the second time', () => {
    let length = 10;
    const render = (): Uint8Array => new Uint8Array((length *= 1000));
    expect(layOut({ index: { path: '/index', render } })).toThrow('not at most');
  });
});
