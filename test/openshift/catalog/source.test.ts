import { describe, expect, it } from 'vitest';
import { parseCatalogSource } from '../../../src/openshift/catalog/source.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

describe('the name of a catalog', () => {
  it.each([
    ['quay.io/ocp/index:v4.18', { registry: 'quay.io', repository: 'ocp/index', tag: 'v4.18' }],
    [
      `localhost:5000/index@${DIGEST}`,
      { registry: 'localhost:5000', repository: 'index', digest: DIGEST },
    ],
  ])('may be the reference of an image: %s', (text, reference) => {
    expect(parseCatalogSource(text, '/base')).toEqual({ kind: 'image', reference });
  });

  it.each([
    ['file:catalog', '/base/catalog'],
    ['file:../catalog', '/catalog'],
    ['file:/abs/catalog/', '/abs/catalog'],
    ['file:///abs/with:colon', '/abs/with:colon'],
  ])('may be a directory, relative to the file that names it: %s', (text, path) => {
    expect(parseCatalogSource(text, '/base')).toEqual({ kind: 'directory', path });
  });

  it.each([
    ['oci:layout', { path: '/base/layout' }],
    ['oci:layout:v4.18', { path: '/base/layout', tag: 'v4.18' }],
    ['oci:///abs/layout:v4.18', { path: '/abs/layout', tag: 'v4.18' }],
    ['oci:/abs:odd/layout', { path: '/abs:odd/layout' }],
  ])('may be an OCI layout, with a tag after the last colon: %s', (text, rest) => {
    expect(parseCatalogSource(text, '/base')).toEqual({ kind: 'oci', ...rest });
  });

  it.each([
    ['', 'names no registry'],
    ['index:v4.18', 'names no registry'],
    ['quay.io/ocp/index', 'neither tag nor digest'],
    ['docker://quay.io/ocp/index:v4.18', 'is not a valid registry host'],
    ['file:', 'names no directory'],
    ['oci::v4.18', 'names no directory'],
    ['oci:layout:', 'its tag is empty'],
    ['file://host/catalog', 'read from this machine'],
    ['file:a\0b', 'names no directory'],
  ])('is refused with the possible forms in the hint: %j', (text, reason) => {
    expect(() => parseCatalogSource(text, '/base')).toThrow(
      expect.objectContaining({
        code: 'catalog.reference',
        message: expect.stringContaining(reason) as string,
        hint: expect.stringContaining('oci:DIRECTORY') as string,
      }),
    );
  });
});
