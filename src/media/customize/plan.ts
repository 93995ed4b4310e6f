import { UsageError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import {
  formatValidIgnition,
  mergeConfigs,
  parseIgnition,
  parseResolved,
} from '../../ignition/index.ts';
import { type IsoImage, type KargAreas, readCoreosFeatures } from '../../iso/index.ts';
import { configure, isForAgents } from '../../openshift/agent/configure.ts';
import { listWithoutPlace } from '../../openshift/agent/install-overrides.ts';
import {
  findFirstAddress,
  readRendezvousIp,
  WITHOUT_RENDEZVOUS,
} from '../../openshift/agent/rendezvous.ts';
import { type Keyfile, profilesOf } from '../../nmstate/index.ts';
import { type CustomValues, type InstallerValues } from '../../openshift/agent/values.ts';
import {
  planEmbedPart,
  overlayRead,
  readOptionalKargs,
  sortParts,
  type OverlayPart,
  decodeEmbedded,
  encodeEmbedded,
  type Embedded,
} from '../areas.ts';
import type { AreaValues } from '../area-values.ts';
import { BUILT_MEMBER, holdsInstallation } from '../built.ts';
import { hasContents } from '../area-values.ts';
import { isOfOthers, type Medium, type MediumAreas, ownArchiveOf, readMedium } from '../medium.ts';
import { type GivenImage, planConfigImage, planWithoutImage } from './config-image.ts';
import { requireRelease } from './copy.ts';
import { isKargsAlone, planKargs, planKargsAlone } from './kargs.ts';
import { type InstallerContext, renderInstallerConfig } from './installer.ts';
import { refuseUnfit, requireInstallationKept, withAreas } from './refuse.ts';
import { noBuilt, noPristine, planDropped } from './reset.ts';

/* Decides which bytes of an ISO change when values of a site are added or removed. */

export type CustomisationOptions = {
  /** Customise an ISO again: our medium loses its earlier values, any other keeps them. */
  readonly force?: boolean;
  /** Customise an ISO again and keep its earlier values; a value given again replaces the earlier one. */
  readonly add?: boolean;
  /** Overwrites the copy of what the build left, which can hold secrets, with zeros. */
  readonly dropBuilt?: boolean;
  /** The configuration image of a site, which goes into the area for it. */
  readonly image?: GivenImage;
  /** Called for values that have no effect or cannot be checked. */
  readonly warn?: Warn;
};

type Warn = (text: string) => void;

/**
 * Plans the bytes that add values to a live ISO of CoreOS. Reads only the areas and, on our media, the
 * original config. Equal ISOs and values give equal bytes.
 *
 * @throws UsageError `customize.already`, `customize.no-pristine`, `customize.no-kargs`,
 * `customize.no-network`, `kargs.special`, `kargs.too-large`; IntegrityError `customize.too-large`,
 * `iso.no-embed-area` and similar; the errors of `configure`
 */
export async function planCustomisation(
  iso: IsoImage,
  values: CustomValues,
  options: CustomisationOptions = {},
): Promise<readonly OverlayPart[]> {
  const { image, dropBuilt = false, force = false } = options;
  const isImageAlone = image && !dropBuilt && !force && Object.keys(values).length === 0;
  const parts = isImageAlone
    ? []
    : await withAreas(iso, values, () => planParts(iso, values, options));
  const changed = { ...iso, readBytes: overlayRead(iso.readBytes, parts) };
  return sortParts([...parts, ...(await planImage(changed, options))]);
}

/** Like its other values, a medium loses the image of an earlier customisation with `force`. */
async function planImage(
  iso: IsoImage,
  { image, force = false, add = false, warn = ignore }: CustomisationOptions,
): Promise<readonly OverlayPart[]> {
  if (image) return planConfigImage(iso, image, { replace: force || add, warn });
  return force ? planWithoutImage(iso) : [];
}

async function planParts(
  iso: IsoImage,
  values: CustomValues,
  options: CustomisationOptions,
): Promise<readonly OverlayPart[]> {
  const isAlone = isKargsAlone(values) && options.force !== true;
  if (isAlone && options.dropBuilt !== true) return planKargsAlone(iso, values, options.warn);
  const medium = await readMedium(iso);
  const parts = isAlone
    ? await planKargsAlone(iso, values, options.warn)
    : await planValues(iso, medium, { values, ...options });
  const dropped = options.dropBuilt === true ? await planDropped(medium) : [];
  // An archive with the values has lost the copy that the earlier one carried.
  const others = dropped.filter(({ offset }) => !parts.some((part) => part.offset === offset));
  return sortParts([...parts, ...others]);
}

type Planning = CustomisationOptions & { readonly values: CustomValues };

async function planValues(
  iso: IsoImage,
  medium: Medium,
  { values, warn = ignore, ...options }: Planning,
): Promise<readonly OverlayPart[]> {
  const { areas } = medium;
  const kargs = await readOptionalKargs(iso);
  if (medium.provenBy === 'index' && !areas.bare) throw noPristine(iso.path);
  if (medium.provenBy === 'proof' && !areas.built) await requireInstallation(areas, iso.path);
  const keep = await decideKept(medium, kargs, options);
  const pristine = ownArchiveOf(medium);
  const current = keep ? areas.embed.bytes : pristine;
  const isCarried = medium.provenBy === 'proof' && options.dropBuilt !== true;
  const carried = isCarried ? areas.built : undefined;
  const isOurs = !isOfOthers(medium);
  const archive = await composeArchive({ iso, pristine, isOurs, current, carried, warn }, values);
  return [planEmbedPart(areas.embed, archive), ...planKargs(kargs, values, { keep, warn })];
}

const ignore = (): void => undefined;

/** The original contents of other makers' media are unknown: they stay. */
async function decideKept(
  medium: Medium,
  kargs: KargAreas | undefined,
  { force = false, add = false }: CustomisationOptions,
): Promise<boolean> {
  const { areas } = medium;
  const isBuilt = areas.built !== undefined && hasContents(areas, areas.built);
  if (!force && !add && !isBuilt) await requireBare(areas, kargs);
  // Values of the build stay beside those of the site.
  return add || isOfOthers(medium) || (isBuilt && !force);
}

/** Refuses an installation ISO whose installation another program has removed: values alone would hide that. */
async function requireInstallation({ embed }: MediumAreas, path: string): Promise<void> {
  if (!(await holdsInstallation(embed.bytes))) throw noBuilt(path);
}

/**
 * For an initrd that boots from the network, whose size is not limited.
 *
 * @throws the errors of `planCustomisation`, except those about size and kernel arguments
 */
export async function renderArchive(iso: IsoImage, values: CustomValues): Promise<Uint8Array> {
  const medium = await readMedium(iso);
  const pristine = ownArchiveOf(medium);
  const isOurs = !isOfOthers(medium);
  return composeArchive({ iso, pristine, isOurs, current: pristine, warn: ignore }, values);
}

type Composing = {
  readonly iso: IsoImage;
  /** Archive of the medium without site values. */
  readonly pristine: Uint8Array;
  readonly isOurs: boolean;
  /** Archive that the values are added to. */
  readonly current: Uint8Array;
  /** Built contents of a medium that has no other place for them than the archive. */
  readonly carried?: AreaValues | undefined;
  readonly warn: Warn;
};

async function composeArchive(
  { iso, pristine, isOurs, current, carried, warn }: Composing,
  values: CustomValues,
): Promise<Uint8Array> {
  const before = await decodeEmbedded(pristine);
  const embedded = current === pristine ? before : await decodeEmbedded(current);
  const { config } = before;
  const { releaseImage: given } = values;
  if (given !== undefined) await requireRelease(iso, { config, given }, warn);
  refuseUnfit(values, { own: config, isOurs });
  const composed = await embed(iso, embedded, { values, template: config, warn });
  requireInstallationKept(config, composed.config);
  const others = new Map(composed.others);
  others.delete(BUILT_MEMBER);
  if (carried) others.set(BUILT_MEMBER, carried.archive);
  return encodeEmbedded({ ...composed, others });
}

async function requireBare(areas: MediumAreas, kargs: KargAreas | undefined): Promise<void> {
  const { embed, bare } = areas;
  const isBare =
    bare !== undefined && Buffer.from(embed.bytes).equals(planEmbedPart(embed, bare.archive).bytes);
  const { config, keyfiles } = isBare ? NOTHING : await decodeEmbedded(embed.bytes);
  const found = [
    ...(config === undefined ? [] : ['an embedded Ignition config']),
    ...(keyfiles.length === 0 ? [] : ['embedded network settings']),
    ...(kargs === undefined || kargs.text === kargs.default ? [] : ['other kernel arguments']),
  ];
  if (found.length === 0) return;
  throw new UsageError(
    'customize.already',
    `this ISO is already customised: it has ${found.join(' and ')}`,
    { hint: 'restore it with --reset, or use --force to customise it anyway' },
  );
}

const NOTHING: Embedded = { keyfiles: [] };

type Filling = {
  readonly values: CustomValues;
  /** Config of the medium without site values. */
  readonly template: string | undefined;
  readonly warn: Warn;
};

/** An agent-based ISO installs network profiles itself; on any other ISO, the initramfs copies them. */
async function embed(
  iso: IsoImage,
  { config: text, ...kept }: Embedded,
  { values, template, warn }: Filling,
): Promise<Embedded> {
  const agents = hasAgents(text);
  const { hosts = [], installer, keyfiles = [] } = values;
  const profiles = [...(agents ? [] : hosts.flatMap(profilesOf)), ...keyfiles];
  const listed = await listKeyfiles(iso, profiles);
  const hasNetwork = listed.length > 0;
  const own = agents ? configure(text, values, template) : configureLive(text, values);
  if (agents) warnOfRendezvous(own, hosts, warn);
  for (const warning of listWithoutPlace(own, values)) warn(warning);
  const config = installer ? await addInstaller(iso, own, { installer, hasNetwork, warn }) : own;
  return {
    ...kept,
    keyfiles: hasNetwork ? listed : kept.keyfiles,
    ...withoutUndefined({ config }),
  };
}

/** Warns of networks without an address that could become the rendezvous IP. */
function warnOfRendezvous(
  config: string | undefined,
  hosts: NonNullable<CustomValues['hosts']>,
  warn: Warn,
): void {
  if (hosts.length === 0 || config === undefined) return;
  const { storage } = parseResolved(config, 'the configured Ignition config');
  const chosen = readRendezvousIp(storage?.files ?? []) ?? findFirstAddress(hosts);
  if (chosen === undefined) warn(WITHOUT_RENDEZVOUS);
}

const hasAgents = (text: string | undefined): boolean =>
  text !== undefined && isForAgents(parseResolved(text, 'the embedded Ignition config'));

/** Configures a live system; undefined without values, because any config disables the login at the console. */
function configureLive(text: string | undefined, values: CustomValues): string | undefined {
  const config = configure(text, { ...values, hosts: [] });
  return text === undefined && config === configure(undefined, {}) ? undefined : config;
}

/** Merges the config that coreos-installer would write; alone it keeps the form of coreos-installer. */
async function addInstaller(
  iso: IsoImage,
  own: string | undefined,
  {
    installer,
    ...context
  }: Omit<InstallerContext, 'features'> & {
    readonly installer: InstallerValues;
  },
): Promise<string> {
  const features = await readCoreosFeatures(iso);
  const text = renderInstallerConfig(installer, { features, ...context });
  if (own === undefined) return text;
  const name = 'the configured Ignition config';
  return formatValidIgnition(
    mergeConfigs(parseIgnition(own, name), parseIgnition(text, name)),
    name,
  );
}

async function listKeyfiles(
  iso: IsoImage,
  keyfiles: readonly Keyfile[],
): Promise<readonly Keyfile[]> {
  if (keyfiles.length === 0) return [];
  const { liveInitrdNetwork } = await readCoreosFeatures(iso);
  if (!liveInitrdNetwork) {
    throw new UsageError(
      'customize.no-network',
      'this ISO does not support customizing network settings',
      { hint: 'configure the network with kernel arguments' },
    );
  }
  const names = keyfiles.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated === undefined) return keyfiles;
  throw new UsageError(
    'customize.keyfile',
    `each host that boots this ISO gets all network configurations, and two of them have a profile named ${repeated}`,
    { hint: 'make an ISO for each host, or rename the interfaces of one' },
  );
}
