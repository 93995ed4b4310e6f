/**
 * The members of an Ignition document as data, so that reading, checking and merging walk one table.
 * Source: Ignition configuration specifications v3.2.0 to v3.6.0; `since` is the first that has a member
 * which 3.2.0 lacks.
 *
 * `key` names the member that identifies a list's entry when two configs are merged; the first of
 * several that is set counts. An empty `key` means that the lists are concatenated.
 */
export type Field = { readonly since?: string } & (
  | { readonly kind: 'string' | 'integer' | 'boolean' }
  | { readonly kind: 'strings'; readonly concatenated: boolean }
  | { readonly kind: 'object'; readonly members: Members }
  | { readonly kind: 'list'; readonly members: Members; readonly key: readonly string[] }
);

export type Members = Readonly<Record<string, Field>>;

const string: Field = { kind: 'string' };
const integer: Field = { kind: 'integer' };
const boolean: Field = { kind: 'boolean' };
const strings: Field = { kind: 'strings', concatenated: false };
const options: Field = { kind: 'strings', concatenated: true };

const object = (members: Members): Field => ({ kind: 'object', members });
const list = (members: Members, ...key: readonly string[]): Field => ({
  kind: 'list',
  members,
  key,
});

const since = (version: string, field: Field): Field => ({ ...field, since: version });

/** Contents that a config holds or fetches. */
export const RESOURCE: Members = {
  source: string,
  compression: string,
  httpHeaders: list({ name: string, value: string }, 'name'),
  verification: object({ hash: string }),
};

const owner = object({ id: integer, name: string });
const node: Members = { path: string, overwrite: boolean, user: owner, group: owner };

const partition: Members = {
  number: integer,
  label: string,
  sizeMiB: integer,
  startMiB: integer,
  typeGuid: string,
  guid: string,
  wipePartitionEntry: boolean,
  shouldExist: boolean,
  resize: boolean,
};

const filesystem: Members = {
  device: string,
  path: string,
  format: string,
  wipeFilesystem: boolean,
  label: string,
  uuid: string,
  options,
  mountOptions: options,
};

const luks: Members = {
  name: string,
  device: string,
  keyFile: object(RESOURCE),
  label: string,
  uuid: string,
  wipeVolume: boolean,
  options,
  discard: since('3.4.0', boolean),
  openOptions: since('3.4.0', options),
  cex: since('3.5.0', object({ enabled: boolean })),
  clevis: object({
    tpm2: boolean,
    tang: list({ url: string, thumbprint: string, advertisement: since('3.4.0', string) }, 'url'),
    threshold: integer,
    custom: object({ pin: string, config: string, needsNetwork: boolean }),
  }),
};

const user: Members = {
  name: string,
  passwordHash: string,
  sshAuthorizedKeys: strings,
  uid: integer,
  gecos: string,
  homeDir: string,
  noCreateHome: boolean,
  primaryGroup: string,
  groups: strings,
  noUserGroup: boolean,
  noLogInit: boolean,
  shell: string,
  shouldExist: boolean,
  system: boolean,
};

const group: Members = {
  name: string,
  gid: integer,
  passwordHash: string,
  shouldExist: boolean,
  system: boolean,
};

const storage: Members = {
  disks: list(
    { device: string, wipeTable: boolean, partitions: list(partition, 'number', 'label') },
    'device',
  ),
  raid: list({ name: string, level: string, spares: integer, devices: strings, options }, 'name'),
  filesystems: list(filesystem, 'device'),
  luks: list(luks, 'name'),
  files: list(
    { ...node, contents: object(RESOURCE), append: list(RESOURCE), mode: integer },
    'path',
  ),
  directories: list({ ...node, mode: integer }, 'path'),
  links: list({ ...node, target: string, hard: boolean }, 'path'),
};

const unit: Members = {
  name: string,
  enabled: boolean,
  mask: boolean,
  contents: string,
  dropins: list({ name: string, contents: string }, 'name'),
};

/** The whole document. */
export const DOCUMENT: Members = {
  ignition: object({
    version: string,
    config: object({ merge: list(RESOURCE, 'source'), replace: object(RESOURCE) }),
    proxy: object({ httpProxy: string, httpsProxy: string, noProxy: strings }),
    security: object({ tls: object({ certificateAuthorities: list(RESOURCE, 'source') }) }),
    timeouts: object({ httpResponseHeaders: integer, httpTotal: integer }),
  }),
  passwd: object({ users: list(user, 'name'), groups: list(group, 'name') }),
  storage: object(storage),
  systemd: object({ units: list(unit, 'name') }),
  kernelArguments: since('3.3.0', object({ shouldExist: strings, shouldNotExist: strings })),
};

/**
 * Lists beside each other that share one namespace: files, directories and links have paths, and a kernel
 * argument either should exist or should not.
 */
export const SHARED_NAMES: readonly (readonly string[])[] = [
  ['files', 'directories', 'links'],
  ['shouldExist', 'shouldNotExist'],
];
