import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { runProcess } from '../../src/base/process.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { digestTree } from './digest-tree.ts';
import { bootMatrix, MATRIX, type MatrixResult } from './matrix.ts';
import { startRegistry, type Registry } from './registry.ts';
import { pushRelease, writeMirrorConf, type Release } from './release.ts';

const CLI = join(import.meta.dirname, '../../dist/cli/main.js');
const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Y0pWyKuWmEWpYk6Pl5bG4V7gSTQeFn3mQp5b8Qm7H core@example.com';

describe.skipIf(!hasBootHost())('a live ISO that sealift built', () => {
  let work = '';
  let iso = '';
  let results: readonly MatrixResult[] = [];

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'live-iso-'));
    const base = await buildBaseIso(BOOT_CACHE);
    const registry = await startRegistry(work);
    iso = join(work, 'appliance.iso');
    try {
      const release = await pushRelease({ registry, work, version: '4.21.3' });
      const config = await writeConfig({ work, registry, release });
      const inputs = ['--base-iso', base, '--ignition', 'embedded'];
      await runProcess(
        process.execPath,
        [CLI, 'build', 'live-iso', config, '--output', iso, ...inputs],
        { cwd: work, timeout: 300_000 },
      );
    } finally {
      await registry.stop();
    }
    results = await bootMatrix(iso);
    for (const { firmware, as, seconds, proofs } of results) {
      console.log(`${firmware} ${as}: ${seconds.toFixed(0)} s\n${proofs.join('\n')}`);
    }
  }, 2_400_000);

  afterAll(async () => {
    await rm(work, { recursive: true, force: true });
  });

  const proofsOf = (firmware: string, as: string): string => {
    const result = results.find((each) => each.firmware === firmware && each.as === as);
    return result?.proofs.join('\n') ?? '';
  };

  it.each(MATRIX)('boots with $firmware as $as and mounts its registry data', (entry) => {
    const proofs = proofsOf(entry.firmware, entry.as);
    expect(proofs).toMatch(/^PROOF ignition-user ok/m);
    expect(proofs).toMatch(/^PROOF ignition-base ok .*99-bootstrap\.ign/m);
    expect(proofs).toMatch(/^PROOF agentdata ok .*\[\/registry\] iso9660 ro/m);
  });

  it('serves its images to the host that it booted', () => {
    const proofs = proofsOf('seabios', 'disk');
    expect(proofs).toMatch(/^PROOF registry tls 22625 ok/m);
    expect(proofs).toMatch(/^PROOF pull component sha256:[0-9a-f]{64} ok quay\.io/m);
    expect(proofs).toMatch(/^PROOF pull additional sha256:[0-9a-f]{64} ok quay\.io/m);
    expect(proofs).toMatch(/^PROOF ssh key mode ok 600 core/m);
    expect(proofs).toMatch(/^PROOF pull-secret mode ok 600 root:root/m);
    expect(proofs).toMatch(/^PROOF files \d+ ok/m);
  });

  it('keeps the EFI system partition bootable and its volume label findable', () => {
    const stick = results.find(({ firmware, as }) => firmware === 'ovmf' && as === 'usb-esp');
    expect(stick?.lines).toContain('Booting via ESP...');
  });

  it("shows the Linux kernel the same files as sealift's own reader", async () => {
    const tree = /^PROOF tree (\d+) ([0-9a-f]{64})$/m.exec(proofsOf('seabios', 'disk'));
    expect([Number(tree?.[1]), tree?.[2]]).toEqual(await digestTree(iso));
  });
});

type ConfigInput = {
  readonly work: string;
  readonly registry: Registry;
  readonly release: Release;
};

async function writeConfig({ work, registry, release }: ConfigInput): Promise<string> {
  const path = join(work, 'appliance-config.yaml');
  const secret = JSON.stringify({ auths: { 'quay.io': { auth: 'dXNlcjpwYXNz' } } });
  const config = {
    apiVersion: 'v1beta1',
    kind: 'ApplianceConfig',
    ocpRelease: { version: release.version, url: release.reference },
    pullSecret: secret,
    sshKey: SSH_KEY,
    enableInteractiveFlow: true,
    useDefaultSourceNames: true,
    additionalImages: [{ name: release.additionalImage }],
    build: {
      ...SIGNATURE_SETTINGS,
      registriesConf: await writeMirrorConf(work, registry),
      insecureRegistries: [registry.host],
      embed: { pullSecret: secret },
      kernelArguments: [
        'sealift.proof',
        `sealift.proof.component=${release.components['cli'] ?? ''}`,
        `sealift.proof.additional=${release.additionalReference}`,
      ],
    },
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
  return path;
}
