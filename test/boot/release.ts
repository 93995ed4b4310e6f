import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Digest } from '../../src/base/digest.ts';
import { makeDefinitions } from '../../demo/definitions.ts';
import { createReleaseSigner } from '../../demo/release-signer.ts';
import { createThrowAwaySigner } from '../support/throw-away-signer.ts';
import { nameImage, REGISTRY_IMAGE, type ImageRecipe } from './images.ts';
import { pushImage, type Registry } from './registry.ts';

/** The registry that the images say they come from, as the payload and the nodes name it. */
const ORIGIN = 'quay.io';
const COMPONENTS = 'openshift-release-dev/ocp-v4.0-art-dev';
const RELEASES = 'openshift-release-dev/ocp-release';
const ADDITIONAL = 'sealift-test/tools';

/** Small, but with the names that a build looks up in a payload. */
const RECIPES: Readonly<Record<string, ImageRecipe>> = {
  'cli': nameImage('cli'),
  'docker-registry': REGISTRY_IMAGE,
  'machine-config-operator': nameImage('machine-config-operator'),
  'must-gather': nameImage('must-gather'),
  'pod': nameImage('pod'),
};

export type Release = {
  readonly version: string;
  /** By digest and by the original name, `quay.io/openshift-release-dev/ocp-release@sha256:...`. */
  readonly reference: string;
  /** Component name to its reference by digest and original name. */
  readonly components: Readonly<Record<string, string>>;
  /** An image that belongs to no release, by tag as a configuration names it. */
  readonly additionalImage: string;
  /** The same by digest, as a host pulls it. */
  readonly additionalReference: string;
};

export type ReleaseOptions = {
  readonly registry: Registry;
  readonly work: string;
  readonly version: string;
};

/**
 * Pushes a release of the real shape and one additional image; returns how the origin names them. Its
 * signature and the key to it are in the folder, for `SIGNATURE_SETTINGS`.
 */
export async function pushRelease(options: ReleaseOptions): Promise<Release> {
  const { registry, work, version } = options;
  const components: Record<string, string> = {};
  for (const [name, recipe] of Object.entries(RECIPES)) {
    const digest = await pushImage(recipe, { registry, work, target: `${COMPONENTS}:${name}` });
    components[name] = `${ORIGIN}/${COMPONENTS}@${digest}`;
  }
  const target = `${RELEASES}:${version}-x86_64`;
  const release = await pushImage(releaseImage(version, components), { registry, work, target });
  const signer = createReleaseSigner(createThrowAwaySigner());
  signer.sign(release, `${ORIGIN}/${RELEASES}:${version}-x86_64`);
  signer.write(work);
  const tools: Digest = await pushImage(nameImage('tools'), {
    registry,
    work,
    target: `${ADDITIONAL}:1.0`,
  });
  return {
    version,
    reference: `${ORIGIN}/${RELEASES}@${release}`,
    components,
    additionalImage: `${ORIGIN}/${ADDITIONAL}:1.0`,
    additionalReference: `${ORIGIN}/${ADDITIONAL}@${tools}`,
  };
}

/** The last layer holds `release-manifests`; tags are sorted and by digest only. */
function releaseImage(version: string, components: Readonly<Record<string, string>>): ImageRecipe {
  const created = '2026-01-12T18:29:52Z';
  const tags = Object.entries(components).map(([name, reference]) => ({
    name,
    annotations: { 'io.openshift.build.commit.id': '', 'io.openshift.build.source-location': '' },
    from: { kind: 'DockerImage', name: reference },
    generation: null,
    importPolicy: {},
    referencePolicy: { type: '' },
  }));
  const references = {
    kind: 'ImageStream',
    apiVersion: 'image.openshift.io/v1',
    metadata: { name: version, creationTimestamp: created },
    spec: { lookupPolicy: { local: false }, tags },
    status: { dockerImageRepository: '' },
  };
  const metadata = { kind: 'cincinnati-metadata-v0', version, previous: [], metadata: {} };
  const { layers } = nameImage('cluster-version-operator');
  const manifest = (name: string, value: object): { path: string; text: string } => ({
    path: `release-manifests/${name}`,
    text: JSON.stringify(value, null, 2),
  });
  return {
    layers: [
      ...layers,
      [
        manifest('image-references', references),
        manifest('release-metadata', metadata),
        ...Object.entries(makeDefinitions(version)).map(([path, text]) => ({ path, text })),
      ],
    ],
    config: {
      Entrypoint: ['/usr/bin/cluster-version-operator'],
      Labels: { 'io.openshift.release': version },
    },
  };
}

/** A registries.conf that reads the local registry wherever the origin is named, and never the origin. */
export async function writeMirrorConf(work: string, registry: Registry): Promise<string> {
  const path = join(work, 'registries.conf');
  await writeFile(
    path,
    `unqualified-search-registries = []

[[registry]]
prefix = "${ORIGIN}"
location = "${registry.host}"
insecure = true
`,
  );
  return path;
}
