import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addCatalog, type CatalogFiles, type TestDocument } from '../support/catalog.ts';
import { createLiveWorld, type LiveWorld, type Outcome } from '../support/live-iso.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid'].map((tool) => requireTool(tool)).every(Boolean);

const IMAGE = `registry.example.com/op/op-bundle@sha256:${'a'.repeat(64)}`;

/** Of entries that are the name of a bundle and, after a space, of what it replaces. */
const channel = (...entries: readonly string[]): TestDocument => ({
  schema: 'olm.channel',
  package: 'op',
  name: 'stable',
  entries: entries.map((entry) => {
    const [name, replaces] = entry.split(' ');
    return { name, ...(replaces !== undefined && { replaces }) };
  }),
});

type BundleOptions = {
  readonly version?: string;
  readonly images?: readonly string[];
  readonly properties?: readonly object[];
};

const bundle = ({ version = '1.0.0', images = [], properties }: BundleOptions): TestDocument => ({
  schema: 'olm.bundle',
  package: 'op',
  name: `op.v${version}`,
  image: IMAGE,
  properties: properties ?? [{ type: 'olm.package', value: { packageName: 'op', version } }],
  relatedImages: images.map((image) => ({ name: 'operand', image })),
});

const PACKAGE: TestDocument = { schema: 'olm.package', name: 'op', defaultChannel: 'stable' };
const SOUND = [PACKAGE, channel('op.v1.0.0'), bundle({})];
const TWO_HEADS = [
  ...[PACKAGE, channel('op.v1.0.0', 'op.v1.1.0')],
  ...['1.0.0', '1.1.0'].map((version) => bundle({ version })),
];

/** The discard service, which nothing listens for. */
const CLOSED_PORT = 9;

describe.skipIf(!hasTools)('a catalog that is broken', () => {
  let world: LiveWorld;
  beforeAll(async () => {
    world = await createLiveWorld();
  }, 60_000);
  afterAll(() => world.close());

  /** Plans with one catalog for each, `broken/<number>:v1`; `selections` are lines of YAML. */
  async function plan(
    catalogs: readonly CatalogFiles[],
    selections: readonly string[] = [],
  ): Promise<Outcome> {
    for (const [at, files] of catalogs.entries()) {
      await addCatalog(world.registry, `broken/${at}`, { tag: 'v1', files });
    }
    return planNamed(
      catalogs.map((_, at) => `${world.registry.host}/broken/${at}:v1`),
      selections,
    );
  }

  async function planNamed(
    names: readonly string[],
    selections: readonly string[] = [],
  ): Promise<Outcome> {
    await world.writeConfig(
      'operators:',
      ...names.map((name, at) => {
        const packages = selections[at];
        return `  - {catalog: "${name}"${packages === undefined ? '' : `, packages: ${packages}`}}`;
      }),
    );
    return world.run('plan', '--retry-for', '0s');
  }

  it('is reported with the labels that it has if its image lacks the label', async () => {
    await addCatalog(world.registry, 'broken/plain', {
      tag: 'v1',
      files: { 'op/catalog.json': SOUND },
      labels: { vendor: 'Someone' },
    });
    const { exitCode, stderr } = await planNamed([`${world.registry.host}/broken/plain:v1`]);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(
      /\/broken\/plain:v1 \(linux\/amd64\) is not a file-based catalog: .*no label/,
    );
    expect(stderr).toContain('this one has vendor');
  });

  it.each([
    [
      'a bundle without a version',
      [PACKAGE, channel('op.v1.0.0'), bundle({ properties: [] })],
      ['bundle "op.v1.0.0" in package "op" has no package property'],
    ],
    [
      'a cycle',
      [
        ...[PACKAGE, channel('op.v1.0.0 op.v1.1.0', 'op.v1.1.0 op.v1.0.0', 'op.v1.2.0 op.v1.1.0')],
        ...['1.0.0', '1.1.0', '1.2.0'].map((version) => bundle({ version })),
      ],
      ['package "op" channel "stable": detected a cycle'],
    ],
    [
      'a channel with two heads',
      TWO_HEADS,
      ['package "op" channel "stable": multiple channel heads found: [op.v1.0.0 op.v1.1.0]'],
    ],
    [
      'an image without tag or digest and one on a disk',
      [PACKAGE, channel('op.v1.0.0'), bundle({ images: ['example.com/op/app', 'oci:///var/app'] })],
      [
        'package "op": bundle "op.v1.0.0": error parsing image example.com/op/app: tag and digest',
        'package "op": bundle "op.v1.0.0": invalid image: oci:///var/app',
      ],
    ],
  ])('by %s is reported with the place of the mistake', async (_what, documents, expected) => {
    const { exitCode, stderr } = await plan([{ 'op/catalog.json': documents }]);
    expect(exitCode).toBe(3);
    for (const text of expected) expect(stderr).toContain(text);
    expect(stderr).toContain('/broken/0:v1');
  });

  it('in one of its files is reported with file, document and byte, next to the mistakes of another', async () => {
    const first = JSON.stringify(PACKAGE);
    const { exitCode, stderr } = await plan([
      { 'op/catalog.json': `${first}\n{"schema": "olm.bundle", }`, 'else/catalog.json': SOUND },
      { 'op/catalog.json': TWO_HEADS },
    ]);
    expect(exitCode).toBe(3);
    const at = `op/catalog.json: document 2 at byte ${first.length + 1}`;
    expect(stderr).toMatch(new RegExp(`/broken/0:v1 has a problem:\\n *${at}: is not valid JSON`));
    expect(stderr).toContain(
      '/broken/1:v1": package "op" channel "stable": multiple channel heads',
    );
  });

  it('is reported by the commands that study it, too', async () => {
    await addCatalog(world.registry, 'broken/0', {
      tag: 'v1',
      files: { 'op/catalog.json': '{"schema": "olm.bundle", }' },
    });
    await world.writeConfig();
    for (const command of ['list', 'show']) {
      const name = `${world.registry.host}/broken/0:v1`;
      const config = ['--config', 'appliance-config.yaml'];
      const { exitCode, stderr } = await world.run('catalog', command, name, ...config);
      expect(exitCode).toBe(3);
      expect(stderr).toContain('op/catalog.json: document 1 at byte 0: is not valid JSON');
    }
  });

  it('without its default channel is reported with the channels to choose from', async () => {
    const others = ['fast', 'candidate'].map((name) => ({ ...channel('op.v1.0.0'), name }));
    const { exitCode, stderr } = await plan(
      [{ 'op/catalog.json': [...SOUND, ...others] }],
      ['[{name: op, channels: [{name: fast}, {name: candidate}]}]'],
    );
    expect(exitCode).toBe(3);
    expect(stderr).toContain('the default channel "stable" was filtered out');
    expect(stderr).toContain('hint: set defaultChannel of package "op" to one of: fast, candidate');
  });

  it('does not hide a mistake in the selection of another if it is out of reach', async () => {
    await addCatalog(world.registry, 'broken/sound', {
      tag: 'v1',
      files: { 'op/catalog.json': SOUND },
    });
    const { exitCode, stderr } = await planNamed(
      [`127.0.0.1:${CLOSED_PORT}/gone/index:v1`, `${world.registry.host}/broken/sound:v1`],
      ['[{name: op}]', '[{name: opp}]'],
    );
    expect(exitCode).toBe(4);
    expect(stderr).toContain(`the connection to 127.0.0.1:${CLOSED_PORT} failed: ECONNREFUSED`);
    expect(stderr).toContain('"opp" is not in the catalog; did you mean "op"?');
  });
});
