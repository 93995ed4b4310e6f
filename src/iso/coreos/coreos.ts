import { IntegrityError } from '../../base/errors.ts';
import { parseJsonObjectOfCoreosJson, type JsonObject } from '../../shape/go-json.ts';
import { findEmbedArea, type EmbedArea } from './embed-area.ts';
import { readKargAreas, type KargAreas } from './karg-areas.ts';
import type { IsoImage } from '../open-iso.ts';

/** What tools that customise an image may count on; without `coreos/features.json` nothing. */
type CoreosFeatures = {
  readonly installerConfig: boolean;
  readonly installerConfigDirectives: readonly string[];
  readonly liveInitrdNetwork: boolean;
};

/** A live ISO of CoreOS (RHCOS, FCOS, SCOS), as far as it differs from any other image. */
export type CoreosLive = {
  readonly features: CoreosFeatures;
  readonly embedArea: EmbedArea;
  readonly kargs: KargAreas;
  /** Volume identifier that the live system waits for (`coreos.liveiso=`). */
  readonly liveisoLabel: string;
  /** Whether `coreos/miniso.dat` is there, the recipe of the minimal image. */
  readonly hasMinimalRecipe: boolean;
};

const NOT_COREOS = 'base-iso.not-coreos';
const LIVEISO = 'coreos.liveiso=';

/**
 * Reads what makes an image a live ISO of CoreOS.
 *
 * @throws IntegrityError `base-iso.not-coreos` when it is not: no embed area, no kernel argument areas,
 * no `coreos.liveiso=`, or one that names another volume; the cause says which
 */
export async function readCoreosLive(iso: IsoImage): Promise<CoreosLive> {
  try {
    const embedArea = await findEmbedArea(iso);
    const kargs = await readKargAreas(iso);
    return {
      features: await readCoreosFeatures(iso),
      embedArea,
      kargs,
      liveisoLabel: findLiveisoLabel(kargs, iso.volume.volumeId),
      hasMinimalRecipe: (await iso.find('/coreos/miniso.dat')) !== undefined,
    };
  } catch (cause) {
    if (!(cause instanceof IntegrityError)) throw cause;
    throw new IntegrityError(NOT_COREOS, `image ${iso.path} is not a live ISO of CoreOS`, {
      cause,
      hint: 'Give the live ISO of the machine-os-images image of this release.',
    });
  }
}

function findLiveisoLabel(kargs: KargAreas, volumeId: string): string {
  const karg = kargs.text.split(/\s+/).find((word) => word.startsWith(LIVEISO));
  if (karg === undefined) {
    throw new IntegrityError(NOT_COREOS, `kernel arguments "${kargs.text}" lack ${LIVEISO}`);
  }
  const label = karg.slice(LIVEISO.length);
  if (label === volumeId) return label;
  throw new IntegrityError(
    NOT_COREOS,
    `kernel arguments wait for volume "${label}", but the volume is "${volumeId}"`,
    { expected: volumeId, found: label },
  );
}

/** @throws IntegrityError `iso.malformed-json` */
export async function readCoreosFeatures(iso: IsoImage): Promise<CoreosFeatures> {
  const node = await iso.find('/coreos/features.json');
  const json: JsonObject = node
    ? parseJsonObjectOfCoreosJson(await iso.readFile(node, 65_536), 'coreos/features.json')
    : {};
  const directives = json['installer-config-directives'] ?? {};
  return {
    installerConfig: json['installer-config'] === true,
    installerConfigDirectives: Object.entries(directives)
      .filter(([, isSupported]) => isSupported === true)
      .map(([name]) => name)
      .sort(),
    liveInitrdNetwork: json['live-initrd-network'] === true,
  };
}
