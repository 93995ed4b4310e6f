import { spawnSync } from 'node:child_process';

/**
 * What systemd-analyze says of units, line by line, without what it says of this machine. Its status counts
 * that too: it alone judges nothing, but a bad one without a word is no verdict.
 */
export function judgeUnits(paths: readonly string[]): readonly string[] {
  const { error, status, stdout, stderr } = spawnSync(
    'systemd-analyze',
    ['verify', '--man=no', ...paths],
    { encoding: 'utf8' },
  );
  const lines = (stdout + stderr).split('\n').filter((line) => line !== '');
  if (error || (status !== 0 && lines.length === 0)) {
    throw new Error(`systemd-analyze ended with ${String(status)}`, { cause: error });
  }
  return lines.filter((line) => !isAboutThisMachine(line));
}

/** Other units of the machine, and podman where there is none. */
const isAboutThisMachine = (line: string): boolean =>
  /: Command \/usr\/bin\/podman is not executable|^\/(lib|usr\/lib|etc|run)\/systemd\//.test(line);
