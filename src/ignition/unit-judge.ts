import { join } from 'node:path';
import { makeDirectory } from '../base/disk/files.ts';
import { writeNewFile } from '../base/disk/open-file.ts';
import { useTemporaryFolder } from '../base/disk/temporary.ts';
import { ToolError } from '../base/errors.ts';
import { append } from '../base/lists.ts';
import { findVersion, runProcess } from '../base/process.ts';
import { toPrintable } from '../base/text/words.ts';
import type { IgnitionConfig, Unit } from './schema.ts';
import type { UnitFault } from './units.ts';

/* This file owns the program systemd-analyze. */

/** The installed systemd, which loads units without starting them. */
export type UnitJudge = {
  /** Program and version, as a report names it. */
  readonly name: string;
  /** Finds the units that systemd refuses to load. */
  readonly judge: (config: IgnitionConfig, signal: AbortSignal) => Promise<readonly UnitFault[]>;
};

const TIMEOUT_MS = 30_000;

/**
 * Finds systemd-analyze; undefined if it is not installed.
 *
 * @param env only its PATH is used; without PATH, systemd-analyze is not found
 */
export async function findUnitJudge({
  env,
  signal,
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}): Promise<UnitJudge | undefined> {
  const { PATH } = env;
  const printed = await findVersion('systemd-analyze', { PATH, signal });
  const version = /^systemd (\d+)/.exec(printed ?? '')?.[1] ?? '0';
  // 250 is the first that can leave out other units.
  if (PATH === undefined || Number(version) < 250) return undefined;
  return {
    name: `systemd-analyze ${version}`,
    judge: (config, signal) => verify(config, { PATH, signal }),
  };
}

/** systemd.unit(5): the characters, types and length of a name, which becomes a file here. */
const UNIT_NAME =
  /^(?=.{1,255}$)[\w:.\\@-]+\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;
const DROPIN_NAME = /^(?=.{1,255}$)[\w:.\\@-]+\.conf$/;

/** Units in one command, whose length the system limits. */
const UNITS_AT_ONCE = 500;

const isLoadable = ({ name, contents, mask }: Unit): boolean =>
  mask !== true && (contents ?? '') !== '' && UNIT_NAME.test(name);

async function verify(
  { systemd }: IgnitionConfig,
  { PATH, signal }: { readonly PATH: string; readonly signal: AbortSignal },
): Promise<readonly UnitFault[]> {
  // Ignition refuses two units with one name; the last of them is loaded here.
  const units = [...byName((systemd?.units ?? []).filter(isLoadable)).values()];
  if (units.length === 0) return [];
  return useTemporaryFolder(async (folder) => {
    for (const unit of units) await writeUnit(folder, unit);
    const faults: UnitFault[] = [];
    for (let at = 0; at < units.length; at += UNITS_AT_ONCE) {
      const names = units.slice(at, at + UNITS_AT_ONCE).map(({ name }) => name);
      const said = (await load(names, { folder, PATH, signal })).split('\n');
      for (const name of names) append(faults, readFault(said, { name, folder }));
    }
    return faults;
  });
}

const byName = <Named extends { readonly name: string }>(
  list: readonly Named[],
): ReadonlyMap<string, Named> => new Map(list.map((one) => [one.name, one]));

type Loading = { readonly folder: string; readonly PATH: string; readonly signal: AbortSignal };

/** Loads units. @returns the output of systemd-analyze if it finds faults */
async function load(names: readonly string[], { folder, PATH, signal }: Loading): Promise<string> {
  let said = '';
  try {
    // Other units of this machine must not take part.
    const env = { PATH, SYSTEMD_UNIT_PATH: folder, SYSTEMD_COLORS: '0', LC_ALL: 'C' };
    await runProcess(
      'systemd-analyze',
      [...ARGUMENTS, ...names.map((name) => join(folder, name))],
      {
        env,
        timeout: TIMEOUT_MS,
        signal,
        onFailure: (output) => {
          said = output;
        },
      },
    );
  } catch (error) {
    // It also fails for programs that this machine does not have.
    if (!(error instanceof ToolError) || error.code !== 'tool.failed') throw error;
  }
  return said;
}

const ARGUMENTS: readonly string[] = ['verify', '--man=no', '--recursive-errors=no'];

async function writeUnit(folder: string, { name, contents = '', dropins = [] }: Unit) {
  await writeNewFile(join(folder, name), contents);
  for (const dropin of byName(dropins.filter((one) => DROPIN_NAME.test(one.name))).values()) {
    await makeDirectory(join(folder, `${name}.d`));
    await writeNewFile(join(folder, `${name}.d`, dropin.name), dropin.contents ?? '');
  }
}

/** The reason stands before the verdict, with the name of the unit or with the place in its file. */
function readFault(
  said: readonly string[],
  { name, folder }: { readonly name: string; readonly folder: string },
): readonly UnitFault[] {
  const instance = name.replace('@.', '@i.'); // systemd makes one of a template to load it
  const isRefused = said.some((line) =>
    VERDICTS.some((verdict) => line.startsWith(`Unit ${instance} ${verdict}`)),
  );
  if (!isRefused) return [];
  const heads = [`${instance}: `, `${folder}/${instance}`, `${folder}/${name}`];
  const reasons = said.flatMap((line) => {
    const head = heads.find((one) => line.startsWith(one));
    return head === undefined ? [] : [line.slice(head.length).replace(/^:/, 'line ')];
  });
  return [
    { unit: name, problem: `systemd refuses it: ${toPrintable([...new Set(reasons)].join('; '))}` },
  ];
}

const VERDICTS: readonly string[] = ['has a bad unit file setting', 'failed to load'];
