import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { createRedaction } from '../../src/base/text/redact.ts';
import { DifferenceError } from '../../src/base/errors.ts';
import { runProgram } from '../../src/cli/program.ts';
import { parseIgnition } from '../../src/ignition/config.ts';
import { resolveConfig } from '../../src/ignition/resolve.ts';
import { decodeFileContent } from '../../src/ignition/resource.ts';
import { checkIgnition, findIgnitionWarnings } from '../../src/ignition/check.ts';
import { decodeInitrd } from '../../src/ignition/initrd.ts';
import { listSites } from '../../src/sites/sources/sites.ts';
import { decodeConfigArchive } from '../../src/openshift/agent/live-system.ts';
import { readCatalog } from '../../src/fbc/read/read-catalog.ts';
import { parseBundleFile } from '../../src/media/describe.ts';
import { parseMediaIndex } from '../../src/media/media-index.ts';
import { parseKeys } from '../../src/openpgp/keys.ts';
import { verifySignedMessage } from '../../src/openpgp/message.ts';
import { parseReleaseStatement } from '../../src/openshift/release/signature.ts';
import { digestOf } from '../../src/base/digest.ts';
import {
  credentialsFromPullSecret,
  listUnusableEntries,
} from '../../src/registry/client/credentials.ts';
import { readFiles } from '../../src/registry/layers/read.ts';
import { parseManifest } from '../../src/registry/manifest.ts';
import { parseReference } from '../../src/registry/reference.ts';
import { layerOf } from '../support/images.ts';
import type { Shape } from './mutate.ts';
import { SEEDS, type ReaderName, type Seed } from './seeds.ts';

/** Something that reads bytes of unknown origin. */
export type Reader = {
  readonly shape: Shape;
  /** Valid files to start from. */
  readonly seeds: () => Promise<readonly Seed[]> | readonly Seed[];
  /** Reads one file in every way there is, below `directory`; `turn` chooses where one does. */
  readonly read: (bytes: Buffer, place: Place) => Promise<unknown>;
};

type Place = { readonly directory: string; readonly turn: number };

const signal = new AbortController().signal;
/** Why a reader refused is of no interest to the next way of reading. */
const tryAll = async (ways: readonly (() => unknown)[]): Promise<void> => {
  const failures = await Promise.allSettled(ways.map((way) => Promise.resolve().then(way)));
  const failed = failures.find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
};

const ISO_COMMANDS: readonly (readonly string[])[] = [
  ['ls', '-R'],
  ['verify'],
  ['inspect'],
  ['ignition', 'show'],
  ['config-iso', 'show'],
  ['registry', 'serve', '--port', '99999'],
];

/** Thrown where the program itself says that it found a bug. */
export class BugFound extends Error {}

async function runOn(path: string, turn: number): Promise<void> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  let told = '';
  stdout.resume();
  stderr.on(
    'data',
    (piece: Buffer) => (told = told.length < 10_000 ? told + piece.toString() : told),
  );
  const command = ISO_COMMANDS[turn % ISO_COMMANDS.length] ?? [];
  const exitCode = await runProgram([...command, path], {
    stdout,
    stderr,
    env: {},
    cwd: '/',
    containersDir: '/nonexistent',
    redaction: createRedaction(),
    isTTY: false,
    signal,
    now: Date.now,
  });
  if (exitCode === 1) throw new BugFound(told);
  if (exitCode !== 0) throw new DifferenceError('fuzz.refused', String(exitCode));
}

const write = (path: string, bytes: Uint8Array): string => {
  writeFileSync(path, bytes);
  return path;
};

async function readSites(path: string, template?: string): Promise<void> {
  const list = await listSites(path, { signal, ...(template !== undefined && { template }) });
  try {
    await tryAll(list.names.slice(0, 20).map((name) => () => list.open(name)));
  } finally {
    await list.close();
  }
}

function writeTemplate(directory: string): string {
  const template = join(directory, 'template');
  mkdirSync(template, { recursive: true });
  write(join(template, 'install-config.yaml'), Buffer.from('metadata: {name: "{{ name }}"}\n'));
  write(join(template, 'image-based-config.yaml'), Buffer.from('hostname: "{{ name }}"\n'));
  return template;
}

const TABLES = ['sites.csv', 'sites.yaml'];
const ARCHIVES = ['sites.zip', 'sites.tar', 'sites.tar.gz'];

const READ: Readonly<Record<ReaderName, Omit<Reader, 'seeds'>>> = {
  iso: {
    shape: 'iso',
    read: (bytes, { directory, turn }) => runOn(write(join(directory, 'case.iso'), bytes), turn),
  },
  initrd: { shape: 'binary', read: decodeInitrd },
  ignition: {
    shape: 'text',
    read: (bytes) => {
      const config = parseIgnition(bytes.toString('utf8'), 'case');
      checkIgnition(config, 'case');
      findIgnitionWarnings(config, 'case');
      return Promise.resolve(resolveConfig(config).config.storage?.files?.map(decodeFileContent));
    },
  },
  catalog: {
    shape: 'text',
    read: async (bytes, { directory }) => {
      const catalog = join(directory, 'catalog');
      mkdirSync(catalog, { recursive: true });
      const name = bytes[0] === 0x7b ? 'catalog.json' : 'catalog.yaml';
      const path = write(join(catalog, name), bytes);
      try {
        await readCatalog(catalog, { signal });
      } finally {
        rmSync(path);
      }
    },
  },
  layer: {
    shape: 'binary',
    read: (bytes) => readFiles([layerOf(bytes)], () => true, { signal }),
  },
  manifest: {
    shape: 'text',
    read: (bytes) =>
      tryAll([
        () => parseManifest(bytes),
        () => parseMediaIndex(bytes),
        () => parseBundleFile(bytes),
      ]),
  },
  table: {
    shape: 'text',
    read: (bytes, { directory, turn }) =>
      readSites(
        write(join(directory, TABLES[turn % TABLES.length] ?? ''), bytes),
        writeTemplate(directory),
      ),
  },
  workbook: {
    shape: 'binary',
    read: (bytes, { directory }) =>
      readSites(write(join(directory, 'sites.xlsx'), bytes), writeTemplate(directory)),
  },
  archive: {
    shape: 'binary',
    read: (bytes, { directory }) => {
      const [zip = '', tar = '', packed = ''] = ARCHIVES;
      const name = bytes[0] === 0x50 ? zip : bytes[0] === 0x1f ? packed : tar;
      return tryAll([
        () => decodeConfigArchive(bytes),
        () => decodeConfigArchive(gzipSync(bytes, { level: 1 })),
        () => readSites(write(join(directory, name), bytes)),
      ]);
    },
  },
  auth: {
    shape: 'text',
    read: async (bytes) => {
      const text = bytes.toString('utf8');
      listUnusableEntries(text);
      const store = credentialsFromPullSecret(text, { name: 'case', redaction: createRedaction() });
      await store.find(parseReference('quay.io/a/b:latest'), new AbortController().signal);
    },
  },
  signature: {
    shape: 'binary',
    read: (bytes) => {
      const now = Date.now() / 1000;
      return tryAll([
        () => parseKeys(bytes, now),
        () => parseReleaseStatement(bytes),
        () => verifySignedMessage(bytes, [], now),
      ]);
    },
  },
};

export const READER_NAMES = Object.keys(READ) as readonly ReaderName[];

export const readerOf = (name: ReaderName): Reader => ({ ...READ[name], seeds: SEEDS[name] });

/** For the name of a kept case. */
export const nameCase = (bytes: Uint8Array): string => digestOf(bytes).slice(7, 23);
