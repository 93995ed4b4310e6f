import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Lifecycles, readCatalog, readLifecycles } from '../../src/fbc/index.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sealift-lifecycle-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function read(...documents: readonly object[]): Promise<Lifecycles> {
  const text = documents.map((document) => JSON.stringify(document)).join('\n');
  await writeFile(join(directory, 'catalog.json'), text);
  return readLifecycles(directory, await readCatalog(directory));
}

const describeOperator = (name: string, versions: unknown): object => ({
  schema: 'io.openshift.operators.lifecycles.v1alpha1',
  package: name,
  versions,
});

const FULL = { name: 'Full support', startDate: '2026-01-01', endDate: '2026-12-31' };
const VERSION = {
  name: '2.9',
  phases: [FULL],
  platformCompatibility: [{ name: 'openshift', versions: ['4.20', '4.21'] }],
};

describe('the lifecycle metadata of a catalog', () => {
  test('is read by package, and packages without it are absent', async () => {
    const found = await read(
      { schema: 'olm.package', name: 'alpha' },
      { schema: 'olm.package', name: 'beta' },
      { schema: 'com.example.other', package: 'beta' },
      describeOperator('alpha', [VERSION, { name: '2.8', phases: [FULL] }]),
    );
    expect([...found]).toEqual([
      ['alpha', { versions: [VERSION, { name: '2.8', phases: [FULL] }] }],
    ]);
  });

  test('may be YAML, and have members that are not known yet', async () => {
    await writeFile(
      join(directory, 'catalog.yaml'),
      [
        'schema: io.openshift.operators.lifecycles.v1alpha1',
        'package: alpha',
        'tier: 1',
        'versions:',
        '  - name: "2.9"',
        '    phases:',
        '      - {name: Full support, startDate: "2026-01-01", endDate: "2026-12-31", more: true}',
      ].join('\n'),
    );
    const found = await readLifecycles(directory, await readCatalog(directory));
    expect(found.get('alpha')).toEqual({ versions: [{ name: '2.9', phases: [FULL] }] });
  });

  test('of a package that has two different documents is not used, as the console does not', async () => {
    const [one, other] = [[VERSION], [{ ...VERSION, name: '2.8' }]];
    const found = await read(describeOperator('alpha', one), describeOperator('alpha', other));
    expect(found.get('alpha')).toEqual({ problem: '2 documents contradict each other' });
  });

  test('counts once if it is written twice', async () => {
    const found = await read(describeOperator('a', [VERSION]), describeOperator('a', [VERSION]));
    expect(found.get('a')).toEqual({ versions: [VERSION] });
  });

  test.each([
    ['no list', 'soon', 'versions should be a list, but is the string "soon"'],
    [
      'a day of another form',
      [{ ...VERSION, phases: [{ ...FULL, endDate: '31.12.2026' }] }],
      'versions[0].phases[0].endDate should be',
    ],
    ['no phases', [{ name: '2.9' }], 'versions[0].phases should be a list, but is absent'],
  ])('with %s is not used, and the problem is named', async (_, versions, problem) => {
    const found = await read(describeOperator('alpha', versions));
    expect(found.get('alpha')?.problem).toContain(problem);
  });
});
