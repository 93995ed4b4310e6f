import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { ConfigError } from '../../src/base/errors.ts';
import { parseIgnition } from '../../src/ignition/config.ts';
import { decodeFileContent } from '../../src/ignition/resource.ts';
import { configure } from '../../src/openshift/agent/configure.ts';
import { readResourceValues } from '../../src/openshift/agent/read-resources.ts';
import { parseResources } from '../../src/openshift/agent/resources.ts';
import { standInForInstaller } from './installer-stand-in.ts';

/*
 * The sets of values that openshift-install 4.22 was given, and the files, units and users that it wrote for each:
 * the data set `installer` of recordings.
 */

const DATA = '../shared/data/judged/installer';

export type MadeFile = {
  readonly path: string;
  readonly mode: string;
  readonly sha256: string;
  readonly text?: string;
};

type MadeUnit = {
  readonly name: string;
  readonly enabled: boolean | null;
  readonly sha256: string;
};

export type ValueSet = {
  readonly name: string;
  readonly infraenv: Readonly<Record<string, unknown>>;
  readonly pull_secret: Readonly<Record<string, unknown>>;
  readonly nmstateconfigs: readonly Readonly<Record<string, unknown>>[];
  readonly rendezvousIP: string | null;
  readonly refused?: string;
  readonly made?: {
    readonly 'changed or new files': readonly MadeFile[];
    readonly 'changed or new units': readonly MadeUnit[];
    readonly 'users': Readonly<Record<string, unknown>>;
  };
};

type Pristine = {
  readonly ignition: object;
  readonly files: readonly MadeFile[];
  readonly units: readonly MadeUnit[];
};

const read = (name: string): unknown => JSON.parse(readFileSync(join(DATA, name), 'utf8'));

/** The sets; none if the recordings are absent. */
export const listValueSets = (): readonly ValueSet[] =>
  existsSync(DATA) ? (read('values.json') as readonly ValueSet[]) : [];

const TEMPLATE = '/etc/assisted/rendezvous-host.env.template';

/**
 * The Ignition config that the installer writes without values. The recordings have scripts and units by their
 * digests, so a digest stands for the text of each; the template of the rendezvous host is the stand-in's.
 */
export function composePristine(): string {
  const { files, units } = read('pristine.json') as Pristine;
  const stand = JSON.parse(
    standInForInstaller('B', { metadata: {}, spec: {}, secretName: '', pullSecret: '' }),
  ) as { readonly storage: { readonly files: readonly { readonly path: string }[] } };
  return JSON.stringify({
    ignition: { version: '3.2.0' },
    storage: {
      files: files.map(({ path, mode, sha256, text = sha256 }) => {
        const file = {
          path,
          mode: Number.parseInt(mode, 8),
          overwrite: true,
          user: { name: 'root' },
          contents: { source: `data:;base64,${Buffer.from(text).toString('base64')}` },
        };
        const isTemplate = path === TEMPLATE;
        return isTemplate ? stand.storage.files.find((each) => each.path === path) : file;
      }),
    },
    systemd: {
      units: units.map(({ name, enabled, sha256 }) => ({
        name,
        contents: sha256,
        ...(enabled !== null && { enabled }),
      })),
    },
  });
}

/** Sets whose files are others than the installer's, or that one of the two refuses, each with the reason. */
export const DIFFERENT_SETS: Readonly<Record<string, string>> = {
  '64sshcrlf': 'a carriage return is no part of a key',
  '18ns': 'an annotation that is y without quotes is true, which Kubernetes refuses',
  '10proxyno': 'exceptions have no meaning without a proxy; customize refuses them',
  '11proxyempty': 'an empty proxy is none',
  '13ca': 'the live system trusts the certificates too',
  '14ca2': 'the live system trusts the certificates too',
  '37all': 'the live system trusts the certificates too',
  '62pxv6': 'a backslash in the password of a proxy must be written %5C; customize refuses the URL',
  '69psdup':
    'a registry named twice in a pull secret is refused: readers differ in which of the two counts',
  '72psuni': "the installer's writer of YAML refuses control characters that JSON has",
  '75sec data': 'a Secret may have data as well as stringData',
  '78nm otherlabel': 'a selector that selects no network would leave the host without one',
};

/** Sets with networks that only nmstate translates. */
export const SETS_OF_NMSTATE = ['45slashif', '46ovs', '50veth'];

export type Changes = {
  readonly files: Readonly<Record<string, unknown>>;
  readonly units: Readonly<Record<string, string>>;
  readonly users: unknown;
};

/** Files without the text of network profiles, which nmstate writes: other tests compare them. */
const showFile = (path: string, mode: string, text: string): unknown => ({
  mode,
  ...(!path.endsWith('.nmconnection') && { text }),
});

function describeConfig(config: string): {
  readonly files: ReadonlyMap<string, string>;
  readonly shown: ReadonlyMap<string, unknown>;
  readonly units: ReadonlyMap<string, string>;
  readonly users: unknown;
} {
  const { storage, systemd, passwd } = parseIgnition(config, 'a config');
  const files = (storage?.files ?? []).map((file) => {
    const text = decodeFileContent(file)?.toString('utf8') ?? '';
    const mode = (file.mode ?? 0).toString(8);
    return { path: file.path, key: `${mode} ${text}`, shown: showFile(file.path, mode, text) };
  });
  const units = (systemd?.units ?? []).map(
    ({ name, enabled, contents }) =>
      [name, `${String(enabled ?? null)} ${contents ?? ''}`] as const,
  );
  return {
    files: new Map(files.map(({ path, key }) => [path, key])),
    shown: new Map(files.map(({ path, shown }) => [path, shown])),
    units: new Map(units),
    users: Object.fromEntries((passwd?.users ?? []).map((user) => [user.name, user])),
  };
}

/** A document as it was written for the installer: `y` without quotes. */
export const formatInput = (document: unknown): string => stringify(document);

/** The rendezvous IP for agent-config.yaml, which makes the installer drop networks: with these, it is not given. */
export const rendezvousIpOf = ({ rendezvousIP, nmstateconfigs }: ValueSet): string | undefined =>
  nmstateconfigs.length === 0 ? (rendezvousIP ?? undefined) : undefined;

/** Files, units and users of a config that another lacks or has otherwise. */
export function compareConfigs(pristine: string, config: string): Changes {
  const after = describeConfig(config);
  const before = describeConfig(pristine);
  const files = [...after.files].filter(([path, key]) => before.files.get(path) !== key);
  const units = [...after.units].filter(([name, unit]) => before.units.get(name) !== unit);
  return {
    files: Object.fromEntries(files.map(([path]) => [path, after.shown.get(path)])),
    units: Object.fromEntries(units),
    users: after.users,
  };
}

/** The changes of the pristine config for a set, or 'refused'. */
export function changeBySealift(set: ValueSet, pristine: string): Changes | 'refused' {
  const text = [set.infraenv, set.pull_secret, ...set.nmstateconfigs]
    .map(formatInput)
    .join('---\n');
  try {
    const { values } = readResourceValues(parseResources(text, 'a.yaml'), { hasPullSecret: false });
    const ip = rendezvousIpOf(set);
    const rendezvousIp = ip === undefined ? {} : { rendezvousIp: ip };
    return compareConfigs(pristine, configure(pristine, { ...values, ...rendezvousIp }));
  } catch (error) {
    if (error instanceof ConfigError) return 'refused';
    throw error;
  }
}

/** The recorded changes of the installer. */
export function readChanges({ made }: ValueSet): Changes | 'refused' {
  if (!made) return 'refused';
  return {
    files: Object.fromEntries(
      made['changed or new files'].map(({ path, mode, text = '' }) => [
        path,
        showFile(path, mode, text),
      ]),
    ),
    units: Object.fromEntries(
      made['changed or new units'].map(({ name, enabled, sha256 }) => [
        name,
        `${String(enabled)} ${sha256}`,
      ]),
    ),
    users: made.users,
  };
}
