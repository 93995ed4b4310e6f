import { printable } from '../base/text/words.ts';
import type { File, IgnitionConfig, Unit } from './schema.ts';
import { decodeFileContent } from './resource.ts';
import { listPrograms, readUnitFile, type UnitFile } from './unit-file.ts';

/** A reason why systemd does not start a unit, or why what it starts fails at once. */
export type UnitFault = { readonly unit: string; readonly problem: string };

/** CoreOS has no file of its own here: every script in it comes from a config. */
const SCRIPTS = /\/usr\/local\/bin\/[\w.-]+\.sh\b/g;

/**
 * Finds units that cannot do their work: services without a command, units with a broken section, and commands or
 * scripts that name a script which no config writes, or which is not executable. Units that nothing enables count too, because others start
 * them. Programs other than scripts may come from the system or from an image.
 */
export function findUnitFaults({ systemd, storage }: IgnitionConfig): readonly UnitFault[] {
  const explain = createExplainer(storage?.files ?? []);
  const units = (systemd?.units ?? []).filter(({ mask }) => mask !== true);
  return units.flatMap((unit) => {
    const dropins = (unit.dropins ?? []).map(({ contents = '' }) => contents);
    const read = readUnitFile([unit.contents ?? '', ...dropins]);
    const exec = [...read.values].filter(([name]) =>
      /^(?:Service|Socket|Mount|Swap)\.Exec/.test(name),
    );
    const problems = [
      ...explainCommandless(unit, read),
      ...read.broken.map(
        (line) => `"${printable(line)}" is not the name of a section, so systemd refuses the unit`,
      ),
      ...explain(exec.flatMap(([, values]) => listPrograms(values))),
    ];
    return [...new Set(problems)].map((problem) => ({ unit: unit.name, problem }));
  });
}

/** systemd.service(5): a service without ExecStart= must have RemainAfterExit= and ExecStop=, or SuccessAction=. */
function explainCommandless(
  { name, contents = '' }: Unit,
  { values }: UnitFile,
): readonly string[] {
  // A unit without contents is one of the system, or masked.
  if (contents === '' || !name.endsWith('.service')) return [];
  const has = (key: string): boolean => (values.get(key) ?? []).length > 0;
  const stays = /^(?:1|y|yes|t|true|on)$/i.test(
    values.get('Service.RemainAfterExit')?.at(-1) ?? '',
  );
  return has('Service.ExecStart') || has('Unit.SuccessAction') || (stays && has('Service.ExecStop'))
    ? []
    : [`${name} has no command, so systemd refuses it`];
}

/** systemd.service(5): an absolute path, or a name that is looked up. */
const isRelative = (program: string): boolean => /^[^/%$][^/]*\//.test(program);

/**
 * Explains programs that cannot start, and scripts which those call. A called script is read once, so its fault
 * is found for the first program that leads to it.
 */
function createExplainer(list: readonly File[]): (programs: readonly string[]) => string[] {
  const files = new Map(list.map((file) => [file.path, file]));
  const followed = new Set<string>();
  return (programs) => {
    const problems: string[] = [];
    const open = new Set(programs);
    // Programs that are added to a set while it is read come up, too.
    for (const program of open) {
      const file = files.get(program);
      const problem = explainProgram(program, file);
      if (problem !== undefined) problems.push(problem);
      else if (file && isScript(program) && !followed.has(program))
        for (const called of listCalled(file)) if (!followed.has(called)) open.add(called);
      followed.add(program);
    }
    return problems;
  };
}

const isScript = (program: string): boolean => program.replace(SCRIPTS, '') === '';

function explainProgram(program: string, file: File | undefined): string | undefined {
  if (isRelative(program)) return `${program} is neither an absolute path nor a name`;
  if (!isScript(program)) return undefined;
  if (file === undefined) return `no config writes ${program}`;
  return ((file.mode ?? 0o644) & 0o111) === 0 ? `${program} is not executable` : undefined;
}

/** Scripts that a script calls at the start of a line; one that it sources need not be executable. */
const listCalled = (file: File): readonly string[] => {
  const text = decodeFileContent(file)?.toString('utf8') ?? '';
  const calls = text.matchAll(/^[ \t]*(\/usr\/local\/bin\/[\w.-]+\.sh)\b/gm);
  return [...calls].map(([, path = '']) => path);
};

/** False if enabling the unit has no effect; units without contents are those of the system. */
export const isInstalled = ({ contents = '[Install]' }: Unit): boolean =>
  /^[ \t]*\[Install\][ \t\r]*$/m.test(contents);
