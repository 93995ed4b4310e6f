import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { parseReference } from '../../src/registry/reference.ts';
import { addCatalog, buildStandIn, makeOperator, type CatalogFiles } from './catalog.ts';
import type { ImageRegistry } from './image-registry.ts';
import { addRelease } from './release.ts';

/** The registries whose names the images have; a registries.conf leads all of them to the test's. */
const REDHAT = 'registry.redhat.io';
const QUAY = 'quay.io';

/** How many images a version of an operator needs besides its bundle, about as the real ones. */
const IMAGE_COUNTS: Readonly<Record<string, number>> = {
  'kubevirt-hyperconverged': 59,
  'mtv-operator': 14,
  'cluster-observability-operator': 20,
  'redhat-oadp-operator': 12,
};
const USUAL_IMAGE_COUNT = 5;

/** What a configuration for OVE media asks for. */
export type OveSelection = {
  /** As it is named. */
  readonly catalog: string;
  readonly packages: readonly {
    readonly name: string;
    readonly channels: readonly { readonly name: string }[];
  }[];
};

export function parseOveSelection(config: string): OveSelection {
  const { operators } = parse(config) as { readonly operators: readonly OveSelection[] };
  const [only] = operators;
  if (only === undefined || operators.length > 1) throw new Error('OVE media have one catalog');
  return only;
}

/** Leads the names of the real registries to the test's, by plain HTTP. */
export const formatOveRegistriesConf = (host: string): string =>
  [REDHAT, QUAY]
    .map((name) => `[[registry]]\nprefix = "${name}"\nlocation = "${host}"\ninsecure = true\n`)
    .join('\n');

/** What the user of an OVE configuration adds to it: a release of this version, and access. */
export async function completeOveConfig(
  config: string,
  options: {
    readonly registry: ImageRegistry;
    /** Of the folder with the base ISO. */
    readonly directory: string;
    readonly version: string;
  },
): Promise<string> {
  const { registry, directory, version } = options;
  const iso = await readFile(join(directory, 'test.iso'));
  const release = await addRelease({ ...registry, host: QUAY }, { version, iso });
  return [
    config.trimEnd(),
    'ocpRelease:',
    `  version: "${version}"`,
    `  url: ${release.pullspec}`,
    `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
    'sshKey: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleSBvZiBhIHRlc3QsIG5vdGhpbmcgZWxzZSAhICAg me',
    'build:',
    '  ignition: embedded',
    '  registriesConf: registries.conf',
    ...SIGNATURE_LINES,
    '',
  ].join('\n');
}

/**
 * Puts the catalog of a selection, with all its packages, into the registry, and small images of all
 * names that it has. `real` are files of packages whose images are there already.
 */
export async function addOveCatalog(
  registry: ImageRegistry,
  { catalog, packages }: OveSelection,
  real: CatalogFiles = {},
): Promise<void> {
  const files: Record<string, CatalogFiles[string]> = {};
  for (const { name, channels } of packages) {
    const path = `${name}/catalog.json`;
    const count = IMAGE_COUNTS[name] ?? USUAL_IMAGE_COUNT;
    files[path] =
      real[path] ??
      (await makeOperator(
        { registry, host: REDHAT },
        {
          name,
          channels: {
            older: ['1.0.0'],
            ...Object.fromEntries(channels.map((channel) => [channel.name, ['1.0.0', '1.1.0']])),
          },
          images: Array.from({ length: count }, (_, at) => `${name}/${name}-${at}-rhel9`),
        },
      ));
  }
  const { repository, tag = '' } = parseReference(catalog);
  const architectures = ['amd64', 'arm64'];
  await addCatalog(registry, repository, { tag, files, architectures });
  registry.add('rhel9/support-tools', await buildStandIn('support-tools'), 'latest');
}
