/**
 * OCI images and registries: references, manifests, a client of registries with mirrors and
 * credentials, the files of layers, layouts on disk, and a read-only registry server.
 */

// References and manifests.
export {
  explainReference,
  explainRegistryName,
  formatReference,
  isRegistryHost,
  isRepository,
  isTag,
  REPOSITORY,
  IMAGE_TAG,
  parseReference,
  readReference,
} from './reference.ts';
export type { Reference } from './reference.ts';
export { IMAGE_CONFIG, parseImageConfig } from './image-config.ts';
export type { ImageConfig } from './image-config.ts';
export {
  blobsOf,
  isForPlatform,
  MAX_MANIFEST_SIZE,
  MEDIA_TYPE,
  parseAnnotations,
  parseManifest,
  parseStored,
} from './manifest.ts';
export type { Descriptor, ImageManifest, Platform, StoredManifest } from './manifest.ts';

// Registries on the network: reading, writing, credentials, mirrors.
export { createRegistryClient } from './client.ts';
export type { RegistryClient, WritingClient } from './client.ts';
export type { PushedBlob, RegistryWriter } from './client/writer.ts';
export { createCertsReader, createTransport, SYSTEM_CERTS_DIRS } from './client/transport.ts';
export type { TransportResponse } from './client/transport.ts';
export {
  credentialsFromFiles,
  credentialsFromPullSecret,
  listAuthFiles,
  listUnusableEntries,
} from './client/credentials.ts';
export type { Credential } from './client/credential-helper.ts';
export {
  explainAuth,
  explainPullSecretFault,
  judgePullSecret,
  readPullSecret,
} from './client/pull-secret.ts';
export type { AuthFault, PullSecretEntry, PullSecretFault } from './client/pull-secret.ts';
export { loadRegistriesConf } from './client/mirror-files.ts';
export type { RegistriesConfPlaces } from './client/mirror-files.ts';
export { parseRegistriesConf, resolveCandidates } from './client/mirrors.ts';
export type { RegistriesConf, RegistryEntry } from './client/mirrors.ts';

// Files of an image.
export { extractFile, listPresent, readFiles } from './layers/read.ts';
export type { Layer } from './layers/read.ts';
export { extractTree } from './layers/extract-tree.ts';
export { packFiles } from './layers/stream.ts';

// Layouts on disk.
export { openOciLayout } from './layout/oci-layout.ts';
export { pathTo, planDirLayout, planDistributionTree } from './layout/distribution.ts';
export type { PlacedImage, RegistryFile } from './layout/distribution.ts';
export {
  enclosedTree,
  hasLink,
  listRepositories,
  listTags,
  readLink,
  readManifestBytes,
} from './layout/tree.ts';
export type { RegistryTree, ServedTree } from './layout/tree.ts';
export { archiveTree, indexArchives } from './layout/archive-tree.ts';
export type { ArchivedFile, ArchivedFiles } from './layout/archive-tree.ts';
export { createTreeClient, readStored, readTag } from './layout/tree-client.ts';
export { checkClosure } from './layout/closure.ts';

// The read-only server.
export { createRegistryServer } from './server.ts';
export type { RequestEntry } from './server.ts';
