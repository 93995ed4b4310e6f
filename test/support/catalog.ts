import type { Digest } from '../../src/base/digest.ts';
import { CONFIGS_LABEL } from '../../src/openshift/catalog/configs.ts';
import type { ImageRegistry } from './image-registry.ts';
import { buildIndex, type TestImage } from './images.ts';
import { buildLayeredImage } from './release.ts';

/** A document of a file-based catalog. */
export type TestDocument = Readonly<Record<string, unknown>> & { readonly schema: string };

export type TestOperator = {
  readonly name: string;
  /** Channels, each with versions from the oldest to the newest, which is its head. */
  readonly channels: Readonly<Record<string, readonly string[]>>;
  readonly defaultChannel?: string;
  /** Paths of the images that every bundle needs besides its own; default one. */
  readonly images?: readonly string[];
  /** Documents of other schemas. */
  readonly others?: readonly TestDocument[];
};

/** A small image that differs from all with another name, in the repositories of an operator. */
export const buildStandIn = (name: string, architecture = 'amd64'): Promise<TestImage> =>
  buildLayeredImage([[['etc/os-release', 'NAME=test\n']], [['usr/bin/program', name]]], {
    architecture,
  });

/** What a tag of the image would name. */
export const topDigest = ({ manifests: [top] }: TestImage): Digest => {
  if (top === undefined) throw new Error('an image has a manifest');
  return top.descriptor.digest;
};

export type OperatorWorld = {
  readonly registry: ImageRegistry;
  /** Host that references name; the registry may stand in for it. */
  readonly host: string;
};

/** Makes every image of an operator, and the documents that name them by digest. */
export async function makeOperator(
  { registry, host }: OperatorWorld,
  operator: TestOperator,
): Promise<readonly TestDocument[]> {
  const { name, channels, images = [`${name}/operand`] } = operator;
  const versions = [...new Set(Object.values(channels).flat())];
  const add = async (path: string, version: string): Promise<string> => {
    const image = await buildStandIn(`${path} ${version}`);
    registry.add(path, image);
    return `${host}/${path}@${topDigest(image)}`;
  };
  const bundles = await Promise.all(
    versions.map(async (version): Promise<TestDocument> => {
      const own = await add(`${name}/${name}-bundle`, version);
      const related = await Promise.all(
        images.map(async (path) => ({ name: path, image: await add(path, version) })),
      );
      return {
        schema: 'olm.bundle',
        package: name,
        name: `${name}.v${version}`,
        image: own,
        properties: [{ type: 'olm.package', value: { packageName: name, version } }],
        relatedImages: [...related, { name: '', image: own }],
      };
    }),
  );
  return [
    {
      schema: 'olm.package',
      name,
      defaultChannel: operator.defaultChannel ?? Object.keys(channels)[0] ?? '',
    },
    ...Object.entries(channels).map(([channel, list]) => makeChannel(name, channel, list)),
    ...bundles,
    ...(operator.others ?? []),
  ];
}

const makeChannel = (
  operator: string,
  name: string,
  versions: readonly string[],
): TestDocument => ({
  schema: 'olm.channel',
  package: operator,
  name,
  entries: versions.map((version, at) => ({
    name: `${operator}.v${version}`,
    ...(at > 0 && { replaces: `${operator}.v${versions[at - 1] ?? ''}` }),
  })),
});

/** Files of a catalog below `/configs`: text, or documents to be written one after another. */
export type CatalogFiles = Readonly<Record<string, string | readonly TestDocument[]>>;

/**
 * Puts a catalog image into the registry: a layer with `opm` and its cache, one with the files; for
 * each architecture, in an index when there are several.
 */
export async function addCatalog(
  registry: ImageRegistry,
  repository: string,
  options: {
    readonly tag: string;
    readonly files: CatalogFiles;
    readonly architectures?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
  },
): Promise<Digest> {
  const { tag, files, architectures = ['amd64'] } = options;
  const configs = Object.entries(files).map(
    ([path, content]) => [`configs/${path}`, formatFile(content)] as const,
  );
  const build = (architecture: string): Promise<TestImage> =>
    buildLayeredImage(
      [
        [
          ['bin/opm', `opm of ${architecture}`],
          ['tmp/cache/pogreb.v1/digest', 'stale'],
        ],
        configs,
      ],
      {
        architecture,
        config: {
          Entrypoint: ['/bin/opm'],
          Cmd: ['serve', '/configs', '--cache-dir=/tmp/cache'],
          Labels: options.labels ?? { [CONFIGS_LABEL]: '/configs' },
        },
      },
    );
  const images = await Promise.all(architectures.map(build));
  const [only] = images;
  const image =
    images.length === 1 && only
      ? only
      : buildIndex(
          images.map((one, at) => [{ os: 'linux', architecture: architectures[at] ?? '' }, one]),
        );
  registry.add(repository, image, tag);
  return topDigest(image);
}

const formatFile = (content: string | readonly TestDocument[]): string =>
  typeof content === 'string'
    ? content
    : content.map((document) => JSON.stringify(document, null, 4)).join('\n');
