import type { Command } from 'commander';
import { UsageError, IntegrityError } from '../../base/errors.ts';
import { toPrintable } from '../../base/text/words.ts';
import type { IsoImage, IsoNode } from '../../iso/index.ts';
import { describeDelta } from '../../media/delta/describe.ts';
import { inspectImage } from '../../media/inspect-disk.ts';
import { readBootstrapIgnition, readEmbeddedIgnition } from '../../media/open.ts';
import type { CliHost } from '../host.ts';
import { ISO_ARGUMENT, useNamed, useIso } from '../named-media.ts';
import {
  createOutputOption,
  type OutputFormat,
  writeList,
  writePiece,
  writeContent,
} from '../terminal/output.ts';
import { describeDeltaFile, listDisk, listInspected } from './inspect-result.ts';
import { listRows, say, writeReport } from '../terminal/report.ts';

/* This file owns the commands that read an ISO: `inspect`, `ls`, `cat` and `ignition show`. */

export function registerInspect(program: Command, host: CliHost): void {
  program
    .command('inspect')
    .description('describe an ISO (volume, boot, kernel arguments, release) or a delta')
    .argument('<iso>', `${ISO_ARGUMENT}, of any maker; or a delta`)
    .addOption(createOutputOption())
    .addHelpText(
      'after',
      '\nExample:\n  $ sealift inspect appliance.iso -o json | jq .coreos.kargs',
    )
    .action(async (iso: string, options: { outputFormat: OutputFormat }) => {
      const value = await useNamed(
        iso,
        host,
        async (source) => (await describeDelta(source)) ?? (await inspectImage(source)),
      );
      await writeReport({ host, ...options }, value, (value) => ({
        title: say`Contents of ${iso}`,
        body: listRows(
          { width: 15 },
          !('kind' in value)
            ? [...listInspected(value), ...(value.disk ? listDisk(value.disk) : [])]
            : value.kind === 'disk-image'
              ? listDisk(value)
              : describeDeltaFile(value),
        ),
      }));
    });
}

type Entry = {
  readonly path: string;
  readonly kind: IsoNode['kind'];
  /** Mode in octal, as chmod takes it. */
  readonly mode: string;
  readonly size?: number;
  readonly modifiedAt?: string;
  readonly target?: string;
};

type LsOptions = {
  readonly outputFormat: OutputFormat;
  readonly long?: boolean;
  readonly recursive?: boolean;
};

export function registerLs(program: Command, host: CliHost): void {
  program
    .command('ls')
    .description('list files of an ISO')
    .argument('<iso>', `${ISO_ARGUMENT}, of any maker`)
    .argument('[path]', 'directory or file in it', '/')
    .option('-l, --long', 'also print mode, size and time')
    .option('-R, --recursive', 'list everything below')
    .addOption(createOutputOption(['text', 'json']))
    .addHelpText('after', '\nExample:\n  $ sealift ls appliance.iso /registry -R')
    .action(async (path: string, inside: string, options: LsOptions) => {
      return useIso(path, host, async (iso) => {
        const entries = listEntries(iso, inside, options.recursive === true);
        const format = options.long ? formatLong : formatShort;
        await writeList({ host, ...options }, entries, format);
      });
    });
}

async function* listEntries(
  iso: IsoImage,
  inside: string,
  recursive: boolean,
): AsyncGenerator<Entry> {
  const path = `/${inside}`.replace(/\/+/g, '/').replace(/(.)\/$/, '$1');
  const node = await requireNode(iso, path);
  const prefix = path === '/' ? '/' : `${path}/`;
  if (node.kind !== 'directory') yield describe(path, node);
  else if (recursive) {
    for await (const { path, node } of iso.walk()) {
      if (path.startsWith(prefix) && path !== '/') yield describe(path, node);
    }
  } else {
    for (const child of await iso.children(node)) yield describe(`${prefix}${child.name}`, child);
  }
}

async function requireNode(iso: IsoImage, path: string): Promise<IsoNode> {
  const node = await iso.find(path);
  if (node) return node;
  throw new UsageError('iso.no-such-path', `${iso.path} has no ${path}`, {
    hint: 'list its files with "sealift ls"',
  });
}

function describe(path: string, node: IsoNode): Entry {
  return {
    path,
    kind: node.kind,
    mode: (node.mode & 0o7777).toString(8).padStart(4, '0'),
    ...(node.kind === 'file' && { size: node.size }),
    ...(node.kind === 'symlink' && { target: node.target }),
    ...(node.modifiedAt && { modifiedAt: node.modifiedAt.toISOString() }),
  };
}

const formatShort = ({ path, kind }: Entry): string =>
  `${toPrintable(path)}${kind === 'directory' ? '/' : ''}\n`;

function formatLong(entry: Entry): string {
  const size = String(entry.size ?? '').padStart(14);
  const time = (entry.modifiedAt ?? '').slice(0, 19).padEnd(19);
  const target = entry.target === undefined ? '' : ` -> ${toPrintable(entry.target)}`;
  return `${entry.mode} ${size} ${time} ${formatShort(entry).trimEnd()}${target}\n`;
}

export function registerCat(program: Command, host: CliHost): void {
  program
    .command('cat')
    .description('write a file of an ISO to standard output')
    .argument('<iso>', `${ISO_ARGUMENT}, of any maker`)
    .argument('<path>', 'file in it')
    .addHelpText('after', '\nExample:\n  $ sealift cat appliance.iso /coreos/kargs.json')
    .action(async (path: string, inside: string) => {
      return useIso(path, host, async (iso) => {
        const node = await requireNode(iso, inside);
        if (node.kind !== 'file') {
          throw new UsageError('iso.not-a-file', `${inside} is a ${node.kind}, not a file`);
        }
        for await (const piece of iso.stream(node)) await writePiece(host, piece as Uint8Array);
      });
    });
}

export function registerIgnition(program: Command, host: CliHost): void {
  program
    .command('ignition')
    .description('read the Ignition configs of a live ISO')
    .addHelpText('after', '\nExample:\n  $ sealift ignition show appliance.iso | jq .storage')
    .command('show')
    .description('print the config in the embed area')
    .argument('<iso>', `CoreOS live ${ISO_ARGUMENT}, of any maker`)
    .option('--bootstrap', 'print the bootstrap config instead, which media of sealift have')
    .addHelpText(
      'after',
      '\nPrints the whole config, with its secrets.\n' +
        '\nExample:\n  $ sealift ignition show appliance.iso | jq -r ".storage.files[].path"',
    )
    .action(async (path: string, { bootstrap }: { bootstrap?: boolean }) => {
      return useIso(path, host, async (iso, name) => {
        const read = bootstrap === true ? readBootstrapIgnition : readEmbeddedIgnition;
        const text = await read(iso);
        if (text === undefined) throw noConfig(name, bootstrap === true);
        await writeContent(host, text.endsWith('\n') ? text : `${text}\n`);
      });
    });
}

const noConfig = (path: string, bootstrap: boolean): IntegrityError =>
  new IntegrityError(
    'ignition.none',
    `${path} has no ${bootstrap ? 'bootstrap' : 'embedded'} Ignition config`,
  );
