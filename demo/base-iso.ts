import { writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import {
  encodeDirectoryRecord,
  FILE_FLAG,
  type DirectoryRecord,
} from '../src/iso/directory/record.ts';
import type { Layout, TreeFile } from '../src/iso/extent.ts';
import { layOutIso } from '../src/iso/lay-out/lay-out.ts';
import { encodePathTable } from '../src/iso/volume/path-table.ts';
import { pourIso, publishPour } from '../src/pour/pour.ts';
import {
  encodeExtensionReference,
  encodeRockRidge,
  encodeSharingProtocol,
} from '../src/iso/directory/rock-ridge.ts';
import { addBootStructures, BOOT_FILES } from './boot-structures.ts';
import { encodeBiosImage, encodeEfiImage } from './boot-program.ts';
import { scanBaseIso } from '../src/iso/lay-out/scan.ts';
import { encodeContinuation, encodeSystemUse } from '../src/iso/directory/system-use.ts';
import {
  encodePrimaryVolumeDescriptor,
  encodeTerminator,
  type PrimaryVolumeDescriptor,
} from '../src/iso/volume/descriptor.ts';

const VOLUME_ID = 'rhcos-9.6.20260101-0';
const TIME = new Date('2026-01-01T00:00:00Z');
const KARGS = `coreos.liveiso=${VOLUME_ID} ignition.firstboot ignition.platform.id=metal`;
const KARGS_SIZE = KARGS.length + 1024;

/**
 * A base ISO of RHCOS's layout with stand-ins for boot loaders, kernel and root file system: everything
 * that sealift reads and edits is real, firmware finds what to start, and that says that there is no
 * kernel. Made by sealift's own layout code on an empty volume.
 */
export async function makeBaseIso(path: string, rootfsSize: number): Promise<void> {
  const empty = `${path}.empty`;
  await writeFile(empty, encodeEmptyVolume());
  const layout = layOutIso({
    base: await scanBaseIso(empty),
    files: planFiles(rootfsSize),
    remove: [],
    patches: [],
    epoch: TIME.getTime() / 1000,
  });
  await pourLocally(layout, empty, path);
  await addBootStructures(path);
}

const EMPTY = { name: 'empty ISO', local: true };

async function pourLocally(layout: Layout, base: string, output: string): Promise<void> {
  await pourIso({
    layout,
    output,
    lanes: 1,
    signal: new AbortController().signal,
    openExtent: ({ offset: start }, { offset }) =>
      Promise.resolve({ kind: 'file', path: base, position: start + offset, source: EMPTY }),
  });
  await publishPour(output);
}

function planFiles(rootfsSize: number): TreeFile[] {
  const grub = menu(`menuentry 'live' {\n\tlinux /images/pxeboot/vmlinuz `);
  const isolinux = menu(
    'label linux\n  kernel /images/pxeboot/vmlinuz\n  append initrd=/images/pxeboot/initrd.img,/images/ignition.img ',
  );
  const files: Record<string, string | Uint8Array> = {
    '/EFI/redhat/grub.cfg': `${grub.text}\tinitrd /images/pxeboot/initrd.img /images/ignition.img\n}\n`,
    '/isolinux/isolinux.cfg': isolinux.text,
    '/coreos/features.json': '{\n  "installer-config": true,\n  "live-initrd-network": true\n}\n',
    '/coreos/igninfo.json': '{\n  "file": "images/ignition.img"\n}\n',
    '/coreos/kargs.json': `${JSON.stringify(
      {
        default: KARGS,
        files: [
          { end: '\n', offset: grub.offset, pad: '#', path: 'EFI/redhat/grub.cfg' },
          { end: '\n', offset: isolinux.offset, pad: '#', path: 'isolinux/isolinux.cfg' },
        ],
        size: KARGS_SIZE,
      },
      null,
      2,
    )}\n`,
    [BOOT_FILES.catalog]: new Uint8Array(2048),
    [BOOT_FILES.bios]: encodeBiosImage('sealift demo: this ISO has no kernel'),
    [BOOT_FILES.efi]: encodeEfiImage('The demo of sealift has neither a boot loader nor a kernel.'),
    '/images/ignition.img': new Uint8Array(262_144),
    '/images/pxeboot/vmlinuz': 'stand-in for a kernel\n',
    '/images/pxeboot/initrd.img': 'stand-in for an initramfs\n',
    '/images/pxeboot/rootfs.img': new Uint8Array(rootfsSize).fill(0x5a),
  };
  return Object.entries(files).map(([path, content]) => ({
    path,
    content: { kind: 'bytes', bytes: Buffer.from(content) },
    ...identifierOf(path),
  }));
}

/** CoreOS writes names of interchange level 1, and coreos-installer looks for them: `KARGS.JSO`. */
const identifierOf = (path: string): Pick<TreeFile, 'identifier'> =>
  path.endsWith('.json')
    ? { identifier: `${basename(path, '.json').slice(0, 8).toUpperCase()}.JSO;1` }
    : {};

/** A menu with a karg area: the arguments, filled up with comment signs. */
function menu(head: string): { readonly text: string; readonly offset: number } {
  const filler = '#'.repeat(KARGS_SIZE - KARGS.length - 1);
  return { text: `${head}${KARGS}\n${filler}# COREOS_KARG_EMBED_AREA\n`, offset: head.length };
}

/** Behind the terminator is room for another descriptor. */
const [DESCRIPTORS, PATH_TABLES, ROOT_SECTOR, SECTORS] = [16, 19, 21, 22];
/** Where in the root's sector the entry stands that is too long for a record. */
const CONTINUATION_AT = 1024;

/** ECMA-119: a volume with an empty root directory, Rock Ridge announced (SUSP 5.3, 5.5). */
function encodeEmptyVolume(): Uint8Array {
  const iso = new Uint8Array(SECTORS * 2048);
  const put = (sector: number, bytes: Uint8Array, at = 0): void => {
    iso.set(bytes, sector * 2048 + at);
  };
  const attributes = encodeRockRidge({
    mode: 0o040755,
    links: 2,
    uid: 0,
    gid: 0,
    times: { modified: TIME },
  });
  const reference = encodeSystemUse([encodeExtensionReference()]);
  const self = Buffer.concat([
    encodeSystemUse([encodeSharingProtocol(), ...attributes]),
    encodeContinuation(ROOT_SECTOR, CONTINUATION_AT, reference.length),
  ]);
  const pathTable = [{ identifier: Uint8Array.of(0), extent: ROOT_SECTOR, parent: 1 }];
  put(DESCRIPTORS, encodePrimaryVolumeDescriptor(describeVolume()));
  put(DESCRIPTORS + 1, encodeTerminator());
  put(PATH_TABLES, encodePathTable(pathTable, 'little'));
  put(PATH_TABLES + 1, encodePathTable(pathTable, 'big'));
  const records = [rootRecord(0, self), rootRecord(1, encodeSystemUse(attributes))];
  put(ROOT_SECTOR, Buffer.concat(records.map(encodeDirectoryRecord)));
  put(ROOT_SECTOR, reference, CONTINUATION_AT);
  return iso;
}

const rootRecord = (identifier: number, systemUse: Uint8Array): DirectoryRecord => ({
  identifier: Uint8Array.of(identifier),
  extent: ROOT_SECTOR,
  size: 2048,
  recordedAt: TIME,
  flags: FILE_FLAG.directory,
  systemUse,
});

const describeVolume = (): PrimaryVolumeDescriptor => ({
  systemId: 'LINUX',
  volumeId: VOLUME_ID,
  volumeSetId: VOLUME_ID,
  publisherId: '',
  preparerId: '',
  applicationId: '',
  copyrightFile: '',
  abstractFile: '',
  bibliographicFile: '',
  volumeSpaceSize: SECTORS,
  volumeSetSize: 1,
  volumeSequence: 1,
  logicalBlockSize: 2048,
  pathTableSize: 10,
  lPathTable: PATH_TABLES,
  mPathTable: PATH_TABLES + 1,
  optionalLPathTable: 0,
  optionalMPathTable: 0,
  fileStructureVersion: 1,
  createdAt: TIME,
  modifiedAt: TIME,
  expiresAt: undefined,
  effectiveAt: undefined,
  rootRecord: rootRecord(0, new Uint8Array(0)),
  applicationUse: new Uint8Array(512),
});
