import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { formatCanonicalJson, type Json } from '../../base/text/json.ts';
import { decodeUserText } from '../../base/text/utf8.ts';
import { formatIgnition, readGivenIgnition } from '../../ignition/index.ts';
import type { CoreosFeatures } from '../../iso/index.ts';
import type { InstallerValues, NamedFile } from '../../openshift/agent/values.ts';

/*
 * Runs coreos-installer on a live system. `coreos-installer iso customize` of the same values writes the same
 * text, but for the packed bytes of its resources.
 */

/** Version of every config that coreos-installer writes around the configs that it is given. */
const WRITTEN_VERSION = '3.3.0';

const DEST_IGNITION = '/etc/coreos/dest.ign';
const CONFIGS = '/etc/coreos/installer.d/';
const [SCRIPT_MODE, CONFIG_MODE] = [0o700, 0o600];

export type InstallerContext = {
  readonly features: CoreosFeatures;
  /** True if the values of this run configure the network of the live system. */
  readonly hasNetwork: boolean;
  readonly warn: (text: string) => void;
};

export function renderInstallerConfig(values: InstallerValues, options: InstallerContext): string {
  const { features, warn } = options;
  requireFeatures(values, features);
  const { preInstall = [], postInstall = [], installerConfig = [], ignitionCa = [] } = values;
  const hooks = [
    ...preInstall.map((script) => renderHook(script, PRE)),
    ...postInstall.map((script) => renderHook(script, POST)),
  ];
  const dest = renderDestination(values);
  const parameters = listParameters(values, { dest, ...options });
  const configs = [
    ...installerConfig,
    ...(parameters
      ? [{ name: 'customize.yaml', bytes: Buffer.from(formatParameters(parameters)) }]
      : []),
  ].map(({ name, bytes }, at) => ({ name: `${String(at).padStart(4, '0')}-${name}`, bytes }));
  if (configs.length > 0) warn(describeInstallation(values));
  const given = configs.slice(0, installerConfig.length);
  const files = [
    ...hooks.map(({ file }) => file),
    ...given.map(renderConfigFile),
    ...(dest ? [renderFile(DEST_IGNITION, dest, CONFIG_MODE)] : []),
    ...configs.slice(given.length).map(renderConfigFile),
  ];
  const units = hooks.map(({ unit }) => unit);
  refuseTwice([...files.map(({ path }) => path), ...units.map(({ name }) => name)]);
  return formatWritten({
    merge: (values.liveIgnition ?? []).map(normaliseConfig),
    authorities: ignitionCa.map(({ bytes }) => bytes),
    files,
    units,
  });
}

/** Values that the live system reads without coreos-installer's folder for parameters. */
const LIVE: ReadonlySet<string> = new Set([
  'liveIgnition',
  'ignitionCa',
  'preInstall',
  'postInstall',
]);

/** True if the values make the live system run coreos-installer, or change how it runs. */
export const isForInstaller = (values: InstallerValues): boolean =>
  Object.keys(withoutUndefined(values)).some(
    (name) => name !== 'liveIgnition' && name !== 'ignitionCa',
  );

function requireFeatures(values: InstallerValues, features: CoreosFeatures): void {
  if (values.destConsole && !features.installerConfigDirectives.includes('console')) {
    throw new UsageError(
      'customize.no-console',
      'this ISO does not support customizing the destination console',
      { hint: 'give the console with --dest-karg-append console=...' },
    );
  }
  const needsFeature = Object.keys(withoutUndefined(values)).some((name) => !LIVE.has(name));
  if (features.installerConfig || !needsFeature) return;
  throw new UsageError(
    'customize.no-installer-config',
    'this ISO does not support customizing installer configuration',
    { hint: 'use a newer live ISO' },
  );
}

type Written = Readonly<Record<string, Json>>;

/** A file or unit as it is written, with the null of the members that are not given. */
type WrittenFile = Written & { readonly path: string };
type WrittenUnit = Written & { readonly name: string };

const renderResource = (bytes: Uint8Array): Written => {
  const packed = gzipSync(bytes, { level: 9 });
  packed.fill(0, 4, 8); // RFC 1952 2.3: no time, and no system
  packed[9] = 255;
  return { compression: 'gzip', source: `data:;base64,${packed.toString('base64')}` };
};

const renderFile = (path: string, bytes: Uint8Array, mode: number): WrittenFile => ({
  path,
  contents: renderResource(bytes),
  mode,
  overwrite: null,
});

const renderConfigFile = ({ name, bytes }: NamedFile): WrittenFile =>
  renderFile(`${CONFIGS}${name}`, bytes, CONFIG_MODE);

const PRE = {
  kind: 'pre',
  title: 'Pre',
  order: ['After=coreos-installer-pre.target', 'Before=coreos-installer.service'],
  requiredBy: 'coreos-installer.service',
};
const POST = {
  kind: 'post',
  title: 'Post',
  order: ['After=coreos-installer.service', 'Before=coreos-installer.target'],
  requiredBy: 'coreos-installer.target',
};

/** A script, and the unit that runs it before or after the installation. */
function renderHook(
  { name, bytes }: NamedFile,
  { kind, title, order, requiredBy }: typeof PRE,
): { readonly file: WrittenFile; readonly unit: WrittenUnit } {
  const path = `/usr/local/bin/${kind}-install-${name}`;
  const contents = [
    '# Generated by coreos-installer {iso|pxe} customize',
    '',
    '[Unit]',
    `Description=${title}-Install Script (${name})`,
    'Documentation=https://coreos.github.io/coreos-installer/customizing-install/',
    ...order,
    '',
    '[Service]',
    'Type=oneshot',
    `ExecStart=${path}`,
    'RemainAfterExit=true',
    'StandardOutput=kmsg+console',
    'StandardError=kmsg+console',
    '',
    '[Install]',
    `RequiredBy=${requiredBy}`,
  ].join('\n');
  return {
    file: renderFile(path, bytes, SCRIPT_MODE),
    unit: { name: `${kind}-install-${name}.service`, contents, enabled: true, mask: null },
  };
}

/** The config of the installed system: the given one, or a config that merges several and has the authorities. */
function renderDestination(values: InstallerValues): Uint8Array | undefined {
  const { destIgnition = [], ignitionCa = [] } = values;
  const [first] = destIgnition;
  if (!first) return undefined;
  const isAlone = destIgnition.length === 1 && ignitionCa.length === 0;
  const text = isAlone
    ? `${Buffer.from(normaliseConfig(first)).toString('utf8')}\n`
    : formatWritten({
        merge: destIgnition.map(normaliseConfig),
        authorities: ignitionCa.map(({ bytes }) => bytes),
        files: [],
        units: [],
      });
  return Buffer.from(text);
}

/** Compact JSON with sorted members, after a check that it is an Ignition config. */
function normaliseConfig({ name, bytes }: NamedFile): Uint8Array {
  return Buffer.from(formatIgnition(readGivenIgnition(decodeUserText(bytes, name), name).config));
}

/** Parameters of coreos-installer in its own order; undefined if only given files have some. */
function listParameters(
  values: InstallerValues,
  { dest, hasNetwork }: InstallerContext & { readonly dest: Uint8Array | undefined },
): Readonly<Record<string, unknown>> | undefined {
  const { destConsole, destKargsAppend, destKargsDelete, destDevice, installerConfig } = values;
  const parameters = withoutUndefined({
    'ignition-file': dest && DEST_IGNITION,
    'console': destConsole,
    'append-karg': destKargsAppend,
    'delete-karg': destKargsDelete,
  });
  const last = withoutUndefined({ 'dest-device': destDevice });
  const own = { ...parameters, ...last };
  const runs = Object.keys(own).length > 0 || installerConfig !== undefined;
  if (runs && hasNetwork) return { ...parameters, 'copy-network': true, ...last };
  return Object.keys(own).length > 0 ? own : undefined;
}

/** YAML as Rust's serde_yaml writes it, but for strings with a single quote. */
const formatParameters = (parameters: object): string =>
  stringify(parameters, { lineWidth: 0, singleQuote: true, indentSeq: false });

const describeInstallation = ({ destDevice }: InstallerValues): string =>
  destDevice === undefined
    ? 'the ISO runs coreos-installer when it boots'
    : `the ISO installs to ${destDevice} when it boots, without confirmation`;

function refuseTwice(names: readonly string[]): void {
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice === undefined) return;
  throw new UsageError('customize.twice', `two files are given for ${twice}`, {
    hint: 'rename one of the files',
  });
}

type Parts = {
  readonly merge: readonly Uint8Array[];
  readonly authorities: readonly Uint8Array[];
  readonly files: readonly Written[];
  readonly units: readonly Written[];
};

const formatWritten = ({ merge, authorities, files, units }: Parts): string =>
  `${formatCanonicalJson({
    ignition: {
      version: WRITTEN_VERSION,
      ...(merge.length > 0 && { config: { merge: merge.map(renderResource) } }),
      ...(authorities.length > 0 && {
        security: { tls: { certificateAuthorities: authorities.map(renderResource) } },
      }),
    },
    ...(files.length > 0 && { storage: { files } }),
    ...(units.length > 0 && { systemd: { units } }),
  })}\n`;
