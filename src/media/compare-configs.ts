import { SealiftError } from '../base/errors.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import { type IgnitionConfig, parseIgnition, type Unit } from '../ignition/index.ts';
import { formatCauses, type IsoImage, readCoreosLive } from '../iso/index.ts';
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

/* Contents of a medium that a comparison reads: its index, kernel arguments and Ignition configs. */

/**
 * Name of a part of an Ignition config. The content is left out: files, units and users may hold pull
 * secrets, keys and password hashes, and the digest of a short secret reveals the secret.
 */
export type IgnitionPart = {
  readonly kind: 'file' | 'directory' | 'link' | 'unit' | 'drop-in' | 'user' | 'group' | 'section';
  /** The path of a file, `unit/drop-in`, or the path of a section: `storage.disks`. */
  readonly name: string;
};

/** A config, with its text as found on the medium. */
export type ComparedConfig = {
  readonly parts: ReadonlyMap<string, Compared<IgnitionPart>>;
  readonly text: string;
};

export type ComparedMedium = {
  /** Bytes. */
  readonly size: number;
  /** No value if sealift did not make the medium. */
  readonly index: Attempt<MediaIndex | undefined>;
  /** No value if the medium is not a live ISO of CoreOS; the problem says what is missing. */
  readonly kernelArguments: Attempt<string>;
  /** No value if there is no config. */
  readonly embedded: Attempt<ComparedConfig | undefined>;
  readonly bootstrap: Attempt<ComparedConfig | undefined>;
};

/**
 * Reads the parts of a medium that are compared, without reading any blob of its registry.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError if not even the directories can be read
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

/** Lists the parts of a config by kind and name, in the order of Ignition's specification. */
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
    // Ignition refuses a config that names a path twice, but a medium may hold one.
    const earlier = compared.get(key)?.content ?? '';
    compared.set(key, { item: { kind, name }, content: earlier + formatCanonicalJson(value) });
  }
  return compared;
}

type Part = IgnitionPart & { readonly value: Json };

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

const listUnit = ({ dropins = [], ...unit }: Unit): readonly Part[] => [
  named('unit', unit.name, unit),
  ...dropins.map((dropin) => named('drop-in', `${unit.name}/${dropin.name}`, dropin)),
];

const listSections = (path: string, members: object): readonly Part[] =>
  Object.entries(members as Readonly<Record<string, Json>>).map(([key, value]) =>
    named('section', `${path}.${key}`, value),
  );

const named = (kind: IgnitionPart['kind'], name: string, value: Json): Part => ({
  kind,
  name,
  value,
});

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');
