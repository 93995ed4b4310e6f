import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';
import { TEST_SSH_KEY, writeInstallationConfig } from '../support/installation-iso.ts';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { fileEntry } from './graft.ts';
import type { ImageRecipe } from './images.ts';
import type { MatrixEntry } from './matrix.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';
import { pushImage, startRegistry } from './registry.ts';
import { pushRelease, writeMirrorConf, type Release } from './release.ts';

const SEED = 'quay.io/edge/seed:4.21.3';

/** With what the shell and systemd would make something of. */
const PROXY = "http://user:p%40$HOME's@proxy.lab:3128";

const UNIT = 'install-rhcos-and-restore-seed.service';

/** The guest has no SELinux whose labels could be changed. */
const CHCON = fileEntry(
  '/usr/bin/chcon',
  0o755,
  '#!/bin/sh\necho "PROOF chcon $*" >/dev/console\n',
);

/** Says what it was asked for; the container's only file is a program that says the same. */
const PODMAN = fileEntry(
  '/usr/local/bin/podman',
  0o755,
  `#!/bin/sh
echo "PROOF podman $*" >/dev/console
case "$1" in
  create) [ -e /run/asked ] || { touch /run/asked; exit 125; } ;;
  cp) printf '#!/bin/sh\\n%s\\n' 'echo "PROOF lca-cli $*" >/dev/console' \\
    'echo "PROOF config $(cat "$3")" >/dev/console' \\
    'echo "PROOF environment $SEED_IMAGE $HTTPS_PROXY $https_proxy $NO_PROXY" >/dev/console' \\
    'echo "PROOF done" >/dev/console' >"$3"; chmod 0755 "$3" ;;
esac
`,
);

const NMSTATECTL = fileEntry(
  '/usr/bin/nmstatectl',
  0o755,
  '#!/bin/sh\necho "PROOF nmstatectl $* $(head -n 1 "$2")" >/dev/console\n',
);

/** Mirrors that the guest does not reach, for everything, and the origin forbidden. */
const FAR = {
  source: 'quay.io',
  mirrors: ['mirror.invalid/quay'],
  sourcePolicy: 'NeverContactSource',
};

/** More than the embed area holds, compressed or not. */
const makeNoise = (): object =>
  fileEntry('/etc/noise', 0o644, randomBytes(300_000).toString('base64'));

/** Tells on the console why what installs does not: nothing else would. */
const WITNESS = {
  name: 'witness.service',
  enabled: true,
  contents: `[Unit]
Description=Tells of the installation
[Service]
ExecStart=/bin/sh -c 'sleep 800; journalctl --no-pager -o cat -u ${UNIT} -u start-local-registry.service -n 60 >/dev/console; echo PROOF FAILED nothing installed >/dev/console'
[Install]
WantedBy=multi-user.target
`,
};

const override = (files: readonly object[]): string =>
  JSON.stringify({
    ignition: { version: '3.2.0' },
    storage: { files: files.map((file) => ({ ...file, overwrite: true })) },
    systemd: { units: [WITNESS] },
  });

/**
 * Has the program that installs. Like the real one it puts the new disk's container storage in the place of
 * the live system's, and then pulls the seed and what the list beside it names.
 */
const seedImage = (component: string): ImageRecipe => ({
  layers: [
    [
      { path: 'bin/busybox', copyOf: '/bin/busybox' },
      {
        path: 'bin/lca-cli',
        text: `#!/bin/sh
say() { echo "PROOF $*" >/dev/console; }
say "lca-cli $*"
mount -t tmpfs disk /var/lib/containers
pull() { podman pull --quiet --authfile "$PULL_SECRET_FILE" "$1" >/run/pulled 2>&1; }
pull "$SEED_IMAGE" && say "pulled $(podman image inspect --format '{{.RepoTags}}' "$SEED_IMAGE")"
pull ${component} && say "precached $(podman image inspect --format '{{.Digest}}' ${component})"
tail -n 3 /run/pulled >/dev/console
say done
`,
      },
      { path: 'lca-cli', linkTo: 'bin/lca-cli' },
      { path: 'containers.list', text: `${component}\n` },
    ],
  ],
});

describe.skipIf(!hasBootHost())('a booted installation ISO', () => {
  let work = '';
  let base = '';

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'installation-iso-'));
    base = await buildBaseIso(BOOT_CACHE);
  }, 1_500_000);
  afterAll(() => rm(work, { recursive: true, force: true }));

  type Machine = Pick<MatrixEntry, 'firmware' | 'as'>;

  async function build(
    config: Readonly<Record<string, unknown>>,
    args: readonly string[] = [],
    machine: Machine = { firmware: 'seabios', as: 'disk' },
  ) {
    await writeInstallationConfig(work, { seedImage: SEED, sshKey: TEST_SSH_KEY, ...config });
    const { code, stderr } = await startSealift(
      ['build', 'installation-iso', '--base-iso', base, ...args],
      { cwd: work },
    ).ended;
    expect(code, stderr).toBe(0);
    const { lines, seconds } = await boot({
      iso: join(work, 'rhcos-ibi.iso'),
      ...machine,
      until: /PROOF done/,
      fail: BOOT_FAILURES,
    });
    const proofs = lines.filter((line) => line.startsWith('PROOF ')).join('\n');
    console.log(`${seconds.toFixed(0)} s\n${proofs}`);
    return proofs;
  }

  async function expectGrown(): Promise<void> {
    const report = await readFile(join(work, 'rhcos-ibi.iso.report.json'), 'utf8');
    expect(report).toContain('"grownTo": ');
  }

  it('starts the program of the seed image with a configuration larger than the embed area', async () => {
    const large = {
      ignitionConfigOverride: override([CHCON, PODMAN, NMSTATECTL, makeNoise()]),
      networkConfig: { interfaces: [{ name: 'eth0', type: 'ethernet', state: 'up' }] },
      proxy: { httpsProxy: PROXY, noProxy: '.lab,10.0.0.0/8' },
      coreosInstallerArgs: ['--append-karg', 'a=1'],
      shutdown: true,
    };
    const proofs = await build(large, [], { firmware: 'seabios', as: 'cdrom' });
    await expectGrown();
    const create = `podman create --authfile /var/tmp/pull-secret.json --name lca-cli ${SEED} lca-cli`;
    expect(proofs).toContain('PROOF nmstatectl apply /var/tmp/network-config.yaml interfaces:');
    expect(proofs).toContain(
      'PROOF chcon -t install_exec_t /usr/local/bin/install-rhcos-and-restore-seed.sh',
    );
    expect(proofs.split('\n').filter((line) => line === `PROOF ${create}`)).toHaveLength(2);
    expect(proofs).toContain('PROOF lca-cli ibi -f /var/tmp/ibi-configuration.json');
    expect(proofs).toContain(
      'PROOF config {"extraPartitionLabel":"var-lib-containers","extraPartitionNumber":5,' +
        `"extraPartitionStart":"-40G","installationDisk":"/dev/vda","seedImage":"${SEED}",` +
        '"seedVersion":"4.21.3","shutdown":true,"coreosInstallerArgs":["--append-karg","a=1"]}',
    );
    expect(proofs).toContain(`PROOF environment ${SEED} ${PROXY} ${PROXY} .lab,10.0.0.0/8`);
  });

  it('finds a configuration larger than the embed area on UEFI firmware too', async () => {
    const ignitionConfigOverride = override([CHCON, PODMAN, NMSTATECTL, makeNoise()]);
    const proofs = await build({ ignitionConfigOverride }, [], { firmware: 'ovmf', as: 'disk' });
    await expectGrown();
    expect(proofs).toContain('PROOF lca-cli ibi -f /var/tmp/ibi-configuration.json');
  });

  it('pulls the seed image and the precached images from itself, without a network', async () => {
    const registry = await startRegistry(work);
    const carry = async (): Promise<readonly [Release, string]> => {
      const release = await pushRelease({ registry, work, version: '4.21.3' });
      const recipe = seedImage(release.components['cli'] ?? '');
      await pushImage(recipe, { registry, work, target: 'edge/seed:4.21.3' });
      const conf = await writeMirrorConf(work, registry);
      const args = [
        ...['--release', release.reference, '--registries-conf', conf],
        ...['--signatures', join(work, SIGNATURE_SETTINGS.signatures)],
        ...['--signature-keys', join(work, SIGNATURE_SETTINGS.signatureKeys)],
      ];
      const proofs = await build(
        { ignitionConfigOverride: override([CHCON]), imageDigestSources: [FAR] },
        [...args, '--embed-seed', '--embed-precached'],
      );
      return [release, proofs];
    };
    const [release, proofs] = await carry().finally(() => registry.stop());
    expect(proofs).toContain('PROOF lca-cli ibi -f /var/tmp/ibi-configuration.json');
    const [, digest = ''] = (release.components['cli'] ?? '').split('@');
    expect(proofs).toContain(`PROOF precached ${digest}`);
    expect(proofs).toContain(`PROOF pulled [${SEED}]`);
  });
});
