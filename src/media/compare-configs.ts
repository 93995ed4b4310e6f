import { digestOf, type Digest } from '../base/digest.ts';
import { formatCanonicalJson, type Json } from '../base/text/json.ts';
import {
  type IgnitionConfig,
  parseIgnition,
  resolveConfig,
  type Unit,
  type Unresolved,
} from '../ignition/index.ts';
import { findEmbedArea, type IsoImage, locateKargAreas } from '../iso/index.ts';
import { decodeEmbedded, type Embedded, readOptionalKargs } from './areas.ts';
import type { Compared } from './compare-parts.ts';
import { digestBuilt } from './compare-trees.ts';
import { CONFIG_AREA_PATH, type MediaIndex, readIndex } from './media-index.ts';
import {
  attempt,
  type OpenAttempt,
  useMedium,
  type IsoSource,
  readBootstrapIgnition,
} from './open.ts';
import { readProof } from './proof.ts';

/* Contents of a medium that a comparison reads: its index, kernel arguments and Ignition configs. */

/** The content is left out: it may hold secrets, and the digest of a short secret reveals the secret. */
export type IgnitionPart = {
  readonly kind:
    | ('file' | 'directory' | 'link' | 'unit' | 'drop-in' | 'user' | 'group' | 'section')
    | ('network profile' | 'initrd file');
  /** The path of a file, `unit/drop-in`, or the path of a section: `storage.disks`. */
  readonly name: string;
};

/** A config with the files beside it, and the text of all of them as found on the medium. */
export type ComparedConfig = {
  /** Parts of the config and of those that it merges. */
  readonly parts: ReadonlyMap<string, Compared<IgnitionPart>>;
  readonly text: string;
  /** Configs that it merges and whose contents are not on the medium. */
  readonly unresolved: readonly Unresolved[];
};

export type ComparedMedium = {
  /** Bytes. */
  readonly size: number;
  /** No value if sealift did not make the medium. */
  readonly index: OpenAttempt<MediaIndex | undefined>;
  /** No value without areas for them; of an ISO without an embed area the problem says what is missing. */
  readonly kernelArguments: OpenAttempt<string | undefined>;
  /** No value if nothing is embedded. */
  readonly embedded: OpenAttempt<ComparedConfig | undefined>;
  /** Digest that the proof of a medium without an index names; undefined for other ISOs. */
  readonly proof: Digest | undefined;
  /** Bytes of the areas that a customisation may change, in the form that they have on the medium. */
  readonly areas: Digest;
  /** Copy of the areas as built. */
  readonly built: OpenAttempt<Digest | undefined>;
  readonly bootstrap: OpenAttempt<ComparedConfig | undefined>;
  /** Digest of the configuration image of a site; no value without one. */
  readonly configImage: OpenAttempt<Digest | undefined>;
};

/** Reads the parts of a medium that are compared, without reading any blob of its registry. */
export const readCompared = (medium: IsoSource): Promise<ComparedMedium> =>
  useMedium(medium, async (iso) => {
    const embed = await attempt(() => readEmbedArea(iso));
    const located = await attempt(() => locateKargAreas(iso));
    const bytes = embed.value;
    return {
      size: iso.fileSize,
      index: await attempt(() => readIndex(iso)),
      kernelArguments:
        embed.problem === undefined
          ? await attempt(async () => (await readOptionalKargs(iso))?.text)
          : { problem: embed.problem },
      embedded: bytes ? await attempt(async () => parseArea(await decodeEmbedded(bytes))) : {},
      bootstrap: await attempt(async () =>
        parseConfig(await readBootstrapIgnition(iso), 'bootstrap config'),
      ),
      proof: (await attempt(() => readProof({ read: iso.readBytes, size: iso.fileSize }))).value
        ?.digest,
      built: await attempt(() => digestBuilt(iso)),
      configImage: await attempt(() => digestConfigImage(iso)),
      areas: digestOf(Buffer.concat([...(bytes ? [bytes] : []), ...(await readAll(iso, located))])),
    };
  });

/** With what another program may have written behind the image, and without the zeros of the area. */
async function digestConfigImage(iso: IsoImage): Promise<Digest | undefined> {
  const node = await iso.find(CONFIG_AREA_PATH);
  const bytes = node?.kind === 'file' ? await iso.readFile(node) : new Uint8Array();
  const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
  return end === 0 ? undefined : digestOf(bytes.subarray(0, end));
}

async function readEmbedArea(iso: IsoImage): Promise<Uint8Array> {
  const { offset, size } = await findEmbedArea(iso);
  return iso.readBytes(offset, size);
}

const readAll = (
  iso: IsoImage,
  { value }: OpenAttempt<Awaited<ReturnType<typeof locateKargAreas>>>,
): Promise<readonly Uint8Array[]> =>
  Promise.all((value?.areas ?? []).map(({ offset }) => iso.readBytes(offset, value?.size ?? 0)));

/** Lists everything that is embedded: the config, network profiles, and files of other tools. */
function parseArea({ config, keyfiles, others = new Map() }: Embedded): ComparedConfig | undefined {
  const files: readonly Part[] = [
    ...keyfiles.map(({ name, content }) => named('network profile', name, content)),
    ...[...others].map(([name, data]) => named('initrd file', name, digestOf(data))),
  ];
  if (config === undefined && files.length === 0) return undefined;
  const read = parseConfig(config, 'config of the embed area');
  return {
    text: formatCanonicalJson([config ?? null, ...files]),
    parts: new Map([...(read?.parts ?? []), ...listParts(files)]),
    unresolved: read?.unresolved ?? [],
  };
}

function parseConfig(text: string | undefined, name: string): ComparedConfig | undefined {
  if (text === undefined) return undefined;
  const { config, unresolved } = resolveConfig(parseIgnition(text, name));
  return { text, parts: listIgnitionParts(config), unresolved };
}

/** Lists the parts of a config by kind and name, in the order of Ignition's specification. */
export function listIgnitionParts(
  config: IgnitionConfig,
): ReadonlyMap<string, Compared<IgnitionPart>> {
  const { ignition, passwd = {}, storage = {}, systemd = {}, ...others } = config;
  return listParts([
    ...listSections('ignition', ignition),
    ...listAccounts(passwd),
    ...listStorage(storage),
    ...(systemd.units ?? []).flatMap(listUnit),
    ...Object.entries(others).map(([key, value]) => named('section', key, value)),
  ]);
}

function listParts(parts: readonly Part[]): ReadonlyMap<string, Compared<IgnitionPart>> {
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
  ...groups.map((group) => named('group', textOf(group.name), group)),
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
