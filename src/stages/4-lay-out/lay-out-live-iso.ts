import { type FileInput, type FileDigests, readUnchanged } from '../../base/disk/file-digests.ts';
import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { BlobCache } from '../../base/store/blob-cache.ts';
import type { Sealed, Stage } from '../../engine/index.ts';
import { encodeInitrd, parseResolved } from '../../ignition/index.ts';
import {
  type BaseScan,
  decodeBaseScan,
  type Layout,
  layOutIso,
  openIso,
  type Places,
  planLiveGraft,
  readCoreosLive,
  relabel,
  requireArchitecture,
  type TreeFile,
} from '../../iso/index.ts';
import { encodeEmbedded } from '../../media/areas.ts';
import type { AreaValues } from '../../media/area-values.ts';
import { encodeBuilt } from '../../media/built.ts';
import { CONFIG_AREA_SIZE } from '../../media/config-area.ts';
import { configureLayout, describeAreas, renderBuilt } from '../../media/customize/copy.ts';
import { describeMedium } from '../../media/describe.ts';
import { describeCatalogs } from '../../media/index-catalogs.ts';
import {
  BOOTSTRAP_IMAGE_PATH,
  BUILT_PATH,
  CONFIG_AREA_PATH,
  INDEX_PATH,
  PRISTINE_IGNITION_PATH,
} from '../../media/media-index.ts';
import { planLiveFiles } from '../../media/tree.ts';
import { describeLiveSystem } from '../../openshift/agent/live-system.ts';
import { findMediumObstacles } from '../../openshift/agent/obstacles.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import type { SelectedCatalog } from '../../openshift/catalog/selected.ts';
import type { AbsentImage } from '../../openshift/mirror/closure.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import { BOOTSTRAP_IGNITION_PATH } from '../../openshift/node/bootstrap.ts';
import { osStreamOf } from '../../openshift/release/os-stream.ts';
import { type Release, describeRelease } from '../../openshift/release/release.ts';

/** Values of a site; what may hold a secret is sealed. */
type SiteValues = Pick<CustomValues, 'sshKeys' | 'kargs'> & {
  readonly pullSecret?: Sealed;
  /** The JSON text of others, which only the agent-based installer has a place for. */
  readonly forAgents?: Sealed;
};

export type LiveIsoParts = {
  readonly base: FileInput;
  readonly scan: BaseScan;
  readonly release: Release;
  readonly plan: MirrorPlan;
  readonly catalogs: readonly SelectedCatalog[];
  /** Images that are missing with the consent of the user. */
  readonly missing?: readonly AbsentImage[];
  /** Neither Ignition config has values of a site. */
  readonly bootstrap: { readonly ignition: string };
  /** JSON text. */
  readonly unconfigured: string;
  /** Kernel arguments of the medium; the arguments of a site are among its values. */
  readonly appendKargs: readonly string[];
  readonly values?: SiteValues;
  /** Bytes of the embed area, for the config with the values of any site; default: 1 MiB. */
  readonly ignitionArea?: number;
  /** Places of the ISO that this one replaces. */
  readonly places?: Places;
  /** Seconds since 1970, for everything new on the medium; default: the release's creation. */
  readonly epoch?: number;
  /** The volume label of an ISO for a partition, whose registry is elsewhere; absent: the label of the base. */
  readonly recoveryLabel?: string;
};

/** Sizes are bytes: of the embed area, which is independent of its content, and of the archive in it. */
export type LiveLayout = Layout & {
  readonly ignitionArea: { readonly size: number; readonly used: number };
  /** Stream of the operating system, such as `rhel-10`, if the name of the base's volume has it. */
  readonly osStream?: string;
};

type LayoutTools = { readonly cache: BlobCache; readonly digests: FileDigests };

/** Lays out all before a byte is written: base, registry, both configurations, index. Fetches nothing. */
export const layOutLiveIso: Stage<LiveIsoParts, LiveLayout, LayoutTools> = {
  name: 'lay out ISO',
  run: (parts, { cache, digests }) =>
    readUnchanged(parts.base, digests, () => layOut(parts, cache)),
};

async function layOut(parts: LiveIsoParts, cache: BlobCache): Promise<LiveLayout> {
  const { plan, release, epoch = Math.floor(Date.parse(release.created) / 1000) } = parts;
  const { recoveryLabel } = parts;
  const scanned = await decodeBaseScan(parts.base.path, parts.scan);
  const base = recoveryLabel === undefined ? scanned : relabel(scanned, recoveryLabel);
  const iso = await openIso(base.path);
  try {
    await requireArchitecture(iso, release.arch, OTHER_BASE);
    const live = await readCoreosLive(iso);
    const pristine = encodeEmbedded({ config: parts.unconfigured, keyfiles: [] });
    const graft = await planLiveGraft(iso, live, {
      initrd: { path: BOOTSTRAP_IMAGE_PATH, bytes: encodeBootstrap(parts.bootstrap.ignition) },
      embed: { archive: pristine, size: parts.ignitionArea ?? AREA_SIZE },
      appendKargs: parts.appendKargs,
      ...withoutUndefined({ label: recoveryLabel }),
    });
    const { size } = graft.areas.embed;
    requireArea(size, parts.ignitionArea);
    const system = withoutUndefined({ osStream: osStreamOf(iso.volume.volumeId) });
    const values = readValues(parts);
    const built = values && renderBuilt(graft.areas, { pristine: parts.unconfigured, values });
    const layout = layOutIso({
      base,
      files: [
        ...graft.files,
        { path: PRISTINE_IGNITION_PATH, content: { kind: 'bytes', bytes: pristine }, mode: 0o600 },
        ...(built ? [reserveBuilt(built)] : []),
        ...(await planOwnFiles(parts, cache)),
      ],
      remove: [MINIMAL_RECIPE],
      patches: graft.patches,
      epoch,
      ...withoutUndefined({ places: parts.places }),
      index: {
        path: INDEX_PATH,
        render: (extents, areas) =>
          describeMedium({
            product: recoveryLabel === undefined ? 'live-iso' : 'recovery-iso',
            base: { ...base, ...system },
            plan: recoveryLabel === undefined ? plan : { images: [] },
            extents,
            areas,
            releases: [release],
            catalogs: describeCatalogs(parts.catalogs),
            missing: parts.missing?.map(({ image }) => image) ?? [],
            release: describeRelease(release),
            mutable: describeAreas(graft.areas, extents, {
              archive: pristine,
              builtSize: built ? encodeBuilt(built).length : 0,
            }),
          }),
      },
    });
    const { archive } = built ?? { archive: pristine };
    const configured = built ? configureLayout(layout, graft.areas, built) : layout;
    return { ...configured, ignitionArea: { size, used: archive.length }, ...system };
  } finally {
    await iso.close();
  }
}

/** The registry, and room for a configuration image. A recovery ISO has neither. */
async function planOwnFiles(parts: LiveIsoParts, cache: BlobCache): Promise<readonly TreeFile[]> {
  const { plan, release, recoveryLabel } = parts;
  if (recoveryLabel !== undefined) return [];
  const room = takesConfigImages(parts) ? [CONFIG_AREA] : [];
  return [...room, ...(await planLiveFiles({ plan, release, cache }))];
}

/** Room for the copy of the areas as built: zeros on a medium without values, as the index has it. */
const reserveBuilt = (built: AreaValues): TreeFile => ({
  path: BUILT_PATH,
  content: { kind: 'bytes', bytes: new Uint8Array(encodeBuilt(built).length) },
  mode: 0o600,
});

/** Room for a configuration image, which hosts with one drive cannot get from another one. */
const CONFIG_AREA: TreeFile = {
  path: CONFIG_AREA_PATH,
  content: { kind: 'bytes', bytes: new Uint8Array(CONFIG_AREA_SIZE) },
  mode: 0o600,
};

/** By the rules that judge an image on the medium. */
function takesConfigImages({ bootstrap, unconfigured }: LiveIsoParts): boolean {
  const system = describeLiveSystem([
    parseResolved(bootstrap.ignition, 'bootstrap Ignition config'),
    parseResolved(unconfigured, 'embedded Ignition config'),
  ]);
  return findMediumObstacles(system).length === 0;
}

const OTHER_BASE = 'give a live ISO for the architecture of the release, or leave it out';

/** The recipe of the minimal ISO. It describes the base image byte by byte, which is not true of our ISO. */
const MINIMAL_RECIPE = '/coreos/miniso.dat';

/** Bytes of the embed area: room for the values of any site, which no build knows. */
const AREA_SIZE = 2 ** 20;

/** An area that is a part of a file keeps its size. The default requires nothing. */
function requireArea(size: number, wanted = AREA_SIZE): void {
  if (size >= wanted || wanted === AREA_SIZE) return;
  throw new IntegrityError(
    'base-iso.fixed-embed-area',
    `the base ISO has an Ignition area of ${size} bytes, which cannot be made larger`,
    { expected: `${wanted} bytes`, found: `${size} bytes`, hint: 'leave build.ignitionArea out' },
  );
}

const encodeBootstrap = (text: string): Uint8Array =>
  encodeInitrd([{ name: BOOTSTRAP_IGNITION_PATH, mode: 0o100644, data: Buffer.from(text) }]);

function readValues({ values }: LiveIsoParts): CustomValues | undefined {
  if (values === undefined) return undefined;
  const { pullSecret, forAgents, ...open } = values;
  return {
    ...open,
    ...withoutUndefined({ pullSecret: pullSecret?.reveal() }),
    ...(JSON.parse(forAgents?.reveal() ?? '{}') as CustomValues),
  };
}
