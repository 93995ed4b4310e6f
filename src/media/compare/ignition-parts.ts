import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import type { IgnitionConfig, Unit } from '../../ignition/config.ts';
import type { Compared } from './list-changes.ts';

/**
 * A part of an Ignition config by its name alone. Files, units and users may hold pull secrets, keys and
 * password hashes, and the digest of a short secret is as good as the secret.
 */
export type IgnitionPart = {
  readonly kind: 'file' | 'directory' | 'link' | 'unit' | 'drop-in' | 'user' | 'group' | 'section';
  /** The path of a file, `unit/drop-in`, or the path of a section: `storage.disks`. */
  readonly name: string;
};

type Part = IgnitionPart & { readonly value: Json };

/** The parts of a config by kind and name, in the order of Ignition's specification. */
export function listIgnitionParts(
  config: IgnitionConfig,
): ReadonlyMap<string, Compared<IgnitionPart>> {
  const { ignition, passwd = {}, storage = {}, systemd = {} } = config;
  const parts: readonly Part[] = [
    ...listSections('ignition', ignition),
    ...listAccounts(passwd),
    ...listStorage(storage),
    ...(systemd.units ?? []).flatMap(listUnit),
  ];
  const compared = new Map<string, Compared<IgnitionPart>>();
  for (const { kind, name, value } of parts) {
    const key = `${kind}\n${name}`;
    // A config that names a path twice is refused by Ignition, but may be on a medium.
    const earlier = compared.get(key)?.content ?? '';
    compared.set(key, { item: { kind, name }, content: earlier + formatCanonicalJson(value) });
  }
  return compared;
}

const named = (kind: IgnitionPart['kind'], name: string, value: Json): Part => ({
  kind,
  name,
  value,
});

const listAccounts = ({
  users = [],
  groups = [],
}: NonNullable<IgnitionConfig['passwd']>): readonly Part[] => [
  ...users.map((user) => named('user', user.name, user)),
  ...groups.map((group) => named('group', textOf(group['name']), group)),
];

const listStorage = ({
  files = [],
  directories = [],
  links = [],
  ...disks
}: NonNullable<IgnitionConfig['storage']>): readonly Part[] => [
  ...listSections('storage', disks),
  ...files.map((file) => named('file', file.path, file)),
  ...directories.map((directory) => named('directory', directory.path, directory)),
  ...links.map((link) => named('link', link.path, link)),
];

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

const listSections = (path: string, members: object): readonly Part[] =>
  Object.entries(members as Readonly<Record<string, Json>>).map(([key, value]) =>
    named('section', `${path}.${key}`, value),
  );

const listUnit = ({ dropins = [], ...unit }: Unit): readonly Part[] => [
  named('unit', unit.name, unit),
  ...dropins.map((dropin) => named('drop-in', `${unit.name}/${dropin.name}`, dropin)),
];
