import { isDeepStrictEqual } from 'node:util';
import { DifferenceError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { toPrintable } from '../../base/text/words.ts';
import {
  chooseRebased,
  formatValidIgnition,
  type IgnitionConfig,
  parseIgnition,
  parseResolved,
  rebaseConfig,
  resolveConfig,
  type Sides,
} from '../../ignition/index.ts';
import { describeLiveSystem } from '../../openshift/agent/live-system.ts';
import { type AreaValues, planContents, readSameKargs } from '../area-values.ts';
import { decodeEmbedded, type Embedded, encodeEmbedded, type OverlayPart } from '../areas.ts';
import { isEmptyArea } from '../config-area.ts';
import { readHeldImage } from '../held-image.ts';
import { hasPartsOf, judgeAreas } from '../judge-areas.ts';
import type { MediumAreas } from '../medium.ts';

/* Carries the values of a site from one medium to the next release of it. */

/** The bytes that give a medium the values of another one. */
export type CarriedValues = {
  readonly parts: readonly OverlayPart[];
  /** Changed parts of the areas, such as `storage.files /etc/motd`, without their contents. */
  readonly names: readonly string[];
};

/** A medium whose build left contents that are known. */
export type BuiltAreas = MediumAreas & { readonly built: AreaValues };

/** Plans the changes that were made to `from` since it was built as changes of `onto`. */
export async function carryValues(from: BuiltAreas, onto: MediumAreas): Promise<CarriedValues> {
  await requireWorking(from);
  const archive = await rebaseArchive({
    before: from.built.archive,
    now: from.embed.bytes,
    base: onto.embed.bytes,
  });
  const [now, base] = [readSameKargs(from), readSameKargs(onto)];
  const kargs =
    now === undefined || base === undefined
      ? UNREADABLE
      : rebaseKargs({ before: from.built.kargs, now, base });
  const image = await carryConfigImage(from, onto);
  const conflicts = [...archive.conflicts, ...kargs.conflicts, ...image.conflicts];
  if (conflicts.length > 0) throw createConflict(conflicts);
  const parts = planContents(onto, { archive: archive.value, kargs: kargs.value }, 'built');
  return {
    parts: parts.map((part) => (part.kind === 'config-image' ? (image.value ?? part) : part)),
    names: [...archive.changed, ...kargs.changed, ...image.changed],
  };
}

/** An image is for one release, byte by byte: the new medium must take it too. */
async function carryConfigImage(
  from: MediumAreas,
  onto: MediumAreas,
): Promise<Joined<OverlayPart | undefined>> {
  const [held, room] = [from, onto].map(({ now }) =>
    now.find(({ kind }) => kind === 'config-image'),
  );
  if (!held || isEmptyArea(held.bytes)) return { value: undefined, changed: [], conflicts: [] };
  const { config = '{}' } = await decodeEmbedded(onto.embed.bytes);
  const system = describeLiveSystem([parseResolved(config, CONFIG)]);
  const now = room ? [{ ...room, bytes: held.bytes }] : [];
  const isTaken =
    held.bytes.length === room?.bytes.length &&
    (await readHeldImage({ now, system }))?.problem === undefined;
  const names = ['the configuration image'];
  return { value: now[0], changed: names, conflicts: isTaken ? [] : names };
}

/** Refuses a medium whose own config is gone: its values would take the other one's own config away too. */
async function requireWorking(areas: MediumAreas): Promise<void> {
  const { problem } = (await judgeAreas(areas)).find((area) => area.problem !== undefined) ?? {};
  if (problem === undefined) return;
  throw new DifferenceError('delta.values', `the old ISO is customised, but an area ${problem}`, {
    hint: 'reset it with "sealift customize --reset", and apply the delta then',
  });
}

const listNames = (names: readonly string[]): string => names.map(toPrintable).join(', ');

const createConflict = (names: readonly string[]): DifferenceError =>
  new DifferenceError(
    'delta.values',
    `the old ISO is customised, and the new one has no place for ${listNames(names)}: nothing was written`,
    {
      expected: 'parts that the new release has as the old one had them',
      found: listNames(names),
      hint: 'reset the old ISO with "sealift customize --reset", apply the delta, and customise the new ISO',
    },
  );

type Joined<Value> = {
  readonly value: Value;
  readonly changed: readonly string[];
  readonly conflicts: readonly string[];
};

async function rebaseArchive(archives: Sides<Uint8Array>): Promise<Joined<Uint8Array>> {
  const before = await decodeEmbedded(archives.before);
  const now = await decodeEmbedded(archives.now);
  const base = await decodeEmbedded(archives.base);
  const config = rebaseText({ before: before.config, now: now.config, base: base.config });
  const files = rebaseFiles({ before: filesOf(before), now: filesOf(now), base: filesOf(base) });
  const changed = [...config.changed, ...files.changed];
  const embedded = { ...files.value, ...withoutUndefined({ config: config.value }) };
  return {
    value: changed.length === 0 ? archives.base : encodeEmbedded(embedded),
    changed,
    conflicts: [...config.conflicts, ...files.conflicts],
  };
}

const CONFIG = 'the Ignition config';

function rebaseText(sides: Sides<string | undefined>): Joined<string | undefined> {
  const { before, now, base } = sides;
  if (before !== undefined && now !== undefined && base !== undefined) {
    const { config, ...found } = rebaseConfig({
      before: parseIgnition(before, CONFIG),
      now: readChanged(now, before),
      base: parseIgnition(base, CONFIG),
    });
    return { value: formatValidIgnition(config, CONFIG), ...found };
  }
  const changed = before === now ? [] : [CONFIG];
  const chosen = chooseRebased(sides);
  return { value: chosen ? chosen.value : base, changed, conflicts: chosen ? [] : changed };
}

/** Reads a changed config; if its own parts are inside configs that it merges, with these configs merged. */
function readChanged(now: string, before: string): IgnitionConfig {
  const config = parseIgnition(now, CONFIG);
  return hasPartsOf(before)(config) ? config : resolveConfig(config).config;
}

type Files = Required<Pick<Embedded, 'keyfiles' | 'others'>>;

const filesOf = ({ keyfiles, others = new Map() }: Embedded): Files => ({ keyfiles, others });

function rebaseFiles({ before, now, base }: Sides<Files>): Joined<Files> {
  const profiles = rebaseNames({ before: mapOf(before), now: mapOf(now), base: mapOf(base) });
  const others = rebaseNames({ before: before.others, now: now.others, base: base.others });
  const keyfiles = [...profiles.value].map(([name, content]) => ({ name, content }));
  return {
    value: { keyfiles, others: others.value },
    changed: [...profiles.changed, ...others.changed],
    conflicts: [...profiles.conflicts, ...others.conflicts],
  };
}

const mapOf = ({ keyfiles }: Files): ReadonlyMap<string, string> =>
  new Map(keyfiles.map(({ name, content }) => [name, content]));

function rebaseNames<Value>({
  before,
  now,
  base,
}: Sides<ReadonlyMap<string, Value>>): Joined<ReadonlyMap<string, Value>> {
  const names = [...new Set([...base.keys(), ...now.keys(), ...before.keys()])];
  const sides = names.map((name) => ({
    name,
    before: before.get(name),
    now: now.get(name),
    base: base.get(name),
  }));
  const changed = sides.filter((each) => !isDeepStrictEqual(each.before, each.now));
  const value = sides.flatMap(({ name, ...each }): readonly (readonly [string, Value])[] => {
    const { value } = chooseRebased(each) ?? { value: each.base };
    return value === undefined ? [] : [[name, value]];
  });
  return {
    value: new Map(value),
    changed: changed.map(({ name }) => name),
    conflicts: changed.filter((each) => !chooseRebased(each)).map(({ name }) => name),
  };
}

const UNREADABLE: Joined<string> = { value: '', changed: [], conflicts: ['kernel arguments'] };

/** An argument that was replaced stays in its place, and one that was added is the last. */
function rebaseKargs({ before, now, base }: Sides<string>): Joined<string> {
  const changed = before === now ? [] : ['kernel arguments'];
  const chosen = chooseRebased({ before, now, base });
  if (chosen) return { value: chosen.value, changed, conflicts: [] };
  const { replaced, added } = compareKargs(before.split(' '), now.split(' '));
  const words = base.split(' ');
  const lost = [...replaced.keys()].filter(
    (word) => replaced.get(word) !== undefined && !words.includes(word),
  );
  const kept = words
    .filter((word) => !added.includes(word))
    .flatMap((word) => (replaced.has(word) ? (replaced.get(word) ?? []) : word));
  return {
    value: [...kept, ...added].join(' '),
    changed,
    conflicts: lost.map((word) => `kernel argument ${word}`),
  };
}

type KargChanges = {
  /** Words with those that replaced them; undefined for removed words. */
  readonly replaced: ReadonlyMap<string, string | undefined>;
  readonly added: readonly string[];
};

/** Compares lists of words; a word of the same key in the place of another one replaced it. */
function compareKargs(before: readonly string[], now: readonly string[]): KargChanges {
  const replaced = new Map<string, string | undefined>();
  let next = 0;
  for (const [index, word] of before.entries()) {
    const found = now[next];
    const isRemoved = found !== word && found === before[index + 1];
    const isSame = found !== undefined && !isRemoved && keyOf(found) === keyOf(word);
    if (isSame) next += 1;
    if (found !== word) replaced.set(word, isSame ? found : undefined);
  }
  return { replaced, added: now.slice(next) };
}

const keyOf = (word: string): string => word.split('=')[0] ?? '';
