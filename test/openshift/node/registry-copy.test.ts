import { describe, expect, it } from 'vitest';
import { textFile } from '../../../src/ignition/config.ts';
import { renderInstallIgnition } from '../../../src/openshift/node/install.ts';
import { bootstrapInput } from '../../support/node-configs.ts';
import { sampleKills } from '../../support/kills.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';

const runs = describe.skipIf(!hasThrowAwayRoot());

const filesOf = (change: Partial<typeof bootstrapInput> = {}) =>
  (
    renderInstallIgnition({
      ...bootstrapInput,
      registryTree: { ...bootstrapInput.registryTree, size: 30_720 },
      ...change,
    }).storage?.files ?? []
  ).filter(({ path }) => path.startsWith('/usr/local/bin/'));

const SYSTEMCTL = textFile(
  '/usr/local/bin/systemctl',
  '#!/bin/sh\necho "$*" >>/tmp/systemctl\n',
  0o755,
);

/** Read by bash before each script: ends the script by SIGKILL ahead of its command number KILL_AT. */
const KILLER = textFile(
  '/opt/killer',
  `if [[ -n "\${KILL_AT:-}" ]]; then
  killer_step=0
  set -o functrace
  trap 'if ((++killer_step >= KILL_AT)); then kill -KILL $$; fi' DEBUG
fi
`,
  0o644,
);

/**
 * A registry tree of five blobs in \`$1\`, or of \`$2\`, whose digest the script then knows, and beside
 * it the functions that the tests share. \`state\` prints one digest over names and bytes of a tree.
 */
const FUNCTIONS = textFile(
  '/opt/functions',
  `export BASH_ENV=/opt/killer
sed -i 's/^readonly reserve=.*/readonly reserve=0/' /usr/local/bin/copy-registry-data.sh
sed -i 's/^readonly wait_limit=.*/readonly wait_limit=0/' /usr/local/bin/mount-agent-data.sh
tree() {
  local number hex
  mkdir -p "$1/images/registry"
  echo '{}' >"$1/images/registry/manifest.json"
  echo 'Directory Transport Version: 1.1' >"$1/images/registry/version"
  for ((number = 1; number <= \${2:-5}; number++)); do
    yes "blob $number" | head -c $((number * 2000)) >/tmp/blob
    hex="$(sha256sum /tmp/blob | cut -c -64)"
    mkdir -p "$1/docker/registry/v2/blobs/sha256/\${hex:0:2}/$hex"
    cp /tmp/blob "$1/docker/registry/v2/blobs/sha256/\${hex:0:2}/$hex/data"
    mkdir -p "$1/docker/registry/v2/repositories/openshift/release/_layers/sha256/$hex"
    printf 'sha256:%s' "$hex" >"$1/docker/registry/v2/repositories/openshift/release/_layers/sha256/$hex/link"
  done
  cp /tmp/blob "$1/images/registry/$hex"
  hex="$(cd "$1" && find docker images -type f -exec sha256sum {} + | LC_ALL=C sort | sha256sum | cut -c -64)"
  sed -i "s/^readonly tree_digest=.*/readonly tree_digest=$hex/" /usr/local/bin/copy-registry-data.sh
}
medium() { mkdir -p /run/media/iso; mount -t tmpfs tmpfs /run/media/iso; tree /run/media/iso/registry "$@"; }
state() { (cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -c -16); }
copy=/var/lib/appliance-registry
`,
  0o644,
);

/** Head of a loop over the steps that are killed, with `at`. */
function killsOf(title: string): string {
  const { first, stride } = sampleKills(title, 5);
  return `for ((at = ${first}; ; at += ${stride}))`;
}

const run = (
  script: string,
  change: Partial<typeof bootstrapInput> = {},
): ReturnType<typeof runInThrowAwayRoot> =>
  runInThrowAwayRoot(
    [...filesOf(change), SYSTEMCTL, KILLER, FUNCTIONS],
    `. /opt/functions\n${script}`,
    { timeoutMs: 300_000 },
  );

runs('copy-registry-data.sh', () => {
  it('copies the tree of the medium once, and the registry then no longer needs the medium', async () => {
    const { stdout, stderr } = await run(`
      medium; mount-agent-data.sh; state /run/media/iso/registry
      copy-registry-data.sh; cat /tmp/systemctl; state $copy; ls -d $copy*
      mount-agent-data.sh; mountpoint -q /run/media/iso || echo medium is released
      copy-registry-data.sh; cat /tmp/systemctl; state /mnt/agentdata
      find $copy -printf '%m\\n' | sort -u`);
    expect(stderr).toBe('');
    const [, wanted, ...lines] = stdout.trimEnd().split('\n');
    expect(lines).toEqual([
      'registry data: copying 30.0KiB from the appliance ISO: leave it attached',
      'registry data: /var/lib/appliance-registry is complete: the appliance ISO is no longer needed and may be detached',
      '--no-block try-restart start-local-registry.service',
      wanted,
      '/var/lib/appliance-registry',
      'agent data: /var/lib/appliance-registry is at /mnt/agentdata',
      'medium is released',
      '--no-block try-restart start-local-registry.service',
      wanted,
      '644',
      '755',
    ]);
  });

  it('ends with the same complete copy wherever SIGKILL ends its first run', async () => {
    const { stdout, stderr } = await run(`
      medium 2; mount-agent-data.sh >/dev/null; wanted="$(state /run/media/iso/registry)"
      ${killsOf('a copy')}; do
        rm -rf $copy $copy.* /tmp/systemctl
        if KILL_AT=$at copy-registry-data.sh >/dev/null 2>&1; then break; fi
        if [[ -e $copy && "$(state $copy)" != "$wanted" ]]; then echo "half a copy at $at"; fi
        copy-registry-data.sh >/dev/null || echo "failed after $at"
        [[ "$(state $copy)" == "$wanted" ]] || echo "wrong after $at"
        [[ "$(echo $copy*)" == $copy ]] || echo "something is left after $at"
        grep -q try-restart /tmp/systemctl || echo "not switched after $at"
      done 2>/dev/null
      echo "steps: $at"`);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^steps: \d+\n$/);
    expect(Number(stdout.slice('steps: '.length))).toBeGreaterThan(30);
  }, 300_000);

  it('continues after a kill in the middle of a blob without copying the others again', async () => {
    const { stdout, stderr } = await run(`
      medium; mount-agent-data.sh >/dev/null
      printf '#!/bin/bash
/usr/bin/cp "$@"; for last; do :; done; [[ "$last" != */data || $(stat -c %%s "$last") != 6000 ]] || { truncate -s 5000 "$last"; kill -KILL $PPID; }' >/usr/local/bin/cp
      chmod 0755 /usr/local/bin/cp
      copy-registry-data.sh; echo "exit $?"; rm /usr/local/bin/cp; hash -r
      torn=$(find $copy.partial -name data -size -5001c -size +4999c | wc -l); echo "torn: $torn"
      find $copy.partial -name data -printf '%f %i\\n' | sort >/tmp/before
      copy-registry-data.sh 2>&1 | sed 's/[0-9a-f]\\{64\\}/HEX/; s/[0-9a-f][0-9a-f].HEX/HEX/'
      find $copy -name data -printf '%f %i\\n' | sort >/tmp/after
      [[ $(comm -12 /tmp/before /tmp/after | wc -l) == $(($(wc -l </tmp/before) - 1)) ]] && echo kept
      [[ "$(state $copy)" == "$(state /run/media/iso/registry)" ]] && echo same`);
    expect(stderr).toContain('Killed');
    expect(stdout.split('\n').filter((line) => !/copying|is complete/.test(line))).toEqual([
      'exit 137',
      'torn: 1',
      'registry data: verifying what this host has of it',
      'registry data: docker/registry/v2/blobs/sha256/HEX/data is not what its digest says',
      'registry data: a part is missing or damaged: it is copied again',
      'kept',
      'same',
      '',
    ]);
  });

  it('finds a blob that was damaged on the disk and copies it again', async () => {
    const { stdout } = await run(`
      medium; mkdir $copy.partial; cp -r --preserve=timestamps /run/media/iso/registry/. $copy.partial
      f=$(find $copy.partial -name data | head -1); t=$(stat -c %y $f)
      printf X | dd of=$f conv=notrunc status=none; touch -d "$t" $f
      copy-registry-data.sh 2>&1 | grep -c 'is not what its digest says'
      [[ "$(state $copy)" == "$(state /run/media/iso/registry)" ]] && echo same`);
    expect(stdout).toBe('1\nsame\n');
  });

  it('gives up a medium that is damaged itself, and the host keeps serving from it', async () => {
    const { stdout, stderr } = await run(`
      medium; mount-agent-data.sh >/dev/null
      printf X | dd of=$(find /run/media/iso/registry -name data | head -1) conv=notrunc status=none
      copy-registry-data.sh; echo "exit $?"; ls -d $copy; ls /tmp/systemctl
      mount-agent-data.sh`);
    expect(stderr).toContain(
      'damaged after 3 copies: the appliance ISO cannot be read correctly; this host keeps serving from it',
    );
    expect(stdout).toContain('exit 3\n');
    expect(stdout).toContain('/run/media/iso/registry is at /mnt/agentdata');
    expect(stdout).not.toContain('appliance-registry\n');
  });

  it('names both numbers on a disk that is too small, and the host keeps serving from the medium', async () => {
    const { stdout, stderr } = await run(
      `medium; mount -t tmpfs -o size=64m tmpfs /var/lib
      sed -i 's/^readonly reserve=.*/readonly reserve=$((10 * 1024 ** 3))/' /usr/local/bin/copy-registry-data.sh
      copy-registry-data.sh; echo "exit $?"; ls -A /var/lib; mount-agent-data.sh`,
      { registryTree: { ...bootstrapInput.registryTree, size: 21_474_836_480 } },
    );
    expect(stderr).toBe(
      'registry data: a copy needs 30.0GiB on the disk, but 64.0MiB are free: this host keeps serving ' +
        'from the medium, so leave it attached\n',
    );
    expect(stdout).toBe('exit 3\nagent data: /run/media/iso/registry is at /mnt/agentdata\n');
  });

  it('leaves no copy that looks complete when the disk fills up while it copies', async () => {
    const { stdout, stderr } = await run(`
      medium; mount -t tmpfs -o size=64k tmpfs /var/lib
      copy-registry-data.sh; echo "exit $?"; ls /var/lib
      mount -o remount,size=8m /var/lib; copy-registry-data.sh >/dev/null; ls /var/lib`);
    expect(stderr).toContain('No space left on device');
    expect(stdout).toBe(
      'registry data: copying 30.0KiB from the appliance ISO: leave it attached\n' +
        'exit 1\nappliance-registry.checks\nappliance-registry.partial\nappliance-registry\n',
    );
  });

  it('frees the disk if it became too small for the rest of the copy', async () => {
    const { stdout, stderr } = await run(
      `medium; mount -t tmpfs -o size=64m tmpfs /var/lib; mkdir $copy.partial; truncate -s 1k $copy.partial/begun
      copy-registry-data.sh >/dev/null; echo "exit $?"; ls -A /var/lib`,
      { registryTree: { ...bootstrapInput.registryTree, size: 21_474_836_480 } },
    );
    expect(stderr).toContain('this host keeps serving from the medium');
    expect(stdout).toBe('exit 3\n');
  });

  it('keeps the content that the registry shows if the disk is too small for the rest', async () => {
    const { stdout } = await run(
      `mount -t tmpfs -o size=64m tmpfs /var/lib; tree /var/lib/iri-registry
      rm $(find /var/lib/iri-registry -name data | head -1); mount-agent-data.sh; medium
      copy-registry-data.sh >/dev/null 2>&1; echo "exit $?"; find /mnt/agentdata -name data | wc -l`,
      { registryTree: { ...bootstrapInput.registryTree, size: 21_474_836_480 } },
    );
    expect(stdout).toContain('/var/lib/appliance-registry.partial is at /mnt/agentdata\n');
    expect(stdout).toContain('exit 3\n4\n');
  });

  it('copies nothing if the cluster has its own registry with the data', async () => {
    const { stdout } = await run(
      `medium; tree /var/lib/iri-registry; mount-agent-data.sh; copy-registry-data.sh; ls -d /var/lib/{appliance,iri}-registry* 2>/dev/null`,
      { interactive: true },
    );
    expect(stdout).toBe(
      'agent data: /var/lib/iri-registry is at /mnt/agentdata\n/var/lib/iri-registry\n',
    );
  });
});

/**
 * The machine config daemon of a cluster without an InternalReleaseImage, in short: its
 * image comes from the registry, so it runs once there is one; then, whenever the directory exists and
 * nothing listens, it deletes what is in it.
 */
const DAEMON = `
daemon() {
  until [[ -f /mnt/agentdata/images/registry/manifest.json ]]; do sleep 0.02; done
  touch /tmp/daemon-runs
  while true; do
    if [[ -e /var/lib/iri-registry ]] && ! (: </dev/tcp/127.0.0.1/1) 2>/dev/null; then
      find /var/lib/iri-registry -mindepth 1 -maxdepth 1 -exec rm -rf {} +
      touch /tmp/daemon-deleted
    fi
    touch /tmp/daemon-looked; sleep 0.02
  done
}
wait_for() { until [[ -e "$1" ]]; do sleep 0.02; done; }
`;

runs("the installer's copy on a control plane host", () => {
  it('is emptied by the machine config daemon if it stays in its place', async () => {
    const { stdout } = await run(
      `${DAEMON} tree /var/lib/iri-registry; daemon & pid=$!
      mount-agent-data.sh >/dev/null; wait_for /tmp/daemon-deleted; kill $pid
      ls -A /var/lib/iri-registry | wc -l`,
      { interactive: true },
    );
    expect(stdout).toBe('0\n');
  });

  it('is renamed before the daemon runs, wherever SIGKILL ends the first run', async () => {
    const { stdout, stderr } = await run(`${DAEMON}
      tree /tmp/wanted; wanted="$(state /tmp/wanted)"
      ${killsOf('a renamed copy')}; do
        rm -rf $copy.partial /var/lib/iri-registry /tmp/daemon-*; umount -q /mnt/agentdata
        cp -r /tmp/wanted /var/lib/iri-registry
        daemon & pid=$!
        done=no; if KILL_AT=$at mount-agent-data.sh >/dev/null 2>&1; then done=yes; fi
        mount-agent-data.sh >/dev/null || echo "failed after $at"
        wait_for /tmp/daemon-runs; rm -f /tmp/daemon-looked; wait_for /tmp/daemon-looked; kill $pid
        [[ ! -e /var/lib/iri-registry ]] || echo "still in its place after $at"
        [[ "$(state $copy.partial)" == "$wanted" && "$(state /mnt/agentdata)" == "$wanted" ]] || echo "lost after $at"
        [[ ! -e /tmp/daemon-deleted ]] || echo "deleted after $at"
        if [[ $done == yes ]]; then break; fi
      done 2>/dev/null
      before="$(find $copy.partial -printf '%p %i %T@\\n')"; mount-agent-data.sh
      [[ "$(find $copy.partial -printf '%p %i %T@\\n')" == "$before" ]] && echo unchanged
      echo "steps: $at"`);
    expect(stderr).toBe('');
    expect(stdout).toMatch(
      /^agent data: \/var\/lib\/appliance-registry\.partial is at \/mnt\/agentdata\nunchanged\nsteps: \d+\n$/,
    );
  });

  it('is verified by digest and then served as the copy of the host, without the medium', async () => {
    const { stdout, stderr } = await run(`
      tree /var/lib/iri-registry; wanted="$(state /var/lib/iri-registry)"
      inode="$(stat -c %i /var/lib/iri-registry)"
      mount-agent-data.sh; copy-registry-data.sh; cat /tmp/systemctl
      [[ "$(state $copy)" == "$wanted" && "$(stat -c %i $copy)" == "$inode" ]] && echo same
      mount-agent-data.sh; copy-registry-data.sh; ls -d /var/lib/{appliance,iri}-registry*`);
    expect(stderr).toBe(
      "cat: /tmp/systemctl: No such file or directory\nls: cannot access '/var/lib/iri-registry*': No such file or directory\n",
    );
    expect(stdout.trimEnd().split('\n')).toEqual([
      'agent data: /var/lib/iri-registry is now /var/lib/appliance-registry.partial',
      'agent data: /var/lib/appliance-registry.partial is at /mnt/agentdata',
      'registry data: verifying what this host has of it',
      'registry data: /var/lib/appliance-registry is complete: the appliance ISO is no longer needed and may be detached',
      'same',
      'agent data: /var/lib/appliance-registry is at /mnt/agentdata',
      '/var/lib/appliance-registry',
    ]);
  });

  it.each([
    ['emptied', 'rm -r $iri/docker', 5],
    ['without the image of the registry server', 'rm -r $iri/images', 1],
    ['with one damaged blob', 'printf X | dd of=$(find $iri -name data | head -1) conv=notrunc', 1],
    ['with one empty blob', ': >$(find $iri -name data | head -1)', 1],
    ['without one link', 'rm $(find $iri -name link | head -1)', 0],
    ['with one empty link', ': >$(find $iri -name link | head -1)', 0],
  ])(
    'is completed from the medium, of which only missing blobs are read: %s',
    async (_, damage, blobs) => {
      const { stdout } = await run(`
      medium; iri=/var/lib/iri-registry; tree $iri; find $iri -exec touch -d 2001-01-01 {} +
      ${damage} 2>/dev/null
      printf '#!/bin/bash\nfor each; do [[ $each == /run/media*/[0-9a-f]* ]] && echo "$each" >>/tmp/read; done; exec /usr/bin/cp "$@"' >/usr/local/bin/cp
      chmod 0755 /usr/local/bin/cp; touch /tmp/read
      mount-agent-data.sh >/dev/null; copy-registry-data.sh >/dev/null 2>&1; echo "exit $?"
      grep -cE '/data$|/[0-9a-f]{64}$' /tmp/read
      ls -d /var/lib/{appliance,iri}-registry* 2>/dev/null; [[ "$(state $copy)" == "$(state /run/media/iso/registry)" ]] && echo same`);
      expect(stdout).toBe(`exit 0\n${blobs}\n/var/lib/appliance-registry\nsame\n`);
    },
  );

  it('is served unchanged while it is damaged and the medium is detached', async () => {
    const { stdout, stderr } = await run(`
      tree /var/lib/iri-registry; rm $(find /var/lib/iri-registry -name data -size 4000c)
      mount-agent-data.sh; copy-registry-data.sh; echo "exit $?"; mount-agent-data.sh
      medium; copy-registry-data.sh >/dev/null; mount-agent-data.sh`);
    expect(stderr).toBe(
      'registry data: /run/media/iso/registry is missing: attach the appliance ISO again\n',
    );
    expect(stdout.trimEnd().split('\n').slice(1)).toEqual([
      'agent data: /var/lib/appliance-registry.partial is at /mnt/agentdata',
      'registry data: verifying what this host has of it',
      'registry data: a part is missing or damaged: it is copied again',
      'exit 1',
      'agent data: /var/lib/appliance-registry.partial is at /mnt/agentdata',
      'agent data: /var/lib/appliance-registry is at /mnt/agentdata',
    ]);
  });

  it('is read once, wherever SIGKILL ends its verification', async () => {
    const { stdout, stderr } = await run(`
      tree /tmp/wanted 3; wanted="$(state /tmp/wanted)"
      printf '#!/bin/sh\nreadlink /proc/self/fd/0 | grep -E "/data$|/[0-9a-f]{64}$" >>/tmp/read\nexec /usr/bin/sha256sum "$@"' >/usr/local/bin/sha256sum
      chmod 0755 /usr/local/bin/sha256sum; hash -r
      ${killsOf('a verified copy')}; do
        rm -rf $copy $copy.* /tmp/read; cp -r /tmp/wanted $copy.partial
        done=no; if KILL_AT=$at copy-registry-data.sh >/dev/null 2>&1; then done=yes; fi
        copy-registry-data.sh >/dev/null || echo "failed after $at"
        [[ "$(state $copy)" == "$wanted" ]] || echo "wrong after $at"
        # Four, and the one whose result was lost.
        (($(wc -l </tmp/read) <= 5)) || echo "read again after $at"
        if [[ $done == yes ]]; then break; fi
      done 2>/dev/null
      echo "steps: $at"`);
    expect(stderr).toBe('');
    expect(stdout).toMatch(/^steps: \d+\n$/);
    expect(Number(stdout.slice('steps: '.length))).toBeGreaterThan(20);
  }, 300_000);

  it('is verified on hosts that otherwise read the medium, which copy nothing of their own', async () => {
    const { stdout } = await run(
      `medium; copy-registry-data.sh; ls -A /var/lib | grep -c appliance
      tree /var/lib/iri-registry; mount-agent-data.sh; copy-registry-data.sh; ls -d $copy*`,
      { registryData: 'medium' },
    );
    expect(stdout.trimEnd().split('\n')).toEqual([
      '0',
      'agent data: /var/lib/iri-registry is now /var/lib/appliance-registry.partial',
      'agent data: /run/media/iso/registry is at /mnt/agentdata',
      'registry data: verifying what this host has of it',
      'registry data: /var/lib/appliance-registry is complete: the appliance ISO is no longer needed and may be detached',
      '/var/lib/appliance-registry',
    ]);
  });

  it('stays if an InternalReleaseImage protects it', async () => {
    const { stdout } = await run(
      `tree /var/lib/iri-registry; mount-agent-data.sh; ls -d /var/lib/iri-registry`,
      { interactive: true },
    );
    expect(stdout).toContain('\n/var/lib/iri-registry\n');
  });
});
