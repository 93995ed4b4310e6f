import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { SIGNATURE_SETTINGS } from '../demo/release-signer.ts';
import { createBlobFactory } from '../demo/payload.ts';
import { buildImage } from '../demo/release.ts';
import { startSourceRegistry } from '../demo/source-registry.ts';
import { openIso } from '../src/iso/read/open.ts';
import { buildBaseIso } from '../test/boot/base-iso.ts';
import { BOOT_CACHE, hasBootHost } from '../test/boot/boot-host.ts';
import { boot, BOOT_FAILURES, type Boot } from '../test/boot/qemu.ts';
import { startRegistry } from '../test/boot/registry.ts';
import { pushRelease, writeMirrorConf } from '../test/boot/release.ts';
import { addFigures, type Figures } from './figures.ts';
import { runSealift } from './run.ts';

/** Virtual media over a BMC, in bytes a second. */
const RATE = 5_000_000;

/** As a release has them. */
const IMAGES = 190;
const LAYERS = 5;

/** A guest without hardware support, on a machine that may be busy. */
const TIMEOUT_MS = 7_200_000;

/** Of the files on an ISO, in bytes. */
type Sizes = {
  /** All but the registry's and our index: boot loaders, kernel, initrds, rootfs. */
  readonly boot: number;
  /** The registry server's image. */
  readonly registryImage: number;
  /** Every blob of the registry once. */
  readonly payload: number;
};

/**
 * Boots a live ISO from a medium of 5 MB/s and takes QEMU's count of what was read until the registry
 * in the live system answers: not more than boot files, registry image and 1 % of the payload.
 */
export async function benchSlowMedium(
  figures: Figures,
  { directory, size }: { readonly directory: string; readonly size: number },
): Promise<void> {
  if (!hasBootHost()) throw new Error('slow-medium needs what the boot tests need');
  const iso = await buildLiveIso(directory, size);
  const sizes = await measureFiles(iso);
  const bound = sizes.boot + sizes.registryImage + Math.floor(sizes.payload / 100);
  const { lines, seconds, mediumBytes = NaN } = await bootSlowly(iso);
  const told = {
    bootFiles: sizes.boot,
    registryImage: sizes.registryImage,
    payload: sizes.payload,
    bound,
    bytesRead: mediumBytes,
    seconds,
  };
  console.log(`  slow-medium: ${RATE / 1e6} MB/s, ${JSON.stringify(told)}`);
  console.log(`  slow-medium: ${lines.findLast((line) => line.startsWith('PROOF')) ?? ''}`);
  figures.values['slowMedium'] = told;
  addFigures(figures, { slowMediumRatio: { value: mediumBytes / bound, atMost: 1 } });
}

/** The last line is that of the registry's first answer, over TLS; a pull follows. */
const bootSlowly = (iso: string): Promise<Boot> =>
  boot({
    iso,
    firmware: 'seabios',
    as: 'cdrom',
    mediumRate: RATE,
    timeoutMs: TIMEOUT_MS,
    until: /^PROOF registry tls/,
    fail: BOOT_FAILURES,
  });

/** A release that boots, and besides it images of this many bytes that nothing unpacks. */
async function buildLiveIso(directory: string, size: number): Promise<string> {
  const work = join(directory, 'slow-medium');
  mkdirSync(work, { recursive: true });
  const base = await buildBaseIso(BOOT_CACHE);
  const registry = await startRegistry(work);
  const bulk = await startSourceRegistry();
  const makeBlob = createBlobFactory();
  const layerSize = Math.ceil(size / IMAGES / LAYERS);
  const additionalImages = Array.from({ length: IMAGES }, (_, image) => {
    const layers = Array.from({ length: LAYERS }, (_, layer) =>
      makeBlob(image * LAYERS + layer, layerSize),
    );
    bulk.add(`bulk/image-${image}`, buildImage(layers), '1.0');
    return { name: `${bulk.host}/bulk/image-${image}:1.0` };
  });
  try {
    const release = await pushRelease({ registry, work, version: '4.21.3' });
    const auth = Buffer.from('bench:bench').toString('base64');
    const config = {
      apiVersion: 'v1beta1',
      kind: 'ApplianceConfig',
      enableInteractiveFlow: true,
      ocpRelease: { version: release.version, url: release.reference },
      pullSecret: JSON.stringify({ auths: { 'quay.io': { auth } } }),
      useDefaultSourceNames: true,
      additionalImages: [{ name: release.additionalImage }, ...additionalImages],
      build: {
        ignition: 'embedded',
        baseIso: base,
        ...SIGNATURE_SETTINGS,
        registriesConf: await writeMirrorConf(work, registry),
        insecureRegistries: [registry.host, bulk.host],
        kernelArguments: [
          'sealift.proof',
          'sealift.proof.only=registry,pull',
          `sealift.proof.wait=${TIMEOUT_MS / 1000}`,
          `sealift.proof.component=${release.components['cli'] ?? ''}`,
          `sealift.proof.additional=${release.additionalReference}`,
        ],
      },
    };
    writeFileSync(join(work, 'appliance-config.yaml'), stringify(config), { mode: 0o600 });
    await runSealift(['build', 'live-iso', '--output', 'slow.iso'], work);
  } finally {
    await registry.stop();
    await bulk.close();
  }
  return join(work, 'slow.iso');
}

async function measureFiles(path: string): Promise<Sizes> {
  const sizes = { boot: 0, registryImage: 0, payload: 0 };
  const image = await openIso(path);
  try {
    for await (const { path: name, node } of image.walk()) {
      if (node.kind !== 'file') continue;
      if (name.startsWith('/registry/images/')) sizes.registryImage += node.size;
      else if (name.startsWith('/registry/docker/registry/v2/blobs/')) sizes.payload += node.size;
      else if (!/^\/(registry|sealift)\//.test(name)) sizes.boot += node.size;
    }
  } finally {
    await image.close();
  }
  return sizes;
}
