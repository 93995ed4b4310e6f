import { decodeUserText } from '../../base/text/utf8.ts';
import type { Command } from 'commander';
import { basename, resolve } from 'node:path';
import { isUnreadable } from '../../base/disk/disk-errors.ts';
import { readInputFile } from '../../base/disk/files.ts';
import { ConfigError, UsageError } from '../../base/errors.ts';
import { isObject, withoutUndefined } from '../../base/lists.ts';
import { joinProblem } from '../../base/text/words.ts';
import type { CustomValues, InstallerValues, NamedFile } from '../../openshift/agent/values.ts';
import { parse } from '../../shape/parse-text.ts';
import { explainBundle } from '../../keys/index.ts';
import type { CliHost } from '../host.ts';
import { addTo } from '../options.ts';

/*
 * This file owns the values that `customize` has in common with `coreos-installer iso customize`: kernel
 * arguments, network profiles, and parameters of coreos-installer.
 */

export type InstallerOptions = {
  readonly kargsAppend?: readonly string[];
  readonly kargsDelete?: readonly string[];
  readonly kargsReplace?: readonly string[];
  readonly networkKeyfile?: readonly string[];
  readonly liveIgnition?: readonly string[];
  readonly ignitionCa?: readonly string[];
  readonly destDevice?: string;
  readonly destIgnition?: readonly string[];
  readonly destConsole?: readonly string[];
  readonly destKargAppend?: readonly string[];
  readonly destKargDelete?: readonly string[];
  readonly preInstall?: readonly string[];
  readonly postInstall?: readonly string[];
  readonly installerConfig?: readonly string[];
};

export const INSTALLER_FLAGS: Readonly<Record<keyof InstallerOptions, string>> = {
  kargsAppend: '--kargs-append',
  kargsDelete: '--kargs-delete',
  kargsReplace: '--kargs-replace',
  networkKeyfile: '--network-keyfile',
  liveIgnition: '--live-ignition',
  ignitionCa: '--ignition-ca',
  destDevice: '--dest-device',
  destIgnition: '--dest-ignition',
  destConsole: '--dest-console',
  destKargAppend: '--dest-karg-append',
  destKargDelete: '--dest-karg-delete',
  preInstall: '--pre-install',
  postInstall: '--post-install',
  installerConfig: '--installer-config',
};

export const addInstallerOptions = (command: Command): Command =>
  command
    .option('--kargs-append <karg>', 'kernel argument to add at the end; may be repeated', addTo)
    .option('--kargs-delete <karg>', 'kernel argument to remove; may be repeated', addTo)
    .option(
      '--kargs-replace <key=old=new>',
      'kernel argument to give another value; may be repeated',
      addTo,
    )
    .option(
      '--network-keyfile <file>',
      'NetworkManager profile of the live system, and of an installed one; may be repeated',
      addTo,
    )
    .option(
      '--live-ignition <file>',
      'Ignition config that the live system merges; may be repeated',
      addTo,
    )
    .option('--ignition-ca <file>', 'PEM certificates that Ignition trusts; may be repeated', addTo)
    .option(
      '--dest-device <path>',
      'run coreos-installer, and install to this device without confirmation',
    )
    .option(
      '--dest-ignition <file>',
      'run coreos-installer with this Ignition config for the installed system; may be repeated',
      addTo,
    )
    .option(
      '--dest-console <spec>',
      'run coreos-installer with this console for kernel and boot loader; may be repeated',
      addTo,
    )
    .option(
      '--dest-karg-append <karg>',
      'run coreos-installer with this kernel argument for the installed system; may be repeated',
      addTo,
    )
    .option(
      '--dest-karg-delete <karg>',
      'run coreos-installer without this kernel argument; may be repeated',
      addTo,
    )
    .option('--pre-install <file>', 'script to run before coreos-installer; may be repeated', addTo)
    .option('--post-install <file>', 'script to run after coreos-installer; may be repeated', addTo)
    .option(
      '--installer-config <file>',
      'run coreos-installer with these parameters, YAML; may be repeated',
      addTo,
    );

/** Reads the values that the options mean, and adds kernel arguments to those of other options. */
export function readInstallerValues(
  options: InstallerOptions,
  { kargs = {} }: CustomValues,
  host: CliHost,
): CustomValues {
  const { kargsAppend = [], kargsDelete = [], kargsReplace: replace = [] } = options;
  const append = [...(kargs.append ?? []), ...kargsAppend];
  const edits = { append, remove: [...(kargs.remove ?? []), ...kargsDelete], replace };
  const hasEdits = Object.values(edits).some(({ length }) => length > 0);
  const installer = readParameters(options, host);
  const keyfiles = readFiles(options.networkKeyfile, host)?.map(({ name, bytes }) => ({
    name,
    content: decodeUserText(bytes, name),
  }));
  return {
    ...(hasEdits && { kargs: edits }),
    ...withoutUndefined({ keyfiles }),
    ...(Object.keys(installer).length > 0 && { installer }),
  };
}

function readParameters(options: InstallerOptions, host: CliHost): InstallerValues {
  const { destDevice, destKargAppend, destKargDelete } = options;
  const values: InstallerValues = withoutUndefined({
    liveIgnition: readFiles(options.liveIgnition, host),
    ignitionCa: readFiles(options.ignitionCa, host),
    destDevice,
    destIgnition: readFiles(options.destIgnition, host),
    destConsole: options.destConsole?.map(normaliseConsole),
    destKargsAppend: destKargAppend,
    destKargsDelete: destKargDelete,
    preInstall: readFiles(options.preInstall, host),
    postInstall: readFiles(options.postInstall, host),
    installerConfig: readFiles(options.installerConfig, host),
  });
  values.ignitionCa?.forEach(checkAuthorities);
  values.installerConfig?.forEach(checkInstallerConfig);
  return values;
}

const readFiles = (
  paths: readonly string[] | undefined,
  host: CliHost,
): readonly NamedFile[] | undefined =>
  paths?.map((path) => ({ name: basename(path), bytes: readFile(path, host) }));

export function readFile(path: string, { cwd }: CliHost): Buffer {
  try {
    return readInputFile(resolve(cwd, path), { domain: 'input', limit: 16 << 20 });
  } catch (cause) {
    if (!isUnreadable(cause)) throw cause;
    throw new ConfigError('input.missing', `"${path}" cannot be read`, {
      cause,
      hint: 'check the name of the file',
    });
  }
}

const SERIAL = /^(ttyS|ttyAMA)(\d+)(?:,(\d+)(?:([noe])([5-8])?)?)?$/;

/** Completes a console as coreos-installer does: `ttyS0` is `ttyS0,9600n8`. */
function normaliseConsole(text: string): string {
  if (['tty0', 'hvc0', 'ttysclp0'].includes(text)) return text;
  const [, prefix, port, speed = '9600', parity = 'n', bits = '8'] = SERIAL.exec(text) ?? [];
  if (prefix !== undefined && port !== undefined && Number(port) < 256)
    return `${prefix}${Number(port)},${Number(speed)}${parity}${bits}`;
  throw new UsageError('usage.dest-console', `--dest-console is "${text}"`, {
    expected: 'tty0, hvc0, ttysclp0, or ttyS or ttyAMA with a number, as in ttyS0,115200n8',
    found: text,
    hint: 'give other consoles with --dest-karg-append console=...',
  });
}

function checkAuthorities({ name, bytes }: NamedFile): void {
  const why = explainBundle(bytes);
  if (why !== undefined) throw new UsageError('usage.ignition-ca', joinProblem(name, why));
}

/** Members of coreos-installer 0.27.0. */
const PARAMETERS = [
  'stream',
  'image-url',
  'image-file',
  'ignition-file',
  'ignition-url',
  'ignition-hash',
  'architecture',
  'platform',
  'console',
  'append-karg',
  'delete-karg',
  'copy-network',
  'network-dir',
  'save-partlabel',
  'save-partindex',
  'offline',
  'insecure',
  'insecure-ignition',
  'stream-base-url',
  'preserve-on-error',
  'fetch-retries',
  'secure-ipl',
  'dest-device',
];

function checkInstallerConfig({ name, bytes }: NamedFile): void {
  const parsed = parseYaml(decodeUserText(bytes, name));
  if (!isObject(parsed)) throw refuseConfig(`${name} is not a YAML mapping`);
  const odd = Object.keys(parsed).find((key) => !PARAMETERS.includes(key));
  if (odd !== undefined) throw refuseConfig(`${name} has "${odd}", which is not a parameter`);
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    if (cause instanceof Error) return undefined; // the cause may quote the text
    throw cause;
  }
}

const refuseConfig = (problem: string): UsageError =>
  new UsageError('usage.installer-config', problem, {
    hint: 'give the parameters of "coreos-installer install" as YAML: dest-device: /dev/vda',
  });
