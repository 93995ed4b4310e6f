import { UsageError } from '../../base/errors.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { readCoreosFeatures } from '../../iso/coreos/coreos.ts';
import { editKargs } from '../../iso/coreos/edit-kargs.ts';
import type { IsoImage } from '../../iso/open-iso.ts';
import { configure, isForAgents } from '../../openshift/customisation/configure.ts';
import type { CustomValues, Keyfile } from '../../openshift/customisation/custom-values.ts';
import { profilesOf } from '../../openshift/customisation/host-networks.ts';
import {
  decodeEmbedded,
  encodeEmbedded,
  planEmbedPart,
  planKargParts,
  readLiveAreas,
  type Embedded,
  type LiveAreas,
} from './live-areas.ts';
import type { OverlayPart } from './overlay.ts';

export type CustomisationOptions = {
  /** Take the place of what was embedded before. */
  readonly force?: boolean;
};

/**
 * What replaces the areas of a live ISO of CoreOS so that it carries these values. Reads only the areas. Same ISO, same
 * values: same bytes.
 *
 * @throws UsageError `customize.already`, `customize.no-kargs`, `customize.no-network`, `kargs.too-large`;
 * IntegrityError `customize.too-large`, `iso.no-embed-area` and the like; what `configure` throws
 */
export async function planCustomisation(
  iso: IsoImage,
  values: CustomValues,
  { force = false }: CustomisationOptions = {},
): Promise<readonly OverlayPart[]> {
  const areas = await readLiveAreas(iso);
  const embedded = await decodeEmbedded(areas.embed.bytes);
  if (!force) requirePristine(areas, embedded);
  const archive = encodeEmbedded(await embed(iso, embedded.config, values));
  return sortParts([planEmbedPart(areas.embed, archive), ...planKargs(areas, values)]);
}

const sortParts = (parts: readonly OverlayPart[]): readonly OverlayPart[] =>
  parts.toSorted((a, b) => a.offset - b.offset);

function requirePristine({ kargs }: LiveAreas, { config, keyfiles }: Embedded): void {
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
  const isConfigured =
    pristine !== undefined || Object.keys(others).some((member) => member !== 'kargs');
  return {
    keyfiles: await listKeyfiles(iso, hosts.flatMap(profilesOf)),
    ...(isConfigured && { config: configure(pristine, others) }),
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
  if (kargs) return planKargParts(kargs, editKargs(kargs.default, { append, remove }));
  if (append.length === 0 && remove.length === 0) return [];
  throw new UsageError(
    'customize.no-kargs',
    'this ISO does not support customizing kernel arguments: it has no areas for them',
    { hint: 'give a newer live ISO' },
  );
}
