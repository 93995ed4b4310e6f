import {
  FLAG,
  INTEGER,
  list,
  optional,
  partial,
  record,
  shapeOf,
  TEXT,
  type RecordNode,
  type Shape,
  type TypeOf,
} from '../shape/shape.ts';

/*
 * The members of an Ignition document, so that types, reading, checking and merging have one table.
 * Source: Ignition configuration specifications v3.2.0 to v3.6.0.
 */

/** The shape of a member, with what Ignition does with it. */
export type Field = Shape & {
  /** The first version that has a member which 3.2.0 lacks. */
  readonly since?: string;
  /** Members that identify an entry of a list in a merge; the first that is set counts. Absent: texts. */
  readonly key?: readonly string[];
  /** True for texts that are appended even if they are there. */
  readonly isConcatenated?: boolean;
};

/** Members that are not known here are kept. */
const KEPT = { others: 'kept' } as const;

const since = <T>(version: string, shape: Shape<T>): Shape<T> & Field => ({
  ...shape,
  since: version,
});

const listBy = <T>(of: Shape<T>, ...key: readonly string[]): Shape<readonly T[]> & Field => ({
  ...list(of),
  key,
});

type Shapes = Readonly<Record<string, Shape>>;

const object = <const M extends Shapes>(members: M) => partial(members, KEPT);

/** Members that may be absent, for an object that has others which may not. */
const maybe = <const M extends Shapes>(members: M) => object(members).members;

const strings = list(TEXT);
const options: typeof strings & Field = { ...strings, isConcatenated: true };

const RESOURCE_MEMBERS = maybe({
  compression: TEXT,
  httpHeaders: listBy(record({ name: TEXT, value: optional(TEXT) }, KEPT), 'name'),
  verification: object({ hash: TEXT }),
});

/** Contents that a config holds or fetches: `source` is an RFC 2397 `data:` URL or a URL to fetch. */
const RESOURCE = record({ source: optional(TEXT), ...RESOURCE_MEMBERS }, KEPT);
const MERGED = listBy(record({ source: TEXT, ...RESOURCE_MEMBERS }, KEPT), 'source');

export const isResource = ({ members }: RecordNode): boolean =>
  members['verification'] === RESOURCE_MEMBERS.verification;

const OWNER = object({ id: INTEGER, name: TEXT });
const NODE_MEMBERS = maybe({ overwrite: FLAG, user: OWNER, group: OWNER });

const FILE = record(
  {
    path: TEXT,
    ...NODE_MEMBERS,
    ...maybe({ contents: RESOURCE, append: listBy(RESOURCE), mode: INTEGER }),
  },
  KEPT,
);
const DIRECTORY = record({ path: TEXT, ...NODE_MEMBERS, mode: optional(INTEGER) }, KEPT);
const LINK = record({ path: TEXT, ...NODE_MEMBERS, ...maybe({ target: TEXT, hard: FLAG }) }, KEPT);

const PARTITION = object({
  number: INTEGER,
  label: TEXT,
  sizeMiB: INTEGER,
  startMiB: INTEGER,
  typeGuid: TEXT,
  guid: TEXT,
  wipePartitionEntry: FLAG,
  shouldExist: FLAG,
  resize: FLAG,
});

const DISK_MEMBERS = maybe({
  wipeTable: FLAG,
  partitions: listBy(PARTITION, 'number', 'label'),
});

const RAID_MEMBERS = maybe({ level: TEXT, spares: INTEGER, devices: strings, options });

const FILESYSTEM_MEMBERS = maybe({
  path: TEXT,
  format: TEXT,
  wipeFilesystem: FLAG,
  label: TEXT,
  uuid: TEXT,
  options,
  mountOptions: options,
});

const TANG_MEMBERS = maybe({ thumbprint: TEXT, advertisement: since('3.4.0', TEXT) });

const LUKS_MEMBERS = maybe({
  device: TEXT,
  keyFile: RESOURCE,
  label: TEXT,
  uuid: TEXT,
  wipeVolume: FLAG,
  options,
  discard: since('3.4.0', FLAG),
  openOptions: since('3.4.0', options),
  cex: since('3.5.0', object({ enabled: FLAG })),
  clevis: object({
    tpm2: FLAG,
    tang: listBy(record({ url: TEXT, ...TANG_MEMBERS }, KEPT), 'url'),
    threshold: INTEGER,
    custom: object({ pin: TEXT, config: TEXT, needsNetwork: FLAG }),
  }),
});

const USER_MEMBERS = maybe({
  passwordHash: TEXT,
  sshAuthorizedKeys: strings,
  uid: INTEGER,
  gecos: TEXT,
  homeDir: TEXT,
  noCreateHome: FLAG,
  primaryGroup: TEXT,
  groups: strings,
  noUserGroup: FLAG,
  noLogInit: FLAG,
  shell: TEXT,
  shouldExist: FLAG,
  system: FLAG,
});
const USER = record({ name: TEXT, ...USER_MEMBERS }, KEPT);

const GROUP_MEMBERS = maybe({
  gid: INTEGER,
  passwordHash: TEXT,
  shouldExist: FLAG,
  system: FLAG,
});

const STORAGE = object({
  disks: listBy(record({ device: TEXT, ...DISK_MEMBERS }, KEPT), 'device'),
  raid: listBy(record({ name: TEXT, ...RAID_MEMBERS }, KEPT), 'name'),
  filesystems: listBy(record({ device: TEXT, ...FILESYSTEM_MEMBERS }, KEPT), 'device'),
  luks: listBy(record({ name: TEXT, ...LUKS_MEMBERS }, KEPT), 'name'),
  files: listBy(FILE, 'path'),
  directories: listBy(DIRECTORY, 'path'),
  links: listBy(LINK, 'path'),
});

const DROPIN = record({ name: TEXT, contents: optional(TEXT) }, KEPT);

const UNIT_MEMBERS = maybe({
  enabled: FLAG,
  mask: FLAG,
  contents: TEXT,
  dropins: listBy(DROPIN, 'name'),
});
const UNIT = record({ name: TEXT, ...UNIT_MEMBERS }, KEPT);

const IGNITION_MEMBERS = maybe({
  config: object({ merge: MERGED, replace: RESOURCE }),
  proxy: object({ httpProxy: TEXT, httpsProxy: TEXT, noProxy: strings }),
  security: object({ tls: object({ certificateAuthorities: MERGED }) }),
  timeouts: object({ httpResponseHeaders: INTEGER, httpTotal: INTEGER }),
});

const SECTIONS = maybe({
  passwd: object({
    users: listBy(USER, 'name'),
    groups: listBy(record({ name: TEXT, ...GROUP_MEMBERS }, KEPT), 'name'),
  }),
  storage: STORAGE,
  systemd: object({ units: listBy(UNIT, 'name') }),
  kernelArguments: since('3.3.0', object({ shouldExist: strings, shouldNotExist: strings })),
});

export const DOCUMENT = record(
  { ignition: record({ version: TEXT, ...IGNITION_MEMBERS }, KEPT), ...SECTIONS },
  KEPT,
);

/** An Ignition configuration of specification 3. Modes are numbers, as in the JSON: 0o644 is 420. */
export type IgnitionConfig = TypeOf<typeof DOCUMENT>;
export type IgnitionResource = TypeOf<typeof RESOURCE>;
export type MergedResources = TypeOf<typeof MERGED>;
export type Node = Pick<File, 'path' | 'overwrite' | 'user' | 'group'>;
export type File = TypeOf<typeof FILE>;
export type User = TypeOf<typeof USER>;
export type Unit = TypeOf<typeof UNIT>;

export function findField({ members }: RecordNode, key: string): Field | undefined {
  const member = Object.hasOwn(members, key) ? members[key] : undefined;
  return member && shapeOf(member);
}

/** Lists that share one namespace: paths, and kernel arguments that either should exist or should not. */
export const SHARED_NAMES: readonly (readonly string[])[] = [
  ['files', 'directories', 'links'],
  ['shouldExist', 'shouldNotExist'],
];
