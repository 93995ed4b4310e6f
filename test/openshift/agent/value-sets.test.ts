import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ConfigError } from '../../../src/base/errors.ts';
import { parseIgnition } from '../../../src/ignition/config.ts';
import { decodeFileContent } from '../../../src/ignition/resource.ts';
import { configure } from '../../../src/openshift/agent/configure.ts';
import { readResourceValues } from '../../../src/openshift/agent/read-resources.ts';
import { parseResources } from '../../../src/openshift/agent/resources.ts';
import { composePristine, listValueSets, type ValueSet } from '../../support/value-sets.ts';

/** Sets whose files are others than the installer's, or that one of the two refuses, each with the reason. */
const DIFFERENT: Readonly<Record<string, string>> = {
  '04ssh2trail': 'white space around keys is left out',
  '63sshtabs': 'white space around keys is left out',
  '64sshcrlf': 'a carriage return is no part of a key',
  '18ns': 'an annotation that is y without quotes is true, which Kubernetes refuses',
  '10proxyno': 'exceptions have no meaning without a proxy; customize refuses them',
  '11proxyempty': 'an empty proxy is none',
  '13ca': 'the live system trusts the certificates too',
  '14ca2': 'the live system trusts the certificates too',
  '37all': 'the live system trusts the certificates too',
  '70psbad': 'customize refuses it: pull secrets have a reader of their own',
  '71psempty': 'customize refuses it: pull secrets have a reader of their own',
  '72psuni': "the installer's writer of YAML refuses control characters that JSON has",
  '75sec data': 'a Secret may have data as well as stringData',
  '78nm otherlabel': 'a selector that selects no network would leave the host without one',
};

/** Sets with networks that only nmstate translates. */
const OF_NMSTATE = ['45slashif', '46ovs', '50veth'];

type Changes = {
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

/** The changes of the pristine config for a set, or 'refused'. */
function change(set: ValueSet, pristine: string): Changes | 'refused' {
  // As they were written for the installer: `y` without quotes.
  const documents = [set.infraenv, set.pull_secret, ...set.nmstateconfigs];
  const text = documents.map((document) => stringify(document)).join('---\n');
  // The installer got an agent-config.yaml only without networks, which it would have dropped.
  const isGiven = set.rendezvousIP !== null && set.nmstateconfigs.length === 0;
  try {
    const { values } = readResourceValues(parseResources(text, 'a.yaml'), { hasPullSecret: false });
    const rendezvousIp = isGiven ? { rendezvousIp: set.rendezvousIP } : {};
    const after = describeConfig(configure(pristine, { ...values, ...rendezvousIp }));
    const before = describeConfig(pristine);
    const isNew = <T>(earlier: ReadonlyMap<string, T>, [key, value]: readonly [string, T]) =>
      earlier.get(key) !== value;
    const files = [...after.files].filter((file) => isNew(before.files, file));
    return {
      files: Object.fromEntries(files.map(([path]) => [path, after.shown.get(path)])),
      units: Object.fromEntries([...after.units].filter((unit) => isNew(before.units, unit))),
      users: after.users,
    };
  } catch (error) {
    if (error instanceof ConfigError) return 'refused';
    throw error;
  }
}

/** The changes of the installer. */
function readChanges({ made }: ValueSet): Changes | 'refused' {
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

const SETS = listValueSets()
  .filter(({ name }) => !OF_NMSTATE.includes(name))
  .map((set) => [set.name, set] as const);

describe.skipIf(SETS.length === 0)('the files for a set of values', () => {
  const pristine = SETS.length === 0 ? '' : composePristine();
  const isDifferent = (name: string): boolean => Object.hasOwn(DIFFERENT, name);

  it.each(SETS.filter(([name]) => !isDifferent(name)))(
    'are to the byte those that the installer writes: %s',
    (_, set) => {
      expect(change(set, pristine)).toEqual(readChanges(set));
    },
  );

  it.each(SETS.filter(([name]) => isDifferent(name)))(
    "are others than the installer's, for a reason: %s",
    (_, set) => {
      expect(change(set, pristine)).not.toEqual(readChanges(set));
    },
  );
});
