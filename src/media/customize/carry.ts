import { isDeepStrictEqual } from 'node:util';
import { DifferenceError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  chooseRebased,
  formatValidIgnition,
  type IgnitionConfig,
  parseIgnition,
  rebaseConfig,
  type Sides,
} from '../../ignition/index.ts';
import { editKargs } from '../../iso/index.ts';
import { type AreaValues, planContents, readSameKargs } from '../area-values.ts';
import { decodeEmbedded, type Embedded, encodeEmbedded, type OverlayPart } from '../areas.ts';
import { judgeAreas } from '../judge-areas.ts';
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

/**
 * Plans the changes that were made to a medium since it was built as changes of another medium as built.
 *
 * @throws DifferenceError `delta.values` if the other medium has no place for a value, or if both changed the
 * same part; IntegrityError `customize.too-large`; UsageError `kargs.too-large`
 */
export async function carryValues(from: BuiltAreas, onto: BuiltAreas): Promise<CarriedValues> {
  await requireWorking(from);
  const archives = { before: from.built.archive, now: from.embed.bytes, base: onto.built.archive };
  const archive = await rebaseArchive(archives);
  const now = readSameKargs(from);
  const sides = { before: from.built.kargs, base: onto.built.kargs };
  const kargs = now === undefined ? undefined : rebaseKargs({ ...sides, now });
  const conflicts = [...archive.conflicts, ...(kargs === undefined ? ['kernel arguments'] : [])];
  if (conflicts.length > 0) throw createConflict(conflicts);
  const contents = { archive: archive.value, kargs: kargs?.text ?? onto.built.kargs };
  return {
    parts: planContents(onto, contents, 'built'),
    names: [...archive.changed, ...(kargs?.isChanged === true ? ['kernel arguments'] : [])],
  };
}

/** Refuses a medium whose own config is gone: its values would take the other one's own config away too. */
async function requireWorking(areas: MediumAreas): Promise<void> {
  const { problem } = (await judgeAreas(areas)).find((area) => area.problem !== undefined) ?? {};
  if (problem === undefined) return;
  throw new DifferenceError('delta.values', `the old ISO is customised, but an area ${problem}`, {
    hint: 'reset it with "sealift customize --reset", and apply the delta then',
  });
}

const createConflict = (names: readonly string[]): DifferenceError =>
  new DifferenceError(
    'delta.values',
    `the old ISO is customised, and the new one has no place for ${names.join(', ')}: nothing was written`,
    {
      expected: 'parts that the new release has as the old one had them',
      found: names.join(', '),
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
    const parsed = [before, now, base].map((text) => parseIgnition(text, CONFIG));
    const [first, second, third] = parsed as [IgnitionConfig, IgnitionConfig, IgnitionConfig];
    const { config, ...found } = rebaseConfig({ before: first, now: second, base: third });
    return { value: formatValidIgnition(config, CONFIG), ...found };
  }
  const changed = before === now ? [] : [CONFIG];
  const chosen = chooseRebased(sides);
  return { value: chosen ? chosen.value : base, changed, conflicts: chosen ? [] : changed };
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

/** Makes the changes of kernel arguments in other ones; undefined if the arguments were also reordered. */
function rebaseKargs({
  before,
  now,
  base,
}: Sides<string>): { readonly text: string; readonly isChanged: boolean } | undefined {
  const chosen = chooseRebased({ before, now, base });
  if (chosen) return { text: chosen.value, isChanged: before !== now };
  const [earlier, later] = [before.split(' '), now.split(' ')];
  const edits = {
    remove: earlier.filter((word) => !later.includes(word)),
    append: later.filter((word) => !earlier.includes(word)),
  };
  const isWhole = editKargs(before, edits) === now;
  return isWhole ? { text: editKargs(base, edits), isChanged: true } : undefined;
}
