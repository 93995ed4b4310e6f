import { SealiftError } from '../../base/errors.ts';
import type { Stage } from '../../engine/index.ts';
import type { ImageTools } from '../../openshift/images.ts';
import type { RpmArchitecture } from '../../openshift/release/bundle.ts';
import type { GatedUpdate } from '../../openshift/release/gates.ts';
import { fetchAdminGates } from '../../openshift/release/fetch-payload.ts';
import { parseReference } from '../../registry/index.ts';

/** The release that a cluster leaves, with what its payload asks for. */
type LeftRelease = GatedUpdate['from'];

type ReadLeftGatesInput = {
  readonly version: string;
  /** Payload by digest, as the update graph names it; absent if it is not known. */
  readonly image?: string;
  readonly arch: RpmArchitecture;
};

/**
 * Reads what a cluster asks for before it leaves its release. This release is not carried, and a mirror
 * may not have it: a payload that cannot be read is part of the answer.
 */
export const readLeftGates: Stage<
  ReadLeftGatesInput,
  LeftRelease,
  Pick<ImageTools, 'client' | 'cache'>
> = {
  name: 'read left gates',
  async run({ version, image, arch }, tools, context) {
    if (image === undefined) return { version };
    const all = { ...tools, ...context };
    try {
      const { adminGates } = await fetchAdminGates(all, parseReference(image), arch);
      return { version, adminGates };
    } catch (error) {
      context.signal.throwIfAborted();
      if (!(error instanceof SealiftError)) throw error;
      return { version, problem: error.message };
    }
  },
};
