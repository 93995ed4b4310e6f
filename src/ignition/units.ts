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
  const files = new Map((storage?.files ?? []).map((file) => [file.path, file]));
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
        (line) => `"${line}" is not the name of a section, so systemd refuses the unit`,
      ),
      ...exec
        .flatMap(([, values]) => listPrograms(values))
        .flatMap((program) => explainProgram(program, files)),
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

/** Explains a script that is missing or not executable, or that calls one. */
function explainProgram(
  program: string,
  files: ReadonlyMap<string, File>,
  seen: ReadonlySet<string> = new Set(),
): readonly string[] {
  if (isRelative(program)) return [`${program} is neither an absolute path nor a name`];
  if (program.replace(SCRIPTS, '') !== '' || seen.has(program)) return [];
  const file = files.get(program);
  if (file === undefined) return [`no config writes ${program}`];
  if (((file.mode ?? 0o644) & 0o111) === 0) return [`${program} is not executable`];
  const text = decodeFileContent(file)?.toString('utf8') ?? '';
  return listCalled(text).flatMap((called) =>
    explainProgram(called, files, new Set([...seen, program])),
  );
}

/** Scripts that a script calls at the start of a line; one that it sources need not be executable. */
const listCalled = (text: string): readonly string[] =>
  [...text.matchAll(/^\s*(\/usr\/local\/bin\/[\w.-]+\.sh)\b/gm)].map(([, path = '']) => path);

/** False if enabling the unit has no effect; units without contents are those of the system. */
export const isInstalled = ({ contents = '[Install]' }: Unit): boolean =>
  /^\s*\[Install\]\s*$/m.test(contents);
