import {
  BOOTSTRAP,
  type Change,
  type Config,
  embed,
  encodeText,
  fileOf,
  packMember,
} from './alter.ts';
import type { Broken } from './broken.ts';

const BASE = { base: '4.21', part: 'ignition' } as const;
const REGISTRY = '/etc/assisted/registry.env';
const MEMBER = 'usr/lib/ignition/base.d/99-bootstrap.ign';

const edit = (bootstrap: (config: Config) => void) => (): Change => ({ bootstrap });

const addFile = (file: Readonly<Record<string, unknown>>): (() => Change) =>
  edit(({ storage }) => {
    storage.files.push({ contents: encodeText(''), ...file } as Config['storage']['files'][number]);
  });

/** Ignition ends with an error, and the host in an emergency shell; or it reads no config at all. */
export const BROKEN_IGNITION: readonly Broken[] = [
  {
    ...BASE,
    name: 'the embed area has no archive',
    change: ({ path }) => ({ files: { '/images/ignition.img': embed(path, Buffer.from('text')) } }),
  },
  {
    ...BASE,
    name: 'the embedded config is not JSON',
    change: ({ path }) => ({
      files: { '/images/ignition.img': embed(path, packMember('config.ign', '{')) },
    }),
  },
  {
    ...BASE,
    name: 'the embedded config is a list',
    change: ({ path }) => ({
      files: { '/images/ignition.img': embed(path, packMember('config.ign', '[]')) },
    }),
  },
  {
    ...BASE,
    name: 'the embedded config has no version',
    change: ({ path }) => ({
      files: { '/images/ignition.img': embed(path, packMember('config.ign', '{"ignition":{}}')) },
    }),
  },
  {
    ...BASE,
    name: 'the config of the system has no archive',
    change: () => ({ files: { [BOOTSTRAP]: 'text' } }),
  },
  {
    ...BASE,
    name: 'the archive of the system has another file',
    change: () => ({ files: { [BOOTSTRAP]: packMember('usr/lib/other', '{}') } }),
  },
  {
    ...BASE,
    name: 'the config of the system is not JSON',
    change: () => ({ files: { [BOOTSTRAP]: packMember(MEMBER, '{"ignition"') } }),
  },
  {
    ...BASE,
    name: 'the config of the system is of a version that nobody knows',
    change: edit(({ ignition }) => {
      ignition.version = '9.9.0';
    }),
  },
  {
    ...BASE,
    name: 'the config of the system is of an old version',
    change: edit(({ ignition }) => {
      ignition.version = '2.2.0';
    }),
  },
  { ...BASE, name: 'two files have one path', change: addFile({ path: REGISTRY }) },
  { ...BASE, name: 'a file has a relative path', change: addFile({ path: 'etc/relative' }) },
  { ...BASE, name: 'a file has no path', change: addFile({}) },
  { ...BASE, name: 'a file is below another file', change: addFile({ path: `${REGISTRY}/below` }) },
  {
    ...BASE,
    name: 'a file has a mode that no file has',
    change: addFile({ path: '/etc/mode', mode: 0o10_0644 }),
  },
  {
    ...BASE,
    name: 'a file has contents of a scheme that nobody knows',
    change: addFile({ path: '/etc/source', contents: { source: 'gopher://example.com/file' } }),
  },
  {
    ...BASE,
    name: 'a file has contents that are not base64',
    change: addFile({ path: '/etc/source', contents: { source: 'data:;base64,%%%' } }),
  },
  {
    ...BASE,
    name: 'a file has contents that are not what their hash says',
    change: addFile({
      path: '/etc/hash',
      contents: { source: 'data:,a', verification: { hash: `sha256-${'0'.repeat(64)}` } },
    }),
  },
  {
    ...BASE,
    name: 'a file has contents that are not compressed as it says',
    change: edit((config) => {
      fileOf(config, REGISTRY).contents = { source: 'data:,plain', compression: 'gzip' };
    }),
  },
  {
    ...BASE,
    name: 'a unit has a name without a type',
    change: edit(({ systemd }) => {
      systemd?.units.push({ name: 'nothing', enabled: true, contents: '[Service]\n' });
    }),
  },
  {
    ...BASE,
    name: 'two units have one name',
    change: edit(({ systemd }) => {
      const [first] = systemd?.units ?? [];
      if (first) systemd?.units.push(first);
    }),
  },
];
