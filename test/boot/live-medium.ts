import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { runProcess } from '../../src/base/process.ts';
import { buildBaseIso } from './base-iso.ts';
import { BOOT_CACHE } from './boot-host.ts';
import { startRegistry, type Registry } from './registry.ts';
import { pushRelease, writeMirrorConf, type Release } from './release.ts';

const CLI = join(import.meta.dirname, '../../dist/cli/main.js');
const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Y0pWyKuWmEWpYk6Pl5bG4V7gSTQeFn3mQp5b8Qm7H core@example.com';

/**
 * Builds a live ISO that boots: a base with a real kernel, and a small release whose registry image runs.
 * The live system says on its serial line what it proves of itself (`PROOF ...`).
 *
 * @param work a folder for everything that is made
 * @returns the path of the ISO
 */
export async function buildLiveMedium(work: string): Promise<string> {
  const base = await buildBaseIso(BOOT_CACHE);
  const registry = await startRegistry(work);
  const iso = join(work, 'appliance.iso');
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
  return iso;
}

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
