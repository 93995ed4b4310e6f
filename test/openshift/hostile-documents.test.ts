import { describe, expect, it } from 'vitest';
import { findYamlExcess } from '../../src/shape/parse-text.ts';
import { parseStartConfig } from '../../src/openshift/mirror/server.ts';
import { planExtraManifests } from '../../src/openshift/node/manifests.ts';
import { selectServed } from '../../src/openshift/node/served-kinds.ts';
import { parseImageReferences, parseReleaseMetadata } from '../../src/openshift/release/release.ts';
import { readDefinitionsOf } from '../support/node-configs.ts';
import { readArchivedSet } from '../../src/openshift/workspace/archived.ts';
import type { WorkspaceFiles } from '../../src/openshift/workspace/files.ts';
import { findUpgradePath } from '../../src/openshift/release/upgrade-path.ts';

const DIGEST = `sha256:${'a'.repeat(64)}` as const;
/** What JSON may hold and nothing can turn into a text. */
const SHAPELESS = { toString: 1, valueOf: 1 };

const metadata = (changes: object): string =>
  JSON.stringify({ kind: 'cincinnati-metadata-v0', version: '4.20.1', ...changes });

describe('a version of a payload, which ends up in scripts, labels and file names,', () => {
  it.each(['4.20.1\n', '\n4.20.1', ' 4.20.1', 'v4.20.1', '4.20.1-$(id)', '4.20', '04.20.1'])(
    'is refused as %j',
    (version) => {
      expect(() => parseReleaseMetadata(metadata({ version }))).toThrow(
        expect.objectContaining({ code: 'release.malformed', exitCode: 5 }),
      );
    },
  );

  it.each(['4.99.99999', '4.20.1-0.nightly-arm64-2026-05-01-000000', '4.20.1+multi'])(
    'is accepted as %s',
    (version) => {
      expect(parseReleaseMetadata(metadata({ version })).version).toBe(version);
    },
  );

  it.each([
    ['a line break', '4.19.1\n9.9.9 evil.example.com/a signed 4.20.1'],
    ['a comma', '4.19.1,4.18.1'],
    ['no text', SHAPELESS],
  ])('is refused with %s if it is one that may be updated to the payload', (_, previous) => {
    expect(() => parseReleaseMetadata(metadata({ previous: [previous] }))).toThrow(
      expect.objectContaining({ code: 'release.malformed' }),
    );
  });
});

describe('JSON whose members have other types than they should', () => {
  it('is refused as the description of a payload', () => {
    for (const parse of [parseImageReferences, parseReleaseMetadata]) {
      const texts = [
        JSON.stringify({ kind: SHAPELESS, apiVersion: SHAPELESS }),
        `{"kind":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
      ];
      for (const text of texts) {
        expect(() => parse(text)).toThrow(expect.objectContaining({ code: 'release.malformed' }));
      }
    }
  });

  it.each([
    { architecture: SHAPELESS },
    { config: { Entrypoint: [SHAPELESS] } },
    { config: { Cmd: [[['x']]] } },
    { config: { Labels: ['docker-registry'] } },
  ])('is refused as the config of an image, as Podman refuses it: %j', (changes) => {
    const reference = { registry: 'a.example.com', repository: 'b' };
    const text = JSON.stringify({ architecture: 'amd64', ...changes });
    expect(() => parseStartConfig(Buffer.from(text), reference)).toThrow(
      expect.objectContaining({ code: 'registry-image.malformed', exitCode: 5 }),
    );
  });

  it('is read as the config of an image if Go wrote null for what is absent', () => {
    const reference = { registry: 'a.example.com', repository: 'b' };
    const config = { Entrypoint: null, Cmd: ['serve'], Labels: null };
    const text = JSON.stringify({ Architecture: 'amd64', config, history: null });
    expect(parseStartConfig(Buffer.from(text), reference)).toEqual({
      architecture: 'amd64',
      command: ['serve'],
      labels: {},
    });
  });
});

describe('a payload with a hundred thousand components', () => {
  it('is read in linear time', () => {
    const tags = Array.from({ length: 100_000 }, (_, index) => ({
      name: `c${index}`,
      from: { kind: 'DockerImage', name: `q.io/a/b@${DIGEST}` },
    }));
    const text = JSON.stringify({
      kind: 'ImageStream',
      apiVersion: 'image.openshift.io/v1',
      metadata: { name: '4.20.1' },
      spec: { tags },
    });
    expect(parseImageReferences(text).components).toHaveLength(100_000);
  });
});

describe('the definitions of a payload', () => {
  const HEAD = 'kind: CustomResourceDefinition\nspec:\n';
  const parse = (text: string): unknown =>
    readDefinitionsOf(new Map([['release-manifests/a.yaml', Buffer.from(text)]]));
  const refused = expect.objectContaining({
    code: 'release.manifest-unreadable',
    exitCode: 5,
  }) as Error;

  it.each([
    ['one line of 30 MB', `CustomResourceDefinition ${'---'.repeat(1e7)}`],
    [
      'a mapping of 300,000 keys',
      HEAD + Array.from({ length: 3e5 }, (_, i) => `  k${i}: 1\n`).join(''),
    ],
    ['a list of 20 MB', `${HEAD}  versions:\n${'  - name: v1\n    served: true\n'.repeat(7e5)}`],
    ['merges of merges', `${HEAD}  m: &m0 {}\n${mergeAll(5000)}`],
    [
      'aliases of aliases',
      `${HEAD}  a: &a [x, x, x, x, x, x, x, x, x, x, x]\n${unfold(['a', 'b', 'c', 'd', 'e', 'f'])}`,
    ],
  ])('are refused for %s', (_, text) => {
    expect(() => parse(text)).toThrow(refused);
  });
});

const mergeAll = (count: number): string =>
  Array.from({ length: count }, (_, i) => `  m${i + 1}: &m${i + 1} {<<: *m${i}, k${i}: 1}\n`).join(
    '',
  );

const unfold = (names: readonly string[]): string =>
  names
    .slice(1)
    .map((name, index) => {
      const list = Array.from({ length: 10 }, () => `*${names[index] ?? ''}`).join(', ');
      return `  ${name}: &${name} [${list}]\n`;
    })
    .join('');

describe('a manifest of the configuration', () => {
  const plan = (text: string): unknown =>
    planExtraManifests([{ name: 'a.yaml', text }], { useDefaultSourceNames: false });

  it.each([
    ['an alias without its anchor', 'kind: *x\n'],
    ['a merge of a number', 'kind: X\n<<: 1\n'],
    [
      'aliases of aliases',
      `kind: X\na:\n  a: &a [x, x, x, x, x, x, x, x, x, x, x]\n${unfold(['a', 'b', 'c', 'd', 'e', 'f'])}`,
    ],
    ['a key twice', 'kind: X\ndata:\n  a: 1\n  a: 2\n'],
    ['more values than anyone writes', `kind: X\nlist:\n${'- a: b\n'.repeat(5e5)}`],
  ])('is refused for %s', (_, text) => {
    expect(() => plan(text)).toThrow(
      expect.objectContaining({ code: 'manifest.malformed', exitCode: 3 }),
    );
  });

  it.each(['__proto__', 'constructor', 'toString'])(
    'of apiVersion %s has a kind that is not served',
    (name) => {
      const given = [{ name: 'a.yaml', text: `apiVersion: ${name}\nkind: X\n` }];
      const { warnings } = selectServed(
        { given, generated: [] },
        { version: '4.20.1', definitions: [] },
      );
      expect(warnings).toEqual([expect.stringContaining(`does not serve ${name} X`)]);
    },
  );
});

describe('a YAML text of one long line', () => {
  it('needs no stack frame for each of its characters', () => {
    expect(findYamlExcess(`a: "${'b'.repeat(3e7)}"`)).toBeUndefined();
  });
});

describe('an update graph', () => {
  const nodes = Array.from({ length: 3000 }, (_, index) => ({
    version: `4.20.${index}`,
    payload: `q.io/a/b@${DIGEST}`,
  }));
  const edge = (from: number, to: number) => ({ from: `4.20.${from}`, to: `4.20.${to}` });

  it('of thousands of releases in a row has a path through all of them', () => {
    const edges = nodes.slice(1).map((_, index) => edge(index, index + 1));
    const graph = { nodes, edges, conditionalEdges: [] };
    expect(findUpgradePath(graph, '4.20.0', '4.20.2999')).toHaveLength(2999);
  });

  it('with a cycle of updates and unknown releases has no path beyond them', () => {
    const edges = [
      edge(0, 1),
      edge(1, 0),
      edge(1, 1),
      edge(1, 9999),
      { from: '__proto__', to: 'constructor' },
    ];
    const graph = { nodes, edges, conditionalEdges: [] };
    expect(findUpgradePath(graph, '4.20.0', '4.20.9999')).toBeUndefined();
    expect(findUpgradePath(graph, '__proto__', 'constructor')).toBeUndefined();
  });
});

describe('an image set configuration in archives of oc-mirror', () => {
  const colons = `oci:${':'.repeat(500_000)}`;
  it.each([
    [`${colons}/`, colons],
    [`oci:${'/'.repeat(500_000)}x`, 'x'],
    ['oci:/a/b//', 'b'],
  ])('is read in linear time, whatever its catalogs are called', (catalog, repository) => {
    const text = JSON.stringify({ mirror: { operators: [{ catalog, full: true }] } });
    const files = {
      list: (path: string) => (path === '' ? ['isc_1'] : []),
      read: () => ({ bytes: Buffer.from(text), name: 'isc_1' }),
    };
    const [found] = readArchivedSet(files as unknown as WorkspaceFiles, () => 0).catalogs;
    expect(found?.repository === repository).toBe(true);
  });
});
