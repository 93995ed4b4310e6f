import { buildImage, packLayer, topOf } from './release.ts';
import type { Blob } from './payload.ts';
import type { SourceRegistry } from './source-registry.ts';

const MIB = 1024 * 1024;
const CONFIGS_LABEL = 'operators.operatorframework.io.index.configs.v1';

/**
 * Operators of the demo: versions from the oldest to the newest, and how many images each has. The names
 * are those of the example in `appliance-config.yaml`; the bytes of the images are noise.
 */
const OPERATORS = [
  { name: 'local-storage-operator', versions: ['4.20.1', '4.21.0'], images: 2 },
  { name: 'kubernetes-nmstate-operator', versions: ['4.21.0'], images: 1 },
  { name: 'demo-unused-operator', versions: ['1.0.0'], images: 1 },
] as const;

const CATALOG_REPOSITORY = 'redhat/redhat-operator-index';

/** Publishes a catalog of a few operators whose images share the release's lowest layers. */
export async function publishCatalog(
  registry: SourceRegistry,
  tools: {
    readonly makeBlob: (seed: number, size: number) => Blob;
    readonly shared: readonly Blob[];
    /** The registry's name in all references. */
    readonly host: string;
  },
): Promise<void> {
  const { makeBlob, shared, host } = tools;
  let seed = 500;
  const publish = (repository: string): string => {
    const image = buildImage([...shared, makeBlob(seed, MIB + seed)]);
    seed++;
    registry.add(repository, image);
    return `${host}/${repository}@${topOf(image).descriptor.digest}`;
  };
  const files = OPERATORS.map(({ name, versions, images }) => {
    const bundles = versions.map((version) => {
      const own = publish(`demo/${name}-bundle`);
      const related = Array.from({ length: images }, (_, at) => ({
        name: `operand-${at + 1}`,
        image: publish(`demo/${name}-operand-${at + 1}`),
      }));
      return {
        schema: 'olm.bundle',
        package: name,
        name: `${name}.v${version}`,
        image: own,
        properties: [{ type: 'olm.package', value: { packageName: name, version } }],
        relatedImages: [...related, { name: '', image: own }],
      };
    });
    const entries = versions.map((version, at) => ({
      name: `${name}.v${version}`,
      ...(at > 0 && { replaces: `${name}.v${versions[at - 1] ?? ''}` }),
    }));
    const documents = [
      { schema: 'olm.package', name, defaultChannel: 'stable' },
      { schema: 'olm.channel', package: name, name: 'stable', entries },
      ...bundles,
    ];
    const text = documents.map((document) => JSON.stringify(document, null, 2)).join('\n');
    return [`configs/${name}/catalog.json`, text] as const;
  });
  const layers = [
    await packLayer({ 'bin/opm': 'opm\n' }),
    await packLayer(Object.fromEntries(files)),
  ];
  const catalog = buildImage(layers, { [CONFIGS_LABEL]: '/configs' });
  registry.add(CATALOG_REPOSITORY, catalog, 'v4.21');
}
