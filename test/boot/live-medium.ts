import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { SIGNATURE_SETTINGS } from '../../demo/release-signer.ts';
import { withLease } from '../../src/base/disk/lease.ts';
import { runProcess } from '../../src/base/process.ts';
import { buildBaseIso } from './base-iso.ts';
import { makeBootableMetal } from './bootable-metal.ts';
import { BOOT_CACHE } from './boot-host.ts';
import { formatWaitingInstaller } from './loader.ts';
import { startRegistry, type Registry } from './registry.ts';
import { pushRelease, writeMirrorConf, type Release } from './release.ts';

const CLI = join(import.meta.dirname, '../../dist/cli/start.cjs');
const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Y0pWyKuWmEWpYk6Pl5bG4V7gSTQeFn3mQp5b8Qm7H core@example.com';

const SECRET = JSON.stringify({ auths: { 'quay.io': { auth: 'dXNlcjpwYXNz' } } });

/** A live ISO that all tests of a run share, and none changes. */
export type LiveMedium = {
  readonly iso: string;
  /** The same release, without values, whose live system waits for a configuration image. */
  readonly waiting: string;
  /** A disk image of the same release, whose own boot loader is GRUB for the BIOS. */
  readonly disk: string;
  /** A deployment ISO with that disk image, for /dev/vdb; its post-script then writes /dev/vdc, too. */
  readonly deployment: string;
  readonly version: string;
  readonly releaseImage: string;
  /** With these the live system says what it proves of itself. */
  readonly proof: readonly string[];
};

/** Set by the setup of a run: the folder of what its tests share. */
export const RUN_FOLDER = 'SEALIFT_BOOT_RUN';

/** Who comes first makes it; the others wait for it. */
export async function shareLiveMedium(signal: AbortSignal): Promise<LiveMedium> {
  const work = join(process.env[RUN_FOLDER] ?? '', 'live-medium');
  const made = join(work, 'medium.json');
  await mkdir(work, { recursive: true });
  const lease = { signal, wait: true, warn: () => undefined };
  return withLease(join(work, 'lock'), lease, async () => {
    const text = await readFile(made, 'utf8').catch(() => undefined);
    if (text !== undefined) return JSON.parse(text) as LiveMedium;
    const medium = await makeLiveMedium(work);
    await writeFile(made, JSON.stringify(medium));
    return medium;
  });
}

/**
 * Makes a live ISO that boots: a base with a real kernel, and a small release whose registry image runs. It has come
 * the whole way to a disconnected site: the ISO of a first night is built, pushed and pulled; a second night, built in
 * the place of the first, adds an image and arrives as a delta, one of whose parts is lost, which is applied in place.
 * Then it is reset and gets its values once more, in place. The live system says on its serial line what it proves of
 * itself (`PROOF ...`).
 *
 * @param work a folder for everything that is made
 * @returns the ISO, which has the bytes that the second night was built with
 */
export async function makeLiveMedium(work: string): Promise<LiveMedium> {
  const base = await buildBaseIso(BOOT_CACHE);
  const registry = await startRegistry(work);
  const installer = await writeInstaller(work);
  const sealift = (...args: readonly string[]) =>
    runProcess(process.execPath, [CLI, ...args], { cwd: work, timeout: 300_000 });
  try {
    const release = await pushRelease({ registry, work, version: '4.21.3' });
    const proof = [
      'sealift.proof',
      `sealift.proof.component=${release.components['cli'] ?? ''}`,
      `sealift.proof.additional=${release.additionalReference}`,
    ];
    const buildNight = async (images: readonly string[]): Promise<string> => {
      const config = await writeConfig({ work, registry, release, images, installer, proof });
      await sealift('build', 'live-iso', config, '--output', 'appliance.iso', '--base-iso', base);
      return config;
    };
    const config = await buildNight([]);
    const address = `oci://${registry.host}/nightly/appliance:first`;
    await sealift('push', 'appliance.iso', address, '--config', config, '--allow-secrets');
    await sealift('pull', address, '--output', 'site.iso', '--no-seed', '--config', config);
    await buildNight([release.additionalImage]);
    const parts = ['--max-part-size', '300KiB'];
    await sealift('delta', 'site.iso', 'appliance.iso', '--output', 'night.delta', ...parts);
    const arrived = (await readdir(work)).filter((name) => /^night\.delta\.(?!1$)/.test(name));
    await sealift('apply', 'site.iso', ...arrived, '--in-place');
    await runProcess('cmp', ['appliance.iso', 'site.iso'], { cwd: work });
    await sealift('customize', 'site.iso', '--reset', '--in-place');
    await writeFile(join(work, 'secret.json'), SECRET);
    const values = ['--ssh-key', SSH_KEY, '--pull-secret', 'file:secret.json'];
    const kargs = proof.flatMap((karg) => ['--kargs-append', karg]);
    await sealift('customize', 'site.iso', ...values, ...kargs, '--in-place');
    await runProcess('cmp', ['appliance.iso', 'site.iso'], { cwd: work });
    const waiting = await writeWaitingConfig({ work, registry, release });
    await sealift('build', 'live-iso', waiting, '--output', 'waiting.iso', '--base-iso', base);
    const { disk, deployment } = await buildDisks({ work, base, config, proof }, sealift);
    const [iso, other] = ['site.iso', 'waiting.iso'].map((name) => join(work, name));
    const { version, reference: releaseImage } = release;
    return { iso: iso ?? '', waiting: other ?? '', disk, deployment, version, releaseImage, proof };
  } finally {
    await registry.stop();
  }
}

type DiskInput = {
  readonly work: string;
  readonly base: string;
  readonly config: string;
  readonly proof: readonly string[];
};

/** The live system has no AppArmor tools, and says what it proves only when it is asked. */
async function buildDisks(
  { work, base, config, proof }: DiskInput,
  sealift: (...args: readonly string[]) => Promise<unknown>,
): Promise<Pick<LiveMedium, 'disk' | 'deployment'>> {
  await makeBootableMetal(work);
  const overlay = join(work, 'disk.yaml');
  await writeFile(overlay, stringify({ build: { kernelArguments: [...proof, 'apparmor=0'] } }));
  const inputs = [config, overlay, '--metal-image', 'metal.raw', '--base-iso', base];
  const [disk, deployment] = [join(work, 'disk.raw'), join(work, 'deployment.iso')];
  await sealift('build', 'disk-image', ...inputs, '--output', disk);
  await writeFile(join(work, 'after.sh'), AFTER_DEPLOYMENT);
  const target = ['--target-device', '/dev/vdb', '--post-script', 'after.sh'];
  await sealift('build', 'deployment-iso', ...inputs, ...target, '--output', deployment);
  return { disk, deployment };
}

/** Deploys a second disk, in the way of a person after a dry run, and ends with a status that does not count. */
const AFTER_DEPLOYMENT = `#!/bin/bash
[[ -e /run/again ]] && exit
touch /run/again
/usr/local/bin/deploy.sh /dev/vdc
/usr/local/bin/deploy.sh /dev/vda || echo "PROOF the medium is refused"
exit 3
`;

const STAND_IN = join(import.meta.dirname, 'installer');

/** The installer of the release, as one file. */
async function writeInstaller(work: string): Promise<string> {
  const script = await readFile(join(STAND_IN, 'pre-network-manager-config.sh'));
  const text = await readFile(join(STAND_IN, 'openshift-install'), 'utf8');
  const path = join(work, 'openshift-install');
  await writeFile(path, text.replace('@SCRIPT@"', `${script.toString('base64')}"`));
  await chmod(path, 0o755);
  return path;
}

async function writeWaitingConfig({
  work,
  registry,
  release,
}: Pick<ConfigInput, 'work' | 'registry' | 'release'>): Promise<string> {
  const installer = join(work, 'waiting-install');
  await writeFile(installer, formatWaitingInstaller(release.reference), { mode: 0o755 });
  const config = {
    apiVersion: 'v1beta1',
    kind: 'ApplianceConfig',
    ocpRelease: { version: release.version, url: release.reference },
    pullSecret: SECRET,
    useDefaultSourceNames: true,
    build: {
      ...SIGNATURE_SETTINGS,
      registriesConf: await writeMirrorConf(work, registry),
      insecureRegistries: [registry.host],
      ignition: 'installer',
      installer,
    },
  };
  const path = join(work, 'waiting-config.yaml');
  await writeFile(path, stringify(config), { mode: 0o600 });
  return path;
}

type ConfigInput = {
  readonly work: string;
  readonly registry: Registry;
  readonly release: Release;
  readonly images: readonly string[];
  readonly installer: string;
  readonly proof: readonly string[];
};

async function writeConfig({ work, registry, ...input }: ConfigInput): Promise<string> {
  const { release, images, installer, proof } = input;
  const path = join(work, 'appliance-config.yaml');
  const config = {
    apiVersion: 'v1beta1',
    kind: 'ApplianceConfig',
    ocpRelease: { version: release.version, url: release.reference },
    pullSecret: SECRET,
    sshKey: SSH_KEY,
    enableInteractiveFlow: true,
    useDefaultSourceNames: true,
    additionalImages: images.map((name) => ({ name })),
    build: {
      ...SIGNATURE_SETTINGS,
      registriesConf: await writeMirrorConf(work, registry),
      insecureRegistries: [registry.host],
      embed: { pullSecret: SECRET },
      kernelArguments: proof,
      ignition: 'installer',
      installer,
    },
  };
  await writeFile(path, stringify(config), { mode: 0o600 });
  return path;
}
