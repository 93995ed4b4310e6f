import { SealiftError } from '../../base/errors.ts';
import {
  hasDisabledPolicy,
  listImagePolicies,
  readLiveRegistriesConf,
  readNodeRegistriesConf,
} from '../../openshift/node/read-registry.ts';
import {
  createPolicyFinder,
  type ImagePolicy,
  listApplied,
} from '../../openshift/release/image-policy.ts';
import type { Reference, RegistriesConf } from '../../registry/index.ts';
import { readExtraManifests } from '../named-images.ts';
import type { PlayedMedium } from './played-medium.ts';
import type { PlayedRelease } from './release.ts';
import { cannotKnow, type RehearsedStep, will, willNot } from './step.ts';

const PART = 'pulls';

export type Puller = {
  readonly who: string;
  readonly conf: RegistriesConf;
  /** Policies that hold for an image. */
  readonly policiesOf: (image: Reference) => readonly ImagePolicy[];
};

/** The live system and the nodes, with what keeps one of them from pulling at all. */
export function listPullers(
  { live, files }: PlayedMedium,
  release: PlayedRelease | undefined,
): { readonly pullers: readonly Puller[]; readonly problems: readonly RehearsedStep[] } {
  const texts = live ? readExtraManifests(live).map(({ text }) => text) : [];
  const conf = readConf(files);
  const own = readPolicies(texts);
  const policies = [
    ...(release && !hasDisabledPolicy(files) ? listApplied(release) : []),
    ...own.policies,
  ];
  const nodes = {
    who: 'nodes',
    conf: readNodeRegistriesConf(texts),
    policiesOf: createPolicyFinder(policies),
  };
  if (conf.problem === undefined) {
    const none = { who: 'hosts of the live system', policiesOf: () => [] };
    const live = { ...none, conf: conf.value ?? { registries: [] } };
    return { pullers: [live, nodes], problems: own.problems };
  }
  const reason = conf.problem;
  return {
    pullers: [nodes],
    problems: [
      ...own.problems,
      willNot(PART, 'hosts of the live system read their registries.conf', { reason }),
    ],
  };
}

/** Image policies among the manifests of the cluster, which hold for its nodes as those of the release do. */
function readPolicies(texts: readonly string[]): {
  readonly policies: readonly ImagePolicy[];
  readonly problems: readonly RehearsedStep[];
} {
  try {
    return { policies: listImagePolicies(texts), problems: [] };
  } catch (error) {
    if (!(error instanceof SealiftError)) throw error;
    const name = 'the cluster takes the image policies among its manifests';
    return { policies: [], problems: [willNot(PART, name, { reason: error.message })] };
  }
}

function readConf(files: PlayedMedium['files']): {
  readonly value?: RegistriesConf | undefined;
  readonly problem?: string;
} {
  try {
    return { value: readLiveRegistriesConf(files) };
  } catch (error) {
    if (error instanceof SealiftError) return { problem: error.message };
    throw error;
  }
}

/** Policies that are switched off, or that ask for something that the medium cannot show. */
export function describePolicies(
  { files }: PlayedMedium,
  release: PlayedRelease | undefined,
): readonly RehearsedStep[] {
  const applied = release ? listApplied(release) : [];
  if (applied.length === 0) return [];
  const names = applied.map(({ name }) => name).join(', ');
  if (hasDisabledPolicy(files)) {
    const reason = `the medium switches off the policy ${names}`;
    return [will(PART, 'nodes accept images of the release without a signature', { reason })];
  }
  return applied
    .filter(({ key }) => key === undefined)
    .map(({ name }) =>
      cannotKnow(PART, `nodes accept the signatures that the policy ${name} asks for`, {
        reason: 'it asks for more than a signature by a key',
      }),
    );
}
