import type { File, Unit } from '../../src/ignition/index.ts';
import { textFile } from '../../src/ignition/index.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot, type Run } from './throw-away-root.ts';
import { requireTool } from './tools.ts';

/** Whether scripts can run below a systemd of their own. */
export const hasThrowAwaySystemd = (): boolean => hasThrowAwayRoot() && requireTool('systemctl');

// A user's manager needs neither PID 1 nor a bus. `await` gives what is slow on a busy machine its time.
const START = `
mkdir --parents /run/systemd/system /run/user/0
export XDG_RUNTIME_DIR=/run/user/0
await() {
  local tries
  for ((tries = 0; tries < 200; tries++)); do
    if eval "$1"; then return; fi
    sleep 0.1
  done
  echo "never: $1"
  systemctl --user --no-pager status '*' >&2
  kill "\${manager}"
  exit 1
}
/lib/systemd/systemd --user --log-target=console >&2 &
manager=$!
await 'systemctl --user list-units >/dev/null 2>&1'
`;
const STOP = `
kill "\${manager}"
wait "\${manager}"
true
`;

/**
 * Runs a bash script beside a real systemd that has these units. The script uses `systemctl --user`, and
 * \`await 'command'\` until a command succeeds.
 */
export const runBelowSystemd = (
  units: readonly Unit[],
  files: readonly File[],
  script: string,
): Promise<Run> => {
  const unitFiles = units.flatMap(({ name, contents, dropins = [] }) => [
    ...(contents === undefined ? [] : [textFile(`/etc/systemd/user/${name}`, contents, 0o644)]),
    ...dropins.map((dropin) =>
      textFile(`/etc/systemd/user/${name}.d/${dropin.name}`, dropin.contents ?? '', 0o644),
    ),
  ]);
  const enabled = units.filter((unit) => unit.enabled === true).map(({ name }) => name);
  const enable =
    enabled.length === 0 ? '' : `systemctl --global --quiet enable ${enabled.join(' ')}`;
  return runInThrowAwayRoot([...files, ...unitFiles], `${enable}\n${START}\n${script}\n${STOP}`);
};
