import { resolve } from 'node:path';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ConfigNames } from '../config/load.ts';
import type { GivenBaseIso } from '../openshift/release/base-iso.ts';
import { isHere } from '../outputs/place.ts';
import type { DiskImageRequest } from '../stages/request.ts';
import { readLiveIsoRequest, type LiveIsoOptions } from './ask-appliance.ts';
import { isAddress, readTrustedAddress } from './ask-installation.ts';
import type { CliHost } from './host.ts';

/* This file owns how options and configuration become the request of a disk image. */

export const DISK_OUTPUT = 'appliance.raw';

export type DiskImageOptions = LiveIsoOptions & {
  readonly metalImage?: string;
  /** GiB. */
  readonly size?: number;
  readonly qcow2?: string;
};

/** A live ISO's request, with the disk; hosts keep the partition, so none copies the registry. */
export async function readDiskImageRequest(
  names: ConfigNames,
  { metalImage: text, size, qcow2, ...options }: DiskImageOptions,
  host: CliHost,
): Promise<DiskImageRequest> {
  const given = requireMetal(text);
  const { cwd } = host;
  const { output = DISK_OUTPUT } = options;
  const live = { ...options, output, product: 'disk-image' };
  const asked = await readLiveIsoRequest(names, live, host);
  requireHere(asked, output);
  const metalImage = readMetal(given, cwd);
  const diskSize = size ?? asked.config.diskSizeGB;
  const access = {
    ...asked.config,
    build: { ...asked.config.build, registryData: 'medium' as const },
  };
  return {
    ...asked,
    config: access,
    access,
    metalImage,
    inputs: [...asked.inputs, ...('file' in metalImage ? [metalImage.file] : [])],
    ...withoutUndefined({
      diskSize,
      qcow2: qcow2 === undefined ? undefined : resolve(cwd, qcow2),
    }),
  };
}

function requireMetal(text: string | undefined): string {
  if (text !== undefined && text !== '') return text;
  throw new UsageError('usage.metal-image', 'a disk image needs the metal image of CoreOS', {
    expected: '--metal-image <file|url>',
    hint: 'take the address at architectures.x86_64.artifacts.metal in what "openshift-install coreos print-stream-json" prints',
  });
}

function requireHere(place: Pick<DiskImageRequest, 'output' | 'device'>, output: string): void {
  if (isHere(place)) return;
  throw new UsageError('usage.disk-output', 'a disk image is written to a file or a block device', {
    expected: 'the name of a file or a device',
    found: output,
    hint: 'build a file, and copy it',
  });
}

const readMetal = (text: string, cwd: string): GivenBaseIso =>
  isAddress(text) ? readTrustedAddress(text, 'metal image') : { file: resolve(cwd, text) };
