import { createHash } from 'node:crypto';

/** An operator to write down: what does not matter for its size is made from its name. */
export type GeneratedOperator = {
  readonly name: string;
  /** Bundles, from 1.0.0 to 1.n-1.0; every channel ends with the newest. */
  readonly versions: number;
  /** References of the images that a bundle needs, its own first. */
  readonly listImages: (version: number) => readonly string[];
};

/** How many versions a channel goes back, as a share of all. */
const CHANNELS = { 'stable': 1, 'stable-v1': 0.75, 'candidate': 0.5, 'fast': 0.25 };

const WORDS =
  'the operator installs upgrades and watches a service on every node that the cluster has "as is"\n';

/** A package as Red Hat's catalogs have it: documents one after another, indented by four. */
export function formatOperator(operator: GeneratedOperator): string {
  const { name, versions } = operator;
  const numbers = Array.from({ length: versions }, (_, index) => index);
  return [
    { schema: 'olm.package', name, defaultChannel: 'stable', icon: makeIcon(name) },
    ...Object.entries(CHANNELS).map(([channel, share]) => ({
      schema: 'olm.channel',
      package: name,
      name: channel,
      entries: numbers
        .slice(versions - Math.ceil(versions * share))
        .map((version, at) => makeEntry(name, version, at > 0)),
    })),
    ...numbers.map((version) => makeBundle(operator, version)),
  ]
    .map((document) => `${JSON.stringify(document, null, 4)}\n`)
    .join('');
}

const nameBundle = (name: string, version: number): string => `${name}.v1.${version}.0`;

const makeEntry = (name: string, version: number, replaces: boolean) => ({
  name: nameBundle(name, version),
  ...(replaces && { replaces: nameBundle(name, version - 1) }),
  ...(replaces && { skipRange: `>=1.0.0 <1.${version}.0` }),
});

function makeBundle(operator: GeneratedOperator, version: number) {
  const { name, listImages } = operator;
  const [image = '', ...related] = listImages(version);
  return {
    schema: 'olm.bundle',
    name: nameBundle(name, version),
    package: name,
    image,
    properties: [
      ...['Alpha', 'Beta', 'Gamma', 'Delta'].map((kind) => ({
        type: 'olm.gvk',
        value: { group: `${name}.example.com`, kind, version: 'v1beta1' },
      })),
      { type: 'olm.package', value: { packageName: name, version: `1.${version}.0` } },
      { type: 'olm.csv.metadata', value: makeMetadata(name, image) },
    ],
    relatedImages: [
      { name: '', image },
      ...related.map((one, index) => ({ name: `${name}-part-${index}`, image: one })),
    ],
  };
}

/** What the console shows of a bundle: half of its bytes, and all of them text with escapes in it. */
const makeMetadata = (name: string, image: string) => ({
  annotations: {
    'alm-examples': JSON.stringify(
      [makeExample(name, 'Alpha'), makeExample(name, 'Beta')],
      null,
      2,
    ),
    'capabilities': 'Deep Insights',
    'containerImage': image,
    'createdAt': '2026-01-12T18:29:52Z',
    'operators.openshift.io/valid-subscription': '["OpenShift Platform Plus"]',
  },
  apiServiceDefinitions: {},
  crdDescriptions: {
    owned: ['Alpha', 'Beta', 'Gamma', 'Delta'].map((kind) => ({
      name: `${kind.toLowerCase()}s.${name}.example.com`,
      version: 'v1beta1',
      kind,
      displayName: kind,
      description: WORDS.repeat(3),
      specDescriptors: ['replicas', 'image', 'resources'].map((path) => ({
        path,
        'displayName': path,
        'description': WORDS,
        'x-descriptors': ['urn:alm:descriptor:com.tectonic.ui:text'],
      })),
    })),
  },
  description: WORDS.repeat(18),
  displayName: name,
  installModes: ['OwnNamespace', 'SingleNamespace', 'MultiNamespace', 'AllNamespaces'].map(
    (type) => ({ type, supported: type === 'AllNamespaces' }),
  ),
  keywords: WORDS.trim().split(' '),
  links: [{ name: 'Documentation', url: `https://docs.example.com/${name}` }],
  maintainers: [{ name: 'Support', email: 'support@example.com' }],
  provider: { name: 'Example' },
});

const makeExample = (name: string, kind: string) => ({
  apiVersion: `${name}.example.com/v1beta1`,
  kind,
  metadata: { name, namespace: name },
  spec: Object.fromEntries(
    Array.from({ length: 25 }, (_, index) => [`setting${index}`, { enabled: true, value: name }]),
  ),
});

const makeIcon = (name: string) => ({
  base64data: Buffer.from(name.repeat(500)).toString('base64'),
  mediatype: 'image/svg+xml',
});

/** References to so many images that nobody has. */
export const inventImages = (name: string, count: number) => (version: number) =>
  Array.from({ length: count }, (_, part) => {
    const hex = createHash('sha256').update(`${name} ${version} ${part}`).digest('hex');
    return `registry.example.com/${name}/part-${part}@sha256:${hex}`;
  });

/** One package with channels in which every entry skips all that are lower. */
export function formatDenseOperator(shape: {
  readonly entries: number;
  readonly channels: number;
}): string {
  const operator = {
    name: 'dense',
    versions: shape.entries,
    listImages: inventImages('dense', 2),
  };
  const names = Array.from({ length: shape.entries }, (_, version) =>
    nameBundle(operator.name, version),
  );
  const entries = names.map((name, version) => ({
    name,
    ...(version > 0 && { replaces: names[version - 1] }),
    skips: names.slice(0, version),
  }));
  return [
    { schema: 'olm.package', name: 'dense', defaultChannel: 'channel-0' },
    ...Array.from({ length: shape.channels }, (_, index) => ({
      schema: 'olm.channel',
      package: 'dense',
      name: `channel-${index}`,
      entries,
    })),
    ...names.map((_, version) => makeBundle(operator, version)),
  ]
    .map((document) => `${JSON.stringify(document, null, 4)}\n`)
    .join('');
}
