import { withoutUndefined } from '../base/members.ts';
import {
  chooseRegistryImage,
  describeNewerRelease,
  getRegistryComponent,
  type Configure,
  type RegistryImageChoice,
} from '../openshift/mirror/registry-image.ts';
import { digestOfRelease, type Release } from '../openshift/release/release-payload.ts';
import { parseReference } from '../registry/reference.ts';
import { inspectRegistryImage } from '../stages/content/inspect-registry-image.ts';
import type { SignatureGate } from '../stages/content/verify-release.ts';
import type { BuildTools } from './build-tools.ts';
import type { SavedPlan } from './saved-plan.ts';
import { resolveVerified } from './verified-release.ts';

/** The channel that has the newest release with a registry server. */
const CHANNEL = 'stable';

/** The registry server that serves a release on the nodes, by digest. */
export async function selectRegistryImage(
  options: {
    readonly release: Release;
    /** As it is configured, where it is. */
    readonly uri?: string;
    /** How a user would configure it. */
    readonly configure: Configure;
    readonly graphUrl?: string;
    /** For the release that it is taken from, where that is another one. */
    readonly signatures: SignatureGate;
    readonly saved?: SavedPlan | undefined;
    /** Whether no other release can be asked for. */
    readonly isOffline?: boolean;
  },
  tools: BuildTools,
): Promise<RegistryImageChoice> {
  const { release, configure, graphUrl, saved, signatures } = options;
  const { version, arch } = release;
  const origin = chooseRegistryImage(options);
  if (origin.kind !== 'newer-release') {
    const { kind, reference } = origin;
    const isComponent = kind === 'component';
    return tools.engine.run(inspectRegistryImage, { reference, isComponent, arch, version });
  }
  const { minor } = origin;
  const component = { isComponent: true, arch, version };
  if (saved?.registryImage !== undefined) {
    const reference = parseReference(saved.registryImage);
    return tools.engine.run(inspectRegistryImage, { reference, ...component });
  }
  const wanted = {
    version: minor,
    channel: CHANNEL,
    arch,
    ...withoutUndefined({ graphUrl }),
    otherwise: { message: describeNewerRelease(version, minor), hint: configure },
  };
  const newer = await resolveVerified(wanted, tools, { signatures });
  tools.tags.note(`release ${minor} of ${CHANNEL}`, digestOfRelease(newer));
  const reference = getRegistryComponent(newer, configure);
  return tools.engine.run(inspectRegistryImage, { reference, ...component });
}
