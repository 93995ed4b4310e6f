import { UsageError } from '../../base/errors.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { readCoreosFeatures } from '../../iso/coreos/coreos.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import { configure, isForAgents } from '../../openshift/customisation/configure.ts';
import type { CustomValues, Keyfile } from '../../openshift/customisation/custom-values.ts';
import { profilesOf } from '../../openshift/customisation/host-networks.ts';
import {
  decodeEmbedded,
  encodeEmbedded,
  planEmbedPart,
  planEditedKargs,
  readLiveAreas,
  type Embedded,
  type LiveAreas,
} from './live-areas.ts';
import { INDEX_PATH } from '../index/media-paths.ts';
import { noPristine } from './plan-reset.ts';
import { readPristineArchive } from './pristine-areas.ts';
import { sortParts, type OverlayPart } from './overlay.ts';

export type CustomisationOptions = {
  /** Take the place of what was embedded before. */
  readonly force?: boolean;
};

/**
 * What replaces the areas of a live ISO of CoreOS so that it carries these values. Reads only the areas, and on media of
 * ours the config that they had before. Same ISO, same values: same bytes. With `force`, a medium of ours loses the
 * values that it had; on any other ISO, the values are added to the config that is embedded.
 *
 * @throws UsageError `customize.already`, `customize.no-pristine`, `customize.no-kargs`, `customize.no-network`, `kargs.special`,
 * `kargs.too-large`;
 * IntegrityError `customize.too-large`, `iso.no-embed-area` and the like; what `configure` throws
 */
export async function planCustomisation(
  iso: IsoImage,
  values: CustomValues,
  { force = false }: CustomisationOptions = {},
): Promise<readonly OverlayPart[]> {
  const areas = await readLiveAreas(iso);
  const stored = await readPristineArchive(iso);
  if (!stored && (await iso.find(INDEX_PATH)) !== undefined) throw noPristine(iso.path);
  if (!force) await requirePristine(areas, stored);
  const archive = await composeArchive(iso, stored ?? areas.embed.bytes, values);
  return sortParts([planEmbedPart(areas.embed, archive), ...planKargs(areas, values)]);
}

/**
 * The archive of the embed area for an initrd that boots from the network, where no area bounds it.
 *
 * @throws as `planCustomisation`, but for what is too large, and for kernel arguments
 */
export async function renderArchive(iso: IsoImage, values: CustomValues): Promise<Uint8Array> {
  const stored = await readPristineArchive(iso);
  return composeArchive(iso, stored ?? (await readLiveAreas(iso)).embed.bytes, values);
}

async function composeArchive(
  iso: IsoImage,
  pristine: Uint8Array,
  values: CustomValues,
): Promise<Uint8Array> {
  const { config } = await decodeEmbedded(pristine);
  return encodeEmbedded(await embed(iso, config, values));
}

async function requirePristine(
  { embed, kargs }: LiveAreas,
  stored: Uint8Array | undefined,
): Promise<void> {
  const isAsBuilt =
    stored !== undefined && Buffer.from(embed.bytes).equals(planEmbedPart(embed, stored).bytes);
  const { config, keyfiles } = isAsBuilt ? NOTHING : await decodeEmbedded(embed.bytes);
  const found = [
    ...(config === undefined ? [] : ['an embedded Ignition config']),
    ...(keyfiles.length === 0 ? [] : ['embedded network settings']),
    ...(kargs === undefined || kargs.text === kargs.default ? [] : ['other kernel arguments']),
  ];
  if (found.length === 0) return;
  throw new UsageError(
    'customize.already',
    `this ISO is already customised: it has ${found.join(' and ')}`,
    { hint: 'restore it with --reset, or use --force to customise it all the same' },
  );
}

const NOTHING: Embedded = { keyfiles: [] };

/** An ISO that installs with agents places the profiles itself; on any other, the initramfs takes them over. */
async function embed(
  iso: IsoImage,
  pristine: string | undefined,
  values: CustomValues,
): Promise<Embedded> {
  const agents =
    pristine !== undefined && isForAgents(parseIgnition(pristine, 'the embedded Ignition config'));
  if (agents) return { config: configure(pristine, values), keyfiles: [] };
  const { hosts = [], ...others } = values;
  const config = configure(pristine, others);
  // An empty config would keep the live system from logging in a person at its console.
  const isEmpty = pristine === undefined && config === configure(undefined, {});
  return {
    keyfiles: await listKeyfiles(iso, hosts.flatMap(profilesOf)),
    ...(!isEmpty && { config }),
  };
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
      { hint: 'give the network by kernel arguments' },
    );
  }
  const names = keyfiles.map(({ name }) => name);
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated === undefined) return keyfiles;
  throw new UsageError(
    'customize.keyfile',
    `two network configurations have the profile ${repeated}`,
    {
      hint: 'give one configuration, or other names to its interfaces',
    },
  );
}

function planKargs({ kargs }: LiveAreas, values: CustomValues): readonly OverlayPart[] {
  const { append = [], remove = [] } = values.kargs ?? {};
  if (kargs) return planEditedKargs(kargs, { append, remove });
  if (append.length === 0 && remove.length === 0) return [];
  throw new UsageError(
    'customize.no-kargs',
    'this ISO does not support customizing kernel arguments: it has no areas for them',
    { hint: 'give a newer live ISO' },
  );
}
