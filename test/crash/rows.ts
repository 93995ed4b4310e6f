import { createPublicKey } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { digestFile } from '../../src/base/disk/files.ts';
import { verifyAuditLog } from '../../src/service/audit/verify.ts';
import type { Child } from '../support/child.ts';
import { askService } from './ask-service.ts';
import { EPOCH } from '../support/config-iso-world.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';

/** A command that writes, and what must be true of it however it ends. */
export type Row = {
  readonly name: string;
  readonly args: (folder: string) => readonly string[];
  /** Names in the world's folder that it is given; `a:b` is a copy of `a` as `b`. */
  readonly inputs: readonly string[];
  /** Names of files that are the old or the new ones at any moment. */
  readonly outputs: readonly string[];
  /** True if a file is changed in place: it is new after the same command has ended again. */
  readonly isInPlace?: boolean;
  /** Its exit code; default: 0. Again it may be 0. */
  readonly code?: number;
  /** The code with which it refuses to do again what is done. */
  readonly finished?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** Uses a command that runs until it is stopped. */
  readonly drive?: (child: Child) => Promise<readonly string[]>;
  /** Sentences about results that are not as they must be, after a run that ended. */
  readonly judge?: (folder: string) => Promise<readonly string[]>;
};

/** Addresses of what the rows talk to. */
export type Hosts = { readonly registry: string };

const CONFIG = ['appliance-config.yaml', 'release-signatures', 'release-keys.gpg', 'test.iso'];
const BUILD = ['--output', 'out.iso', '--base-iso', 'test.iso', '--fresh-layout'];
const ISO = ['out.iso', 'out.iso.sha256'];

type Short = readonly [
  name: string,
  args: readonly string[],
  inputs: readonly string[],
  outputs: readonly string[],
  more?: Partial<Row>,
];

const KEY = ['--ssh-key', TEST_SSH_KEY];
/** One process, whose steps come in one order; those of workers write no file. */
const SERVE = [
  ...['serve', '--data', 'data', '--key', 'file:serve.key'],
  ...['--listen', '127.0.0.1:0', '--workers', '1'],
];

const KEYS = ['--key', 'file:new.key', '--previous-key', 'file:serve.key'];
const PARTS = ['parts.delta.1', 'parts.delta.parity'];

/** Commands that need nothing but files. */
const SHORT: readonly Short[] = [
  [
    'serve rekey',
    [...['serve', 'rekey', '--data', 'records'], ...KEYS],
    ['records', 'serve.key', 'new.key'],
    [],
  ],
  ['build live-iso', ['build', ...BUILD], CONFIG, ISO],
  [
    'build live-iso over an older one',
    ['build', ...BUILD, '--cache', 'cache'],
    [...CONFIG, 'monday.iso:out.iso', 'tuesday.yaml:appliance-config.yaml'],
    ['out.iso'],
  ],
  [
    'build upgrade-iso',
    ['build', 'upgrade-iso', '--output', 'out.iso'],
    [...CONFIG, 'upgrade.yaml:appliance-config.yaml'],
    ISO,
  ],
  [
    'build disk-image',
    ['build', 'disk-image', '--metal-image', 'metal.raw', ...BUILD, '--qcow2', 'out.qcow2'],
    [...CONFIG, 'metal.raw'],
    [...ISO, 'out.qcow2'],
  ],
  [
    'build deployment-iso',
    ['build', 'deployment-iso', '--metal-image', 'metal.raw', ...BUILD],
    [...CONFIG, 'metal.raw'],
    ISO,
  ],
  [
    'build installation-iso',
    ['build', 'installation-iso', '--output', 'out.iso', '--base-iso', 'test.iso'],
    ['image-based-installation-config.yaml', 'test.iso'],
    ISO,
  ],
  [
    'config-iso build',
    ['config-iso', 'build', 'sites', '--out', 'out'],
    ['sites'],
    [],
    { env: { SOURCE_DATE_EPOCH: EPOCH }, judge: judgeSites },
  ],
  [
    'config-iso build of sites that have keys',
    ['config-iso', 'build', 'sites', '--out', 'out'],
    ['sites', 'keys:out'],
    ['out/alpha.iso', 'out/beta.iso'],
    { env: { SOURCE_DATE_EPOCH: EPOCH }, judge: judgeSites },
  ],
  [
    'config-iso export',
    ['config-iso', 'export', 'sites', '--as', 'acm-import', '--out', 'out'],
    ['sites'],
    [],
    { env: { SOURCE_DATE_EPOCH: EPOCH } },
  ],
  ['lock', ['lock', '--base-iso', 'test.iso'], CONFIG, ['sealift.lock.json']],
  [
    'delta',
    ['delta', 'monday.iso', 'tuesday.iso', '--output', 'night.delta'],
    ['monday.iso', 'tuesday.iso'],
    ['night.delta'],
  ],
  [
    'apply',
    ['apply', 'monday.iso', 'night.delta', '--output', 'new.iso'],
    ['monday.iso', 'night.delta'],
    ['new.iso'],
  ],
  [
    'delta in parts',
    [
      ...['delta', 'monday.iso', 'tuesday.iso', '--output', 'parts.delta'],
      ...['--max-part-size', '1MiB'],
    ],
    ['monday.iso', 'tuesday.iso'],
    PARTS,
  ],
  [
    'apply of parts',
    ['apply', 'monday.iso', 'parts.delta.parity', '--output', 'new.iso'],
    ['monday.iso', 'parts.delta.parity'],
    ['new.iso'],
  ],
  [
    'apply --in-place',
    ['apply', 'x.iso', 'night.delta', '--in-place'],
    ['monday.iso:x.iso', 'night.delta'],
    ['x.iso'],
    { isInPlace: true },
  ],
  [
    'apply --in-place to a customised ISO',
    ['apply', 'x.iso', 'night.delta', '--in-place'],
    ['customised.iso:x.iso', 'night.delta'],
    ['x.iso'],
    { isInPlace: true },
  ],
  [
    'customize',
    ['customize', 'test.iso', ...KEY, '--output', 'site.iso'],
    ['test.iso'],
    ['site.iso'],
    { finished: 'output.exists' },
  ],
  [
    'customize --in-place',
    ['customize', 'x.iso', ...KEY, '--in-place'],
    ['test.iso:x.iso'],
    ['x.iso'],
    { isInPlace: true, finished: 'customize.already' },
  ],
  [
    'repair',
    ['repair', 'x.iso', '--from', 'monday.iso', '--from', 'tuesday.iso'],
    ['damaged.iso:x.iso', 'monday.iso', 'tuesday.iso'],
    ['x.iso'],
    { isInPlace: true },
  ],
  [
    'extract pxe',
    ['extract', 'pxe', 'test.iso', '--out', 'pxe'],
    ['test.iso'],
    ['pxe/test-kernel.img'],
  ],
  [
    'extract rootfs',
    ['extract', 'rootfs', 'test.iso', '--out', 'pxe'],
    ['test.iso'],
    ['pxe/test-rootfs.img'],
  ],
  [
    'extract minimal-iso',
    ['extract', 'minimal-iso', 'full.iso', '--out', 'pxe'],
    ['full.iso'],
    ['pxe/full-minimal.iso', 'pxe/full-minimal.iso.sha256'],
  ],
  [
    'extract installer',
    ['extract', 'installer', 'monday.iso', '--out', 'bin', '--signature-keys', 'release-keys.gpg'],
    ['monday.iso', 'release-keys.gpg'],
    ['bin/openshift-install'],
  ],
  ['resources', ['resources', '--output', 'r.yaml', '--base-iso', 'test.iso'], CONFIG, ['r.yaml']],
  ['plan', ['plan', '--base-iso', 'test.iso'], CONFIG, []],
  ['inspect with a log file', ['inspect', 'test.iso', '--log-file', 'a.log'], ['test.iso'], []],
  [
    'token keys',
    ['token', 'keys', '--out', '.'],
    [],
    [],
    { finished: 'output.exists', judge: judgeKeys },
  ],
  [
    'import imageset',
    ['import', 'imageset', 'imageset.yaml', '--output', 'a.yaml'],
    ['imageset.yaml'],
    ['a.yaml'],
  ],
  ['init', ['init', 'site'], [], ['site/appliance-config.yaml']],
  ['init --template sites', ['init', '--template', 'sites', 'field'], [], ['field/sites.csv']],
  ['cache verify', ['cache', 'verify', 'rotten'], ['rotten'], [], { code: 8, judge: judgeCache }],
  ['cache prune', ['cache', 'prune', 'cache', '--max-size', '1MiB'], ['cache'], []],
];

/** Every command that writes. */
export const listRows = ({ registry }: Hosts): readonly Row[] => [
  ...SHORT.map(([name, args, inputs, outputs, more = {}]): Row => ({
    name,
    args: () => args,
    inputs,
    outputs,
    ...more,
  })),
  {
    name: 'push',
    args: (folder) => ['push', 'monday.iso', `oci://${registry}/push/${nameOf(folder)}:1`],
    inputs: ['monday.iso'],
    outputs: ['monday.iso'],
  },
  {
    name: 'pull',
    args: () => ['pull', `oci://${registry}/m/iso:1`, '--output', 'pulled.iso'],
    inputs: [],
    outputs: ['pulled.iso'],
  },
  {
    name: 'serve',
    args: () => SERVE,
    inputs: ['serve.key'],
    outputs: [],
    code: 143,
    drive: askService,
  },
  {
    name: 'serve with an audit log',
    args: () => [...SERVE, ...['--audit-log', 'log/audit.log']],
    inputs: ['serve.key'],
    outputs: [],
    code: 143,
    drive: askService,
    judge: judgeAudit,
  },
];

const nameOf = (folder: string): string => basename(folder).toLowerCase();

/** The public key belongs to the private one. */
function judgeKeys(folder: string): Promise<readonly string[]> {
  const [key, pub] = ['issuer.key', 'issuer.pub'].map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  );
  const made = createPublicKey(key ?? '').export({ type: 'spki', format: 'pem' });
  return Promise.resolve(made === pub ? [] : ['the keys are not a pair']);
}

/** Every line of the audit log follows from the one before. */
async function judgeAudit(folder: string): Promise<readonly string[]> {
  try {
    await verifyAuditLog([join(folder, 'log/audit.log')]);
    return [];
  } catch (error) {
    return [String(error)];
  }
}

/** Every blob has the digest that is its name. */
async function judgeCache(folder: string): Promise<readonly string[]> {
  const blobs = join(folder, 'rotten/sha256');
  const wrong: string[] = [];
  for (const name of readdirSync(blobs)) {
    if ((await digestFile(join(blobs, name))) !== `sha256:${name}`)
      wrong.push(`${name} is damaged`);
  }
  return wrong;
}

type Listing = { readonly sites: readonly { readonly iso: string; readonly sha256: string }[] };

/** The list of the sites says the digests of their ISOs. */
async function judgeSites(folder: string): Promise<readonly string[]> {
  const out = join(folder, 'out');
  const { sites } = JSON.parse(readFileSync(join(out, 'sites.json'), 'utf8')) as Listing;
  const wrong = sites.length === 2 ? [] : [`sites.json lists ${sites.length} sites`];
  for (const { iso, sha256 } of sites) {
    if ((await digestFile(join(out, iso))) !== `sha256:${sha256}`) wrong.push(`${iso} is another`);
  }
  return wrong;
}
