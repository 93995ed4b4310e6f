import { readdir, writeFile } from 'node:fs/promises';
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
 * Makes a live ISO that boots: a base with a real kernel, and a small release whose registry image runs. It has come
 * the whole way to a disconnected site: the ISO of a first night is built, pushed and pulled; a second night, built in
 * the place of the first, adds an image and arrives as a delta, one of whose parts is lost, which is applied in place.
 * The live system says on its serial line what it proves of itself (`PROOF ...`).
 *
 * @param work a folder for everything that is made
 * @returns the path of the ISO, which has the bytes that the second night was built with
 */
export async function makeLiveMedium(work: string): Promise<string> {
  const base = await buildBaseIso(BOOT_CACHE);
  const registry = await startRegistry(work);
  const sealift = (...args: readonly string[]) =>
    runProcess(process.execPath, [CLI, ...args], { cwd: work, timeout: 300_000 });
  try {
    const release = await pushRelease({ registry, work, version: '4.21.3' });
    const buildNight = async (images: readonly string[]): Promise<string> => {
      const config = await writeConfig({ work, registry, release, images });
      const inputs = ['--base-iso', base, '--ignition', 'embedded'];
      await sealift('build', 'live-iso', config, '--output', 'appliance.iso', ...inputs);
      return config;
    };
    const config = await buildNight([]);
    const address = `oci://${registry.host}/nightly/appliance:first`;
    await sealift('push', 'appliance.iso', address, '--config', config);
    await sealift('pull', address, '--output', 'site.iso', '--no-seed', '--config', config);
    await buildNight([release.additionalImage]);
    const parts = ['--max-part-size', '300KiB'];
    await sealift('delta', 'site.iso', 'appliance.iso', '--output', 'night.delta', ...parts);
    const arrived = (await readdir(work)).filter((name) => /^night\.delta\.(?!1$)/.test(name));
    await sealift('apply', 'site.iso', ...arrived, '--in-place');
    await runProcess('cmp', ['appliance.iso', 'site.iso'], { cwd: work });
  } finally {
    await registry.stop();
  }
  return join(work, 'site.iso');
}

type ConfigInput = {
  readonly work: string;
  readonly registry: Registry;
  readonly release: Release;
  readonly images: readonly string[];
};

async function writeConfig({ work, registry, release, images }: ConfigInput): Promise<string> {
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
    additionalImages: images.map((name) => ({ name })),
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
