import {
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { digestOf, hexOf } from '../../src/base/digest.ts';
import { hasFile } from '../../src/base/disk/files.ts';
import { runProcess } from '../../src/base/process.ts';
import { writeMinimalRecipe } from '../support/minimal-recipe.ts';
import { bootMenus, writeBootImages } from './boot-menus.ts';

/** Volume identifier of the base ISO; `coreos.liveiso=` names it. */
export const VOLUME_ID = 'rhcos-9.6.20260101-0';

/**
 * What the live system is started with. AppArmor is off because the guest carries none of its tools;
 * the serial line is the only witness of a boot.
 */
export const DEFAULT_KARGS = `coreos.liveiso=${VOLUME_ID} ignition.firstboot ignition.platform.id=metal apparmor=0 console=ttyS0,115200n8`;

const RECIPE = join(import.meta.dirname, '../support/minimal-recipe.ts');
const WORLD = join(import.meta.dirname, 'world');

/** Bytes of `images/ignition.img`. */
export const EMBED_AREA_SIZE = 262_144;

/**
 * Makes a live ISO of the RHCOS layout out of Debian packages: real kernel, real Ignition in the
 * initramfs, a userland with systemd and podman. Needs root (debootstrap). Each part is kept in
 * `cacheDir` under a hash of its recipe: about 75 s the first time, then nothing.
 *
 * @returns the path of the ISO.
 */
export async function buildBaseIso(cacheDir: string): Promise<string> {
  await mkdir(cacheDir, { recursive: true });
  const kernelPackage = await resolveKernelPackage();
  const recipe = [
    await hashTree(WORLD),
    await hashFiles([import.meta.filename, join(import.meta.dirname, 'boot-menus.ts'), RECIPE]),
    kernelPackage,
    await readPackageVersions(),
  ];
  return await cached(cacheDir, `base-${hashOf(recipe)}.iso`, async (output) => {
    const userland = await buildUserland(cacheDir);
    const work = await mkdtemp(join(tmpdir(), 'base-iso-'));
    try {
      await assembleTree(work, { userland, kernelPackage });
      await writeIso(join(work, 'tree'), output);
      await addMinimalRecipe(work, output);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  });
}

/** The slow part (debootstrap, a minute), which only its own script can make stale. */
async function buildUserland(cacheDir: string): Promise<string> {
  const script = join(WORLD, 'build-userland.sh');
  return await cached(cacheDir, `userland-${await hashFiles([script])}.tar`, async (output) => {
    await runProcess('bash', [script, output], { timeout: 600_000 });
  });
}

type Parts = { readonly userland: string; readonly kernelPackage: string };

async function assembleTree(work: string, { userland, kernelPackage }: Parts): Promise<void> {
  const tree = join(work, 'tree');
  const pxeboot = join(tree, 'images/pxeboot');
  for (const directory of ['coreos', 'EFI/redhat', 'images/pxeboot', 'isolinux']) {
    await mkdir(join(tree, directory), { recursive: true });
  }
  await runProcess('apt-get', ['download', '-q', kernelPackage], { cwd: work });
  const kernel = (await readdir(work)).find((name) => name.endsWith('.deb'));
  if (kernel === undefined) throw new Error(`apt-get downloaded no ${kernelPackage}`);
  await runProcess('bash', [join(WORLD, 'build-initramfs.sh'), join(work, kernel), pxeboot]);
  await writeRootfs(work, userland);

  const menus = bootMenus({ volumeId: VOLUME_ID, kargs: DEFAULT_KARGS });
  await writeFile(join(tree, 'EFI/redhat/grub.cfg'), menus.grub);
  await writeFile(join(tree, 'isolinux/isolinux.cfg'), menus.isolinux);
  await writeFile(join(tree, 'isolinux/boot.msg'), 'sealift test live system\n');
  await writeFile(join(tree, 'coreos/kargs.json'), formatJson(menus.kargs));
  await writeFile(join(tree, 'coreos/igninfo.json'), formatJson({ file: 'images/ignition.img' }));
  await writeFile(
    join(tree, 'coreos/features.json'),
    formatJson({ 'installer-config': true, 'live-initrd-network': true }),
  );
  await writeFile(join(tree, 'coreos/miniso.dat'), Buffer.alloc(16_384));
  await writeFile(join(tree, 'images/ignition.img'), Buffer.alloc(EMBED_AREA_SIZE));
  await writeBootImages(tree, menus.esp);
}

/** `rootfs.img`: an uncompressed cpio whose first member is the squashfs, whose bytes start at 124. */
async function writeRootfs(work: string, userland: string): Promise<void> {
  const root = join(work, 'root');
  await mkdir(root);
  await runProcess('tar', ['-C', root, '--numeric-owner', '--xattrs', '-xf', userland]);
  await runProcess('cp', ['-a', '--no-preserve=ownership', `${join(WORLD, 'root')}/.`, root]);
  const members = join(work, 'rootfs');
  await mkdir(join(members, 'etc'), { recursive: true });
  const squashfs = join(members, 'root.squashfs');
  const options = ['-comp', 'zstd', '-Xcompression-level', '6', '-noappend', '-quiet'];
  await runProcess('mksquashfs', [root, squashfs, '-no-progress', ...options]);
  await writeFile(join(members, 'etc/coreos-live-rootfs'), 'sealift-test\n');
  const image = join(work, 'tree/images/pxeboot/rootfs.img');
  await runProcess('cpio', ['--quiet', '-o', '-H', 'newc', '-R', '0:0', '-O', image], {
    cwd: members,
    input: 'root.squashfs\netc/coreos-live-rootfs\n',
  });
  const head = (await readFile(image)).subarray(124, 128).toString('latin1');
  if (head !== 'hsqs') throw new Error(`rootfs.img should have "hsqs" at 124, but has "${head}"`);
}

async function writeIso(tree: string, output: string): Promise<void> {
  await runProcess('genisoimage', [
    ...['-quiet', '-o', output, '-V', VOLUME_ID, '-volset', VOLUME_ID, '-R', '-J', '-joliet-long'],
    ...['-eltorito-boot', 'isolinux/isolinux.bin', '-eltorito-catalog', 'isolinux/boot.cat'],
    ...['-no-emul-boot', '-boot-load-size', '4', '-boot-info-table'],
    ...['-eltorito-alt-boot', '-efi-boot', 'images/efiboot.img', '-no-emul-boot', tree],
  ]);
  await runProcess('isohybrid', ['--uefi', output]);
}

/** How the ISO without its root file system is made of this one. */
async function addMinimalRecipe(work: string, iso: string): Promise<void> {
  const minimal = join(work, 'minimal.iso');
  for (const path of ['images/pxeboot/rootfs.img', 'coreos/miniso.dat']) {
    await rm(join(work, 'tree', path));
  }
  await writeIso(join(work, 'tree'), minimal);
  await writeMinimalRecipe(iso, minimal);
}

/** Not the cloud kernel, which is smaller but reads no USB stick. */
async function resolveKernelPackage(): Promise<string> {
  const { stdout } = await runProcess('apt-cache', ['depends', 'linux-image-amd64']);
  const name = /Depends: (linux-image-\S+)/.exec(stdout)?.[1];
  if (name === undefined) throw new Error('apt knows no linux-image-amd64: run apt-get update');
  return name;
}

async function readPackageVersions(): Promise<string> {
  const packages = ['ignition', 'busybox-static', 'isolinux', 'grub-efi-amd64-bin', 'genisoimage'];
  const { stdout } = await runProcess('dpkg-query', ['-W', ...packages]);
  return stdout;
}

/** Makes a file aside and renames it, unless it already exists. */
async function cached(
  cacheDir: string,
  name: string,
  make: (output: string) => Promise<void>,
): Promise<string> {
  const path = join(cacheDir, name);
  if (await hasFile(path)) return path;
  const aside = `${path}.${process.pid}.partial`;
  try {
    await make(aside);
    await rename(aside, path);
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
  return path;
}

/** Over names, modes, links and bytes of a tree. */
async function hashTree(directory: string): Promise<string> {
  const names = (await readdir(directory, { recursive: true })).sort();
  const parts: string[] = [];
  for (const name of names) {
    const path = join(directory, name);
    const { mode } = await lstat(path);
    parts.push(name, mode.toString(8), await readEntry(path));
  }
  return hashOf(parts);
}

async function readEntry(path: string): Promise<string> {
  const status = await lstat(path);
  if (status.isSymbolicLink()) return await readlink(path);
  return status.isFile() ? (await readFile(path)).toString('base64') : '';
}

/** Over names and bytes. */
async function hashFiles(paths: readonly string[]): Promise<string> {
  const parts: string[] = [];
  for (const path of paths) parts.push(basename(path), await readEntry(path));
  return hashOf(parts);
}

/** Twelve hexadecimal digits. */
function hashOf(parts: readonly string[]): string {
  return hexOf(digestOf(parts.join('\0'))).slice(0, 12);
}

/** As the RHCOS builder formats: two spaces, sorted keys, a trailing newline. */
function formatJson(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
