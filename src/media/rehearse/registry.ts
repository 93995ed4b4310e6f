import { SealiftError } from '../../base/errors.ts';
import { objectOrEmpty } from '../../base/lists.ts';
import {
  readLiveRegistriesConf,
  readStartedRegistry,
  type StartedRegistry,
} from '../../openshift/node/read-registry.ts';
import { blobsOf, parseManifest, type RegistryTree } from '../../registry/index.ts';
import { digestOf, hexOf } from '../../base/digest.ts';
import { attempt } from '../open.ts';
import { REGISTRY_ROOT } from '../media-index.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type RehearsedStep, unless, unlessAny, will, willNot } from './step.ts';

const PART = 'registry';
const UNIT = 'start-local-registry.service';

/** Plays the start of the registry on the host: its unit, image, name, port and certificate. */
export async function rehearseRegistry(medium: PlayedMedium): Promise<readonly RehearsedStep[]> {
  const { live, registry, files } = medium;
  if (live === undefined || registry?.root !== REGISTRY_ROOT) return [];
  const started = readStartedRegistry(live, files);
  const { unit } = started;
  if (unit === undefined) {
    return [willNot(PART, 'systemd starts the registry', { reason: `there is no ${UNIT}` })];
  }
  const place = `${REGISTRY_ROOT}${IMAGE}`;
  const problems = await findImageProblems(registry.tree, started);
  return [
    unless(PART, 'systemd starts the registry', {
      place: UNIT,
      reason: unit.isEnabled ? undefined : `${UNIT} is not enabled`,
    }),
    ...unlessAny(
      PART,
      'the unit of the registry finds what it needs',
      started.missing.map((path) => ({ reason: `no config writes ${path}`, place: UNIT })),
    ),
    ...unlessAny(
      PART,
      'podman loads and runs the image of the registry',
      problems.map((reason) => ({ reason, place })),
    ),
    ...(problems.length > 0 ? [] : [await rehearsePrograms(medium, registry.tree)]),
    ...rehearseNames(medium, started),
  ];
}

/** The names under which hosts find and trust the registry. */
function rehearseNames(medium: PlayedMedium, started: StartedRegistry): readonly RehearsedStep[] {
  const { domain = '', certifiedFor = 'no name', port = '' } = started;
  const served = `${domain}:${port}`;
  const { hosts, problem } = listHosts(medium);
  const isLed = hosts.length === 0 || hosts.includes(served);
  return [
    unless(PART, `the certificate of the registry is for its name, ${domain}`, {
      place: 'certify-local-registry.sh',
      reason: certifiedFor === domain ? undefined : `it is for ${certifiedFor}`,
    }),
    unless(PART, `the mirrors lead to the registry, ${served}`, {
      place: '/etc/containers/registries.conf',
      reason: problem ?? (isLed ? undefined : `they lead to ${hosts.join(', ')}`),
    }),
  ];
}

/** Hosts of the mirrors in registries.conf, each once, or the reason why it cannot be read. */
function listHosts({ files }: PlayedMedium): {
  readonly hosts: readonly string[];
  readonly problem?: string;
} {
  try {
    const locations = (readLiveRegistriesConf(files)?.registries ?? []).flatMap(({ mirrors }) =>
      mirrors.map(({ location }) => location.split('/', 1)[0] ?? ''),
    );
    return { hosts: [...new Set(locations)] };
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    return { hosts: [], problem: error.message };
  }
}

/** Directory of the image, in the form that podman reads as `dir:`. */
const IMAGE = '/images/registry';

async function findImageProblems(
  tree: RegistryTree,
  started: StartedRegistry,
): Promise<readonly string[]> {
  const { value, problem } = await attempt(async () => {
    const bytes = await tree.read(`${IMAGE}/manifest.json`);
    return bytes && parseManifest(bytes);
  });
  if (problem !== undefined) return [problem];
  if (value?.kind !== 'manifest')
    return ['manifest.json is missing, or does not describe an image'];
  const missing: string[] = [];
  for (const { digest, size } of blobsOf(value)) {
    const found = await tree.size(`${IMAGE}/${hexOf(digest)}`);
    if (found !== size)
      missing.push(`its blob ${digest} is ${found === undefined ? 'missing' : 'cut'}`);
  }
  if (missing.length > 0) return missing;
  const { digest } = value.config;
  const config = (await tree.read(`${IMAGE}/${hexOf(digest)}`)) ?? Buffer.alloc(0);
  return digestOf(config) === digest
    ? explainRun(config, started)
    : [`its config is not ${digest}`];
}

function explainRun(
  config: Uint8Array,
  { hasEntrypoint, unusedImage }: StartedRegistry,
): readonly string[] {
  if (unusedImage !== undefined) {
    return [`it is loaded as ${unusedImage}, which ${UNIT} does not run`];
  }
  return hasEntrypoint || hasCommand(config) ? [] : ['it has neither an entrypoint nor a command'];
}

/** Layers are not read here. A build looks into those of its registry, and its index has the digest of the manifest. */
async function rehearsePrograms(
  { index }: PlayedMedium,
  tree: RegistryTree,
): Promise<RehearsedStep> {
  const step = 'the image of the registry has the programs that its unit starts';
  const place = `${REGISTRY_ROOT}${IMAGE}/manifest.json`;
  const bytes = await tree.read(`${IMAGE}/manifest.json`);
  const built = index?.extents.find(({ paths }) => paths.includes(place))?.digest;
  return bytes !== undefined && built === digestOf(bytes)
    ? will(PART, step, { reason: 'it is the image that the build chose' })
    : cannotKnow(PART, step, { place, reason: 'the image is not the one that the build chose' });
}

/** OCI image-spec, config.md: `Entrypoint` and `Cmd`. */
function hasCommand(config: Uint8Array): boolean {
  const { Entrypoint, Cmd } = objectOrEmpty(objectOrEmpty(parseConfig(config))['config']);
  return [Entrypoint, Cmd].some((words) => Array.isArray(words) && words.length > 0);
}

function parseConfig(config: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(config).toString('utf8'));
  } catch {
    return undefined;
  }
}
