import { describe, expect, it } from 'vitest';
import { textFile } from '../../../src/ignition/config.ts';
import { renderText } from '../../../src/openshift/node/registry.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';

const NAME = 'install-rhcos-and-restore-seed.sh';

/** Fails as often as it is told, and then has a container with a program in it. */
const PODMAN = textFile(
  '/usr/local/bin/podman',
  `#!/usr/bin/env bash
echo "podman $*"
case "$1" in
  create) left=$(cat /tmp/failures 2>/dev/null || echo 0)
    echo $((left - 1)) >/tmp/failures
    ((left <= 0)) ;;
  cp) printf '#!/bin/sh\\necho "lca-cli $*"\\nexit %s\\n' "\${STATUS:-0}" >"$3"; chmod 0755 "$3" ;;
esac
`,
  0o755,
);
const SLEEP = textFile('/usr/local/bin/sleep', '#!/bin/sh\necho "sleep $*"\n', 0o755);
const SCRIPT = textFile(`/usr/local/bin/${NAME}`, renderText(`ibi/${NAME}`), 0o555);

const run = (script: string) => runInThrowAwayRoot([PODMAN, SLEEP, SCRIPT], script);

describe.skipIf(!hasThrowAwayRoot())(NAME, () => {
  it('runs the program of the seed image on the configuration', async () => {
    const { stdout, exitCode } = await run(`SEED_IMAGE=quay.io/seed:1 ${NAME}`);
    expect(exitCode).toBe(0);
    expect(stdout.split('\n')).toEqual([
      'podman rm --force --ignore lca-cli',
      'podman create --authfile /var/tmp/pull-secret.json --name lca-cli quay.io/seed:1 lca-cli',
      'podman cp lca-cli:lca-cli /usr/local/bin/lca-cli',
      'podman rm lca-cli',
      'lca-cli ibi -f /var/tmp/ibi-configuration.json',
      '',
    ]);
  });

  it('uses another image, pull secret and configuration if its environment names them', async () => {
    const { stdout } = await run(
      `SEED_IMAGE=no PULL_SECRET_FILE=/a IBI_CONFIGURATION_FILE=/b ${NAME} quay.io/other:1`,
    );
    expect(stdout).toContain('--authfile /a --name lca-cli quay.io/other:1 lca-cli');
    expect(stdout).toContain('lca-cli ibi -f /b');
  });

  it('retries every ten seconds until the image is available', async () => {
    const { stdout, stderr } = await run(`echo 2 >/tmp/failures; ${NAME} quay.io/seed:1`);
    expect(stdout.match(/^podman create/gm)).toHaveLength(3);
    expect(stdout.match(/^sleep 10$/gm)).toHaveLength(2);
    expect(stderr).toContain('quay.io/seed:1 cannot be pulled, trying again');
  });

  it('ends with the exit code of the program of the seed image', async () => {
    expect((await run(`STATUS=7 ${NAME} quay.io/seed:1`)).exitCode).toBe(7);
  });

  it('fails if no seed image is named', async () => {
    const { exitCode, stdout, stderr } = await run(NAME);
    expect([exitCode, stdout]).toEqual([1, '']);
    expect(stderr).toContain('seed image: none is named');
  });
});
