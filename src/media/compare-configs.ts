import { SealiftError } from '../base/errors.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { type IgnitionConfig, type Unit, parseIgnition } from '../ignition/config.ts';
import { readCoreosLive } from '../iso/coreos/live.ts';
import type { IsoImage } from '../iso/read/open.ts';
import { formatCauses } from '../iso/read/source.ts';
import type { Compared } from './compare-parts.ts';
import { type MediaIndex, readIndex } from './media-index.ts';
import {
  attempt,
  type Attempt,
  useMedium,
  type Medium,
  readBootstrapIgnition,
  readEmbeddedIgnition,
} from './open.ts';

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

/** A config, and its text as it is on the medium. */
export type ComparedConfig = {
  readonly parts: ReadonlyMap<string, Compared<IgnitionPart>>;
  readonly text: string;
};

/** What of a medium is compared with another one: its index, kernel arguments and Ignition configs. */
export type ComparedMedium = {
  /** Bytes. */
  readonly size: number;
  /** No value where sealift did not make it. */
  readonly index: Attempt<MediaIndex | undefined>;
  /** No value where it is not a live ISO of CoreOS; the problem says what it lacks. */
  readonly kernelArguments: Attempt<string>;
  /** No value where there is no config. */
  readonly embedded: Attempt<ComparedConfig | undefined>;
  readonly bootstrap: Attempt<ComparedConfig | undefined>;
};

/**
 * Reads what of a medium is compared, and no blob of its registry.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError where not even the directories can be read
 */
export const readCompared = (medium: Medium): Promise<ComparedMedium> =>
  useMedium(medium, async (iso) => {
    const kernelArguments = await readKernelArguments(iso);
    const isLive = kernelArguments.problem === undefined;
    const read = async (
      name: string,
      readText: (iso: IsoImage) => Promise<string | undefined>,
    ): Promise<Attempt<ComparedConfig | undefined>> =>
      isLive ? attempt(async () => parseConfig(await readText(iso), name)) : {};
    return {
      size: iso.fileSize,
      index: await attempt(() => readIndex(iso)),
      kernelArguments,
      embedded: await read('config of the embed area', readEmbeddedIgnition),
      bootstrap: await read('bootstrap config', readBootstrapIgnition),
    };
  });

async function readKernelArguments(iso: IsoImage): Promise<Attempt<string>> {
  try {
    return { value: (await readCoreosLive(iso)).kargs.text };
  } catch (error) {
    if (!(error instanceof SealiftError) || error.code !== 'base-iso.not-coreos') throw error;
    return { problem: error.cause instanceof Error ? formatCauses(error.cause) : error.message };
  }
}

function parseConfig(text: string | undefined, name: string): ComparedConfig | undefined {
  if (text === undefined) return undefined;
  return { text, parts: listIgnitionParts(parseIgnition(text, name)) };
}
