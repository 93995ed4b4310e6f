import { objectOrEmpty } from '../../base/members.ts';
import { IntegrityError } from '../../base/errors.ts';

/** What the image config of a release payload says (OCI image-spec config.md). */
export type ReleaseConfig = {
  /** In Go's words. */
  readonly architecture: string;
  /** Label `io.openshift.release`. */
  readonly version?: string;
  readonly created?: string;
};

/** @throws IntegrityError `release.malformed` */
export function parseReleaseConfig(bytes: Uint8Array): ReleaseConfig {
  const document = parse(bytes);
  const { architecture, created } = document;
  if (typeof architecture !== 'string') throw malformed('names no architecture');
  const version = objectOrEmpty(objectOrEmpty(document['config'])['Labels'])[
    'io.openshift.release'
  ];
  return {
    architecture,
    ...(typeof version === 'string' && { version }),
    ...(typeof created === 'string' && { created }),
  };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  try {
    return objectOrEmpty(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch (cause) {
    throw malformed(`is not valid JSON: ${(cause as Error).message}`);
  }
}

const malformed = (reason: string): IntegrityError =>
  new IntegrityError('release.malformed', `config of the release image ${reason}`);
