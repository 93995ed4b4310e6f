import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { requireNoCanary, requireNoCanaryResult } from './canaries.ts';
import { createRedaction } from '../../src/base/text/redact.ts';
import { digestOf, type Digest } from '../../src/base/digest.ts';
import { runProgram } from '../../src/cli/program.ts';
import type { KeySource } from '../../src/sites/identity/keys.ts';
import type { NetworkTool } from '../../src/nmstate/tool.ts';
import { buildConfigIsos, type ConfigIsosReport } from '../../src/stages/config-isos.ts';
import type { SiteListing } from '../../src/stages/report/sites.ts';
import { writeTree, type Tree } from './site-archives.ts';

export type Outcome = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

/** A folder, and the program to run in it. */
export type ConfigIsoWorld = {
  readonly directory: string;
  readonly at: (...names: string[]) => string;
  readonly write: (tree: Tree) => void;
  readonly run: (...args: string[]) => Promise<Outcome>;
  readonly runIn: (env: NodeJS.ProcessEnv, ...args: string[]) => Promise<Outcome>;
  /** Below the command line, so that keys can be made before. */
  readonly build: (keys: KeySource, request: BuildRequest) => Promise<ConfigIsosReport>;
  readonly readListing: (out: string) => Promise<SiteListing>;
  readonly close: () => Promise<void>;
};

/** Names are below the folder. */
export type BuildRequest = {
  readonly sites: string;
  readonly out: string;
  readonly template?: string;
  /** Absolute. */
  readonly medium?: string;
  readonly dropIn?: boolean;
  readonly rotate?: boolean;
  readonly force?: boolean;
  readonly retainFrom?: string;
  readonly kubeconfig?: string;
  readonly newIdentities?: ReadonlySet<string>;
  readonly useGenerations?: ReadonlyMap<string, number>;
  readonly epoch?: number;
  readonly env?: NodeJS.ProcessEnv;
  readonly nmstate?: NetworkTool;
  readonly program?: Digest;
  readonly signal?: AbortSignal;
};

export const PASSWORD = 'c2VjcmV0LXdvcmQ6aGVyZQ==';
const PULL_SECRET = `{"auths":{"quay.io":{"auth":"${PASSWORD}"}}}`;
export const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0Y0pWyKuWmEWpYk6Pl5bG4V7gSTQeFn3mQp5b8Qm7H core@example.com';

/** 2026-01-02T03:04:05Z. */
export const EPOCH = '1767323045';

/** Read from the sources, it would take longer than a build. */
const PROGRAM = digestOf('program');

export async function createConfigIsoWorld(): Promise<ConfigIsoWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-config-iso-'));
  const at = (...names: string[]): string => join(directory, ...names);
  return {
    directory,
    at,
    write: (tree) => {
      writeTree(directory, tree);
    },
    run: (...args) => run(directory, args, {}),
    runIn: (env, ...args) => run(directory, args, env),
    build: (
      keys,
      { nmstate, program = PROGRAM, signal = new AbortController().signal, ...request },
    ) =>
      buildConfigIsos(
        {
          cwd: directory,
          dropIn: false,
          rotate: false,
          jobs: 2,
          epoch: Number(EPOCH),
          redaction: createRedaction(),
          ...request,
          sites: at(request.sites),
          out: at(request.out),
          ...(request.template !== undefined && { template: at(request.template) }),
          ...(request.retainFrom !== undefined && { retainFrom: at(request.retainFrom) }),
          ...(request.kubeconfig !== undefined && { kubeconfig: at(request.kubeconfig) }),
        },
        { keys, signal, emit: () => undefined, now: Date.now, nmstate, program },
      ),
    readListing: async (out) =>
      JSON.parse(await readFile(at(out, 'sites.json'), 'utf8')) as SiteListing,
    close: () => rm(directory, { recursive: true, force: true }),
  };
}

async function run(cwd: string, args: string[], env: NodeJS.ProcessEnv): Promise<Outcome> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const texts = { stdout: collect(stdout), stderr: collect(stderr) };
  const exitCode = await runProgram(args, {
    stdout,
    stderr,
    cwd,
    redaction: createRedaction(),
    isTTY: false,
    now: Date.now,
    env: { SOURCE_DATE_EPOCH: EPOCH, ...env },
    signal: new AbortController().signal,
  });
  const printed = requireNoCanaryResult(args, texts.stdout());
  return { exitCode, stdout: printed, stderr: requireNoCanary(texts.stderr()) };
}

function collect(stream: PassThrough): () => string {
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  return () => Buffer.concat(pieces).toString('utf8');
}

export type SiteParts = {
  readonly clusterName?: string;
  /** Last number of its address, and what else tells it from others. */
  readonly number?: number;
  /** Lines of install-config.yaml. */
  readonly install?: readonly string[];
  /** Lines of image-based-config.yaml. */
  readonly imageBased?: readonly string[];
  /** Names and texts below extra-manifests/. */
  readonly manifests?: Tree;
};

/** A manifest that a node can apply. */
export const manifestOf = (kind: string, name = 'a'): string =>
  `apiVersion: v1\nkind: ${kind}\nmetadata: {name: ${name}}\n`;

/** The files of a good site, below a folder of its name. */
export function siteTree(name: string, parts: SiteParts = {}): Tree {
  const { number = 1, clusterName = name, install = [], imageBased = [], manifests = {} } = parts;
  const files: Tree = {
    'install-config.yaml': installConfig(clusterName, install),
    'image-based-config.yaml': imageBasedConfig(name, addressOf(number), imageBased),
    ...Object.fromEntries(
      Object.entries(manifests).map(([file, text]) => [`extra-manifests/${file}`, text]),
    ),
  };
  return Object.fromEntries(Object.entries(files).map(([path, text]) => [`${name}/${path}`, text]));
}

/** The trees below a folder. */
export const inFolder = (folder: string, ...trees: readonly Tree[]): Tree =>
  Object.fromEntries(
    trees.flatMap((tree) =>
      Object.entries(tree).map(([path, text]) => [`${folder}/${path}`, text] as const),
    ),
  );

export const installConfig = (clusterName: string, more: readonly string[] = []): string =>
  [
    'apiVersion: v1',
    'baseDomain: edge.example',
    `metadata: {name: "${clusterName}"}`,
    'controlPlane: {name: master, replicas: 1}',
    'compute: [{name: worker, replicas: 0}]',
    'networking:',
    '  networkType: OVNKubernetes',
    '  machineNetwork: [{cidr: 192.168.0.0/16}]',
    '  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}]',
    '  serviceNetwork: [172.30.0.0/16]',
    'platform: {none: {}}',
    `pullSecret: '${PULL_SECRET}'`,
    `sshKey: ${SSH_KEY}`,
    ...more,
    '',
  ].join('\n');

export type Address = { readonly ip: string; readonly mac: string };

/** One of 65,000 that are different, below 192.168.0.0/16. */
export const addressOf = (number: number): Address => {
  const bytes = [number >> 8, number & 255];
  const hex = bytes.map((byte) => byte.toString(16).padStart(2, '0'));
  return { ip: `192.168.${bytes.join('.')}`, mac: `52:54:00:00:${hex.join(':')}` };
};

export function imageBasedConfig(
  hostname: string,
  { ip, mac }: Address,
  more: readonly string[] = [],
): string {
  return [
    'apiVersion: v1beta1',
    'kind: ImageBasedConfig',
    `hostname: ${hostname}`,
    'releaseRegistry: quay.io',
    'additionalNTPSources: [0.pool.ntp.org]',
    'networkConfig:',
    '  interfaces:',
    '  - name: eth0',
    '    type: ethernet',
    '    state: up',
    `    mac-address: "${mac}"`,
    '    ipv4:',
    '      enabled: true',
    '      dhcp: false',
    `      address: [{ip: ${ip}, prefix-length: 16}]`,
    '  routes:',
    '    config:',
    '    - {destination: 0.0.0.0/0, next-hop-address: 192.168.255.254, next-hop-interface: eth0}',
    '  dns-resolver: {config: {server: [192.168.255.253]}}',
    ...more,
    '',
  ].join('\n');
}
