import { decodeUserText } from '../../base/text/utf8.ts';
import { lstatSync, readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import {
  CST,
  isMap,
  isNode,
  isScalar,
  Parser,
  stringify,
  visit,
  type Document,
  type Scalar,
} from 'yaml';
import { readInputFile, readListed } from '../../base/disk/files.ts';
import { objectOrEmpty, withoutUndefined } from '../../base/lists.ts';
import { joinProblem } from '../../base/text/words.ts';
import { ConfigError } from '../../base/errors.ts';
import { IGNITION_VERSION, type IgnitionConfig } from '../../ignition/index.ts';
import { findPayloadFaults } from './payloads.ts';
import { explainYaml, parseAllDocuments, findYamlExcess } from '../../shape/parse-text.ts';
import { MACHINE_CONFIG_GROUP } from '../release/manifests.ts';

/** A YAML file by its base name: for a node, it has one document; before it is split, any number. */
export type NodeManifest = { readonly name: string; readonly text: string };

/**
 * The manifests as nodes get them: each document in its own file, `<base>-<n><extension>`. Leaves out
 * ClusterCatalogs: an appliance's cluster has no operator for them.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`
 */
export function planExtraManifests(
  sources: readonly NodeManifest[],
  options: { readonly useDefaultSourceNames: boolean },
): readonly NodeManifest[] {
  const files = sources
    .flatMap(splitDocuments)
    .filter(({ document }) => document.get('kind') !== 'ClusterCatalog')
    .map(requireObject)
    .map((file) => (options.useDefaultSourceNames ? renameSource(file) : file));
  refuseDuplicates(files.map(({ name }) => name));
  refuseDuplicates(files.flatMap(({ document }) => catalogNameOf(document)));
  return files.map(({ name, text }) => ({ name, text }));
}

export type CustomResource = NodeManifest & {
  /** Undefined for cluster-scoped resources. */
  readonly namespace: string | undefined;
};

/** One document per file; the namespace identifies the operator that a resource waits for. */
export function planCustomResources(sources: readonly NodeManifest[]): readonly CustomResource[] {
  const resources = sources
    .flatMap(splitDocuments)
    .filter(({ document }) => document.get('kind') !== 'ClusterCatalog')
    .map(requireObject)
    .map(({ name, text, document }) => {
      const namespace = document.getIn(['metadata', 'namespace']);
      return { name, text, namespace: typeof namespace === 'string' ? namespace : undefined };
    });
  refuseDuplicates(resources.map(({ name }) => name));
  return resources;
}

/** Keys are sorted; strings that YAML 1.1 would read as numbers are quoted. */
export const formatManifest = (object: object): string =>
  stringify(object, { version: '1.1', sortMapEntries: true, lineWidth: 0 });

export type SplitDocument = NodeManifest & {
  readonly file: string;
  readonly document: Document;
  /** Line of the file at an offset of the document's nodes. */
  readonly lineOf: (offset: number) => number;
};

/**
 * Refuses a Secret or ConfigMap that the cluster's API would refuse, and a List, which it does not know: the
 * installation waits until each manifest is applied.
 */
function requireObject(file: SplitDocument): SplitDocument {
  const { document, lineOf } = file;
  const object = objectOrEmpty(document.toJS());
  const refuse = (path: readonly string[], problem: string, hint?: string): never => {
    const node = document.getIn(path, true) ?? document.contents;
    const line = lineOf((isNode(node) ? node.range?.[0] : undefined) ?? 0);
    const place =
      path.length === 0 ? 'a List' : `${path.join('.')} of the ${String(object['kind'])}`;
    throw malformed(`manifest ${file.file}:${line}: ${joinProblem(place, problem)}`, hint);
  };
  if (object['kind'] === 'List') {
    refuse(
      [],
      'is not applied by any cluster',
      'write its objects as documents with "---" between them',
    );
  }
  const [fault] = findPayloadFaults(object);
  if (fault !== undefined) refuse(fault.path, fault.problem);
  return file;
}

/** The text of each document stays as it is: other writers of YAML would change dates and numbers. */
export function splitDocuments(source: NodeManifest): SplitDocument[] {
  const extension = extname(source.name);
  const base = basename(source.name, extension);
  const excess = findYamlExcess(source.text);
  if (excess) throw malformed(`manifest ${source.name} is not YAML: ${excess.message}`);
  return readDocuments(source.text)
    .filter(({ document }) => document.errors.length > 0 || !isEmpty(document, source.name))
    .map(({ text, document }, index) => {
      const where = `document ${index} of manifest ${source.name}`;
      const error = document.errors[0];
      // The parser's message quotes no text: the file may be a Secret.
      const lineOf = (offset: number): number => source.text.slice(0, offset).split('\n').length;
      if (error) {
        const line = lineOf(error.pos[0]);
        throw malformed(`${where} is not YAML: line ${line}: ${explainYaml(error.code)}`);
      }
      const repeated = findRepeatedKey(document);
      if (repeated !== undefined)
        throw malformed(`${where} has a key twice, in line ${lineOf(repeated)}`);
      if (!isMap(document.contents)) throw malformed(`${where} is not an object`);
      if (typeof document.get('kind') !== 'string') throw malformed(`${where} has no kind`);
      const name = `${base}-${index}${extension}`;
      return { name, file: source.name, text, document, lineOf };
    });
}

/** True if the document is null; composes all of it, aliases and merges included. */
function isEmpty(document: Document, name: string): boolean {
  try {
    return document.toJS() === null;
  } catch (cause) {
    // The library throws errors that it can only find now: they have no code, and may quote a name.
    if (!(cause instanceof Error)) throw cause;
    throw malformed(`manifest ${name} has aliases or merge keys that cannot be resolved`);
  }
}

/** The offset of the first key that its mapping already has. */
function findRepeatedKey(document: Document): number | undefined {
  let offset: number | undefined;
  visit(document, {
    Map(_, { items }) {
      const seen = new Set<unknown>();
      const repeated = items.find(({ key }) => {
        if (!isScalar(key) || key.value === '<<') return false;
        const isSeen = seen.has(key.value);
        seen.add(key.value);
        return isSeen;
      });
      if (repeated === undefined) return undefined;
      offset = (repeated.key as Scalar).range?.[0] ?? 0;
      return visit.BREAK;
    },
  });
  return offset;
}

function readDocuments(source: string): { text: string; document: Document }[] {
  // Kubernetes reads YAML 1.1, where 0644 is octal and "yes" is a boolean.
  const documents = parseAllDocuments(source, {
    version: '1.1',
    prettyErrors: false,
    uniqueKeys: false, // the library compares each key with every other; see findRepeatedKey
  });
  const tokens = [...new Parser().parse(source)].filter(({ type }) => type === 'document');
  return (Array.isArray(documents) ? documents : []).map((document, index) => {
    const token = tokens[index];
    const text = token === undefined ? '' : CST.stringify(token).replace(/^---[ \t]*\r?\n/, '');
    return { text: text.endsWith('\n') ? text : `${text}\n`, document };
  });
}

/** `cs-redhat-operator-index-v4-19` becomes `redhat-operators`; other names are unchanged. */
export const formatDefaultSourceName = (name: string): string => {
  const operator = /(\w+)-operator-index/.exec(name)?.[1];
  return operator === undefined ? name : `${operator}-operators`;
};

function renameSource(file: SplitDocument): SplitDocument {
  const { document } = file;
  const name = document.getIn(['metadata', 'name'], true);
  if (document.get('kind') !== 'CatalogSource' || !isScalar(name)) return file;
  document.setIn(['metadata', 'name'], formatDefaultSourceName(String(name.value)));
  return { ...file, text: document.toString({ lineWidth: 0, directives: false }) };
}

function catalogNameOf(document: Document): string[] {
  const name = document.getIn(['metadata', 'name']);
  const namespace = document.getIn(['metadata', 'namespace']);
  const isSource = document.get('kind') === 'CatalogSource' && typeof name === 'string';
  return isSource ? [`CatalogSource ${String(namespace)}/${name}`] : [];
}

export function refuseDuplicates(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (seen.has(name)) {
      throw new ConfigError('manifest.duplicate', `manifest "${name}" appears more than once`, {
        hint: 'rename the file in openshift/, or drop one of the catalogs',
      });
    }
    seen.add(name);
  }
}

const malformed = (message: string, hint?: string): ConfigError =>
  new ConfigError('manifest.malformed', message, withoutUndefined({ hint }));

/** The pools that every cluster has. */
export const ROLES = ['master', 'worker'] as const;
export type Role = (typeof ROLES)[number];

export const ROLE_LABEL = `${MACHINE_CONFIG_GROUP}/role`;

type MachineConfig = Pick<IgnitionConfig, 'passwd' | 'storage' | 'systemd'> & {
  readonly name: string;
  readonly role: Role;
  readonly labels?: Readonly<Record<string, string>>;
};

/** A MachineConfig as YAML; the daemon takes Ignition of 3.2.0 in every release. */
export const formatMachineConfig = ({ name, role, labels, ...config }: MachineConfig): string =>
  formatManifest({
    apiVersion: `${MACHINE_CONFIG_GROUP}/v1`,
    kind: 'MachineConfig',
    metadata: { name, labels: { [ROLE_LABEL]: role, ...labels } },
    spec: { config: { ignition: { version: IGNITION_VERSION }, ...config } },
  });

export type UserManifests = {
  /** `openshift/*.yaml`, for the installation of the cluster. */
  readonly extra: readonly NodeManifest[];
  /** `openshift/crs/*.yaml`, applied when their operators exist. */
  readonly crs: readonly NodeManifest[];
};

const MANIFESTS = { domain: 'manifest' };

/**
 * Absent folders are empty.
 *
 * @throws ConfigError `manifest.malformed`, `manifest.duplicate`, `manifest.unreadable`,
 * `manifest.too-large`
 */
export function readUserManifests(directory: string): UserManifests {
  const folder = join(directory, 'openshift');
  const extra = readYamlFiles(folder);
  const crs = readYamlFiles(join(folder, 'crs'));
  planExtraManifests(extra, { useDefaultSourceNames: false });
  planCustomResources(crs);
  return { extra, crs };
}

const readYamlFiles = (directory: string): readonly NodeManifest[] =>
  listNames(directory)
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => {
      const path = join(directory, name);
      const bytes = readListed(path, MANIFESTS, () => readInputFile(path, MANIFESTS));
      return { name, text: decodeUserText(bytes, path) };
    });

function listNames(directory: string): readonly string[] {
  const entries = readListed(directory, MANIFESTS, () =>
    lstatSync(directory, { throwIfNoEntry: false }) === undefined
      ? []
      : readdirSync(directory, { withFileTypes: true }),
  );
  return entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
}
