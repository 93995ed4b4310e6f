import { RegistryError } from '../../base/errors.ts';
import { untilAborted, withTimeLimit } from '../../base/wait.ts';
import type { Service } from '../context.ts';
import { ApiFailure } from '../openapi.ts';
import type { InfraEnv } from './infra-env.ts';

/* Owns the judgement whether the medium of an InfraEnv can carry its values, before they are stored. */

export type JudgedMedium = {
  readonly warnings: readonly string[];
  /** Stores the overlay that was made, for the first download. */
  readonly keep: () => Promise<unknown>;
};

/** An overlay that cannot be judged now is accepted with a warning: then the download judges it. */
export async function judgeMedium(
  service: Pick<Service, 'releases' | 'images'>,
  infraEnv: InfraEnv,
): Promise<JudgedMedium> {
  const { openshift_version: version, cpu_architecture: architecture } = infraEnv;
  const release =
    version === undefined ? undefined : await service.releases.find(version, architecture);
  if (!release) return NOT_JUDGED;
  try {
    const { refusal, keep } = await withTimeLimit(LONGEST, new AbortController().signal, (limit) =>
      untilAborted(service.images.prepare(infraEnv, release), limit),
    );
    const only = `only booting from the network is possible: ${refusal ?? ''}`;
    return { warnings: refusal === undefined ? [] : [only], keep };
  } catch (error) {
    if (!isOfStore(error)) throw error;
    return { ...NOT_JUDGED, warnings: ['its ISO cannot be read now: the values are not checked'] };
  }
}

const NOT_JUDGED: JudgedMedium = { warnings: [], keep: () => Promise.resolve() };

/** Milliseconds for the areas of an ISO: a remote server may be unreachable. */
const LONGEST = 5000;

/** True if the ISO cannot be read, or has no areas: no values would help. */
const isOfStore = (error: unknown): boolean =>
  error instanceof RegistryError ||
  (error instanceof ApiFailure && error.status === 500) ||
  (error instanceof DOMException && error.name === 'TimeoutError');
