import { IntegrityError } from '../../base/errors.ts';
import { formatReference, type Reference } from '../../registry/index.ts';
import { readAdminGates } from './gates.ts';
import { IMAGE_POLICY, readImagePolicies } from './image-policy.ts';
import { DEFINITION, isManifestPath, readDefinitions, readManifests } from './manifests.ts';
import {
  IMAGE_REFERENCES_PATH,
  type ImageReferences,
  parseImageReferences,
  parseReleaseMetadata,
  type Release,
  type ReleaseMetadata,
  RELEASE_METADATA_PATH,
} from './release.ts';

export const NAMED_FILES: readonly string[] = [IMAGE_REFERENCES_PATH, RELEASE_METADATA_PATH];

export const isPayloadFile = (path: string): boolean =>
  NAMED_FILES.includes(path) || isManifestPath(path);

export type PayloadFiles = { readonly references: ImageReferences } & Pick<
  Release,
  'metadata' | 'definitions' | 'imagePolicies' | 'adminGates'
>;

/**
 * `reference` names the payload in errors.
 *
 * @throws IntegrityError `release.malformed`, `release.no-definitions`, `release.manifest-unreadable`
 */
export function readPayloadFiles(
  files: ReadonlyMap<string, Uint8Array>,
  reference: Reference,
): PayloadFiles {
  return {
    references: parseImageReferences(requireText(files, IMAGE_REFERENCES_PATH, reference)),
    metadata: readMetadata(files, reference),
    ...readRelevant(files, reference),
    adminGates: readAdminGates(files),
  };
}

export const readMetadata = (
  files: ReadonlyMap<string, Uint8Array>,
  reference: Reference,
): ReleaseMetadata => parseReleaseMetadata(requireText(files, RELEASE_METADATA_PATH, reference));

function requireText(
  files: ReadonlyMap<string, Uint8Array>,
  path: string,
  reference: Reference,
): string {
  const bytes = files.get(path);
  if (bytes) return Buffer.from(bytes).toString('utf8');
  throw new IntegrityError(
    'release.malformed',
    `image ${formatReference(reference)} is not a release payload: it has no ${path}`,
    {
      hint: 'name a release image, such as quay.io/openshift-release-dev/ocp-release:4.20.0-x86_64',
    },
  );
}

/** Every release defines kinds; without any, the medium would have no manifest. */
function readRelevant(
  files: ReadonlyMap<string, Uint8Array>,
  reference: Reference,
): Pick<Release, 'definitions' | 'imagePolicies'> {
  const manifests = readManifests(files, [DEFINITION, IMAGE_POLICY]);
  const definitions = readDefinitions(manifests);
  if (definitions.length > 0) return { definitions, imagePolicies: readImagePolicies(manifests) };
  throw new IntegrityError(
    'release.no-definitions',
    `payload ${formatReference(reference)} has no CustomResourceDefinition for self-managed clusters in its release-manifests`,
    {
      expected: 'at least one CustomResourceDefinition',
      found: `none in ${files.size} files`,
      hint: 'use the release as published, or mirror it again',
    },
  );
}
