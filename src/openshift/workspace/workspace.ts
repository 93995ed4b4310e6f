import { decodeUserText } from '../../base/text/utf8.ts';
import type { Document } from 'yaml';
import { isDigest, type Digest } from '../../base/digest.ts';
import { ConfigError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { RegistryTree } from '../../registry/index.ts';
import type { MirrorSetName } from '../mirror/mirrors.ts';
import { splitDocuments, type NodeManifest, type SplitDocument } from '../node/manifests.ts';
import {
  isOfSignatures,
  isWellFormed,
  type StoredSignature,
  listStoredSignatures,
  MAX_SIGNATURE_SIZE,
} from '../release/signature-store.ts';
import { type ArchivedSet, readArchivedSet } from './archived.ts';
import { openWorkspaceFiles, type WorkspaceFiles } from './files.ts';

export type WorkspaceMirror = {
  /** `registry/path`, or a registry alone. */
  readonly source: string;
  /** Mirrors as written: host and path. */
  readonly mirrors: readonly string[];
  readonly set: MirrorSetName;
  readonly by: 'digest' | 'tag';
};

export type WorkspaceCatalog = NodeManifest & {
  readonly file: string;
  /** Image as written; absent if the object names no image. */
  readonly image?: string;
};

/** The objects that oc-mirror wrote for the cluster next to its registry, and the registry's tree. */
export type Workspace = {
  /** Real path of the directory. */
  readonly path: string;
  /** Real path of the directory that has `docker/registry/v2`, or the archives, in it. */
  readonly root: string;
  readonly tree: RegistryTree;
  /** The contents that runs of mirrorToDisk were configured to have; absent unless it has archives. */
  readonly archived?: ArchivedSet;
  readonly mirrors: readonly WorkspaceMirror[];
  readonly catalogs: readonly WorkspaceCatalog[];
  /** Detached signatures of release images, base64: of all runs first, then of the last one. */
  readonly signatures: readonly StoredSignature[];
  /** Lines of the newest error log: images that oc-mirror could not mirror, and why. */
  readonly failures: readonly string[];
  /** Descriptions of content of the files that is not carried. */
  readonly warnings: readonly string[];
};

const RESOURCES = 'working-dir/cluster-resources';
/** Files `VERSION-ARCH-sha256-HEX`, one for each release that any run mirrored. */
const SIGNATURES = 'working-dir/signatures';
const LOGS = 'working-dir/logs';

/**
 * Makes no network requests and does not read the tree.
 *
 * @param directory `mirrorPath` of the configuration
 * @throws ConfigError `workspace.malformed`, `workspace.too-large`, `manifest.malformed`; the errors
 * of `openWorkspaceFiles`
 */
export function readWorkspace(directory: string): Workspace {
  const files = openWorkspaceFiles(directory);
  const { path, root, tree, modified } = files;
  const documents = files
    .list(RESOURCES)
    .filter((name) => /\.ya?ml$/.test(name))
    .flatMap((name) => {
      const { bytes, name: file } = files.read(`${RESOURCES}/${name}`);
      return splitDocuments({ name, text: decodeUserText(bytes, file) });
    });
  const sorted = sortDocuments(documents);
  const signatures = [...readSignatures(files), ...sorted.signatures];
  const failures = readFailures(files);
  const archived = modified && readArchivedSet(files, modified);
  return { path, root, tree, ...sorted, signatures, failures, ...(archived && { archived }) };
}

/** Time is in the names: `mirroring_errors_YYYYMMDD_HHMMSS.txt`. */
const ERROR_LOG = /^mirroring_errors_.*\.txt$/;
const MOST_FAILURES = 1000;

function readFailures(files: WorkspaceFiles): readonly string[] {
  const name = files
    .list(LOGS)
    .filter((name) => ERROR_LOG.test(name))
    .at(-1);
  if (name === undefined) return [];
  const lines = files.read(`${LOGS}/${name}`).bytes.toString('utf8').split('\n');
  return lines.filter((line) => line.trim() !== '').slice(0, MOST_FAILURES);
}

const readSignatures = (files: WorkspaceFiles): readonly StoredSignature[] =>
  files.list(SIGNATURES).flatMap((name) => {
    const digest = name.replace(/^.*-sha256-([0-9a-f]{64})$/, 'sha256:$1');
    if (!isDigest(digest)) return [];
    const { bytes } = files.read(`${SIGNATURES}/${name}`, MAX_SIGNATURE_SIZE);
    return [{ digest, signature: bytes.toString('base64') }];
  });

type Sorted = Omit<Workspace, 'path' | 'root' | 'tree' | 'failures' | 'archived'>;

function sortDocuments(documents: readonly SplitDocument[]): Sorted {
  const mirrors: WorkspaceMirror[][] = [];
  const catalogs: WorkspaceCatalog[] = [];
  const signatures: { digest: Digest; signature: string }[][] = [];
  const warnings: string[][] = [];
  for (const { name, file, text, document } of documents) {
    const kind = String(document.get('kind'));
    if (kind === 'ImageDigestMirrorSet' || kind === 'ImageTagMirrorSet') {
      const entries = readMirrorSet(file, document);
      mirrors.push(entries.map(({ mirror }) => mirror));
      warnings.push(entries.flatMap(({ warning }) => warning ?? []));
    } else if (kind === 'CatalogSource' || kind === 'ClusterCatalog') {
      const image: unknown = document.getIn(IMAGE_MEMBER[kind]);
      catalogs.push({ name, file, text, ...(typeof image === 'string' && { image }) });
    } else if (isOfSignatures(document)) {
      const found = listStoredSignatures(document.toJSON() as object);
      signatures.push(found.filter(isWellFormed));
      warnings.push(
        found.filter((one) => !isWellFormed(one)).map(({ digest }) => describeOdd(digest, file)),
      );
    } else {
      warnings.push([`${kind} of ${file} in the mirror's cluster resources is not carried`]);
    }
  }
  // Lists of lists: a call has no room for the elements of a very long one.
  return {
    mirrors: mirrors.flat(),
    catalogs,
    signatures: signatures.flat(),
    warnings: warnings.flat(),
  };
}

/** Members in which the kinds of catalog name their image. */
export const IMAGE_MEMBER = {
  CatalogSource: ['spec', 'image'],
  ClusterCatalog: ['spec', 'source', 'image', 'ref'],
} as const;

const SETS: readonly MirrorSetName[] = ['release', 'operator'];

type MirrorEntry = { readonly mirror: WorkspaceMirror; readonly warning?: string };

function readMirrorSet(file: string, document: Document): MirrorEntry[] {
  const by = document.get('kind') === 'ImageTagMirrorSet' ? 'tag' : 'digest';
  const member = by === 'tag' ? 'imageTagMirrors' : 'imageDigestMirrors';
  const name = String(document.getIn(['metadata', 'name']));
  const entries = toPlain(document.getIn(['spec', member]));
  const refuse = (reason: string): never => {
    throw new ConfigError('workspace.malformed', `${file}: ${member} of "${name}" ${reason}`, {
      hint: "restore the file from oc-mirror's working-dir",
    });
  };
  if (!Array.isArray(entries)) return refuse('is not a list');
  return entries.map((entry: unknown) => {
    const {
      source,
      mirrors,
      mirrorSourcePolicy: policy,
    } = (entry ?? {}) as Partial<Record<string, unknown>>;
    if (!isName(source)) return refuse('has an entry without source');
    if (!Array.isArray(mirrors) || !mirrors.every(isName)) {
      return refuse(`has no list of mirrors for ${source}`);
    }
    const set = SETS.find((set) => name.includes(`-${set}-`)) ?? 'generic';
    const warning = describePolicy(policy, `${source} in ${file}`);
    return { mirror: { source, mirrors, set, by }, ...withoutUndefined({ warning }) };
  });
}

/** A registry, or a path in it: a name that a table of registries.conf can have. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' && /^[\w*[][\w.:\]/-]*$/.test(value);

/** Other than the default: openshift/api `config/v1/types_image_digest_mirror_set.go`. */
const describePolicy = (policy: unknown, of: string): string | undefined =>
  policy === undefined || policy === '' || policy === 'AllowContactingSource'
    ? undefined
    : `mirrorSourcePolicy ${JSON.stringify(policy)} of ${of} is not carried: nodes ask the source if its mirrors fail`;

const toPlain = (node: unknown): unknown =>
  typeof node === 'object' && node !== null && 'toJSON' in node
    ? (node as { toJSON: () => unknown }).toJSON()
    : node;

const describeOdd = (digest: Digest, file: string): string =>
  `a signature of ${digest} in ${file} is not base64 of at most ${MAX_SIGNATURE_SIZE} bytes, and is not carried`;
