import { DifferenceError, formatProblem, IntegrityError, UsageError } from '../../base/errors.ts';
import { type IsoImage, lacksEmbedArea, openIso } from '../../iso/index.ts';
import type { OverlayPart } from '../areas.ts';
import { encodeConfigArea, isEmptyArea } from '../config-area.ts';
import { judgeConfigImage, type LiveMedium, readLiveMedium } from '../config-image.ts';
import { inMemory } from '../held-image.ts';
import { readOptionalAreas } from '../medium.ts';

/* Decides whether a medium gets the configuration image of a site, and which bytes change. */

export type GivenImage = {
  readonly bytes: Uint8Array;
  /** Name that the user gave, for messages. */
  readonly name: string;
};

type Planning = {
  /** True if another image in the area is replaced. */
  readonly replace: boolean;
  /** Called for contents that the medium takes, but that may stop the installation. */
  readonly warn: (text: string) => void;
};

/**
 * The image is judged by the rules of `config-iso check`, on the medium with its other values.
 *
 * @throws DifferenceError `config-image.refused`; UsageError `config-image.no-area`, `customize.already`;
 * IntegrityError `config-image.too-large`, `config-image.unreadable`
 */
export async function planConfigImage(
  iso: IsoImage,
  image: GivenImage,
  { replace, warn }: Planning,
): Promise<readonly OverlayPart[]> {
  const live = await readTaking(iso);
  const names = { image: image.name, medium: iso.path };
  const verdict = await judgeConfigImage(await openImage(image), live, names);
  if (!verdict.fits) {
    throw new DifferenceError(
      'config-image.refused',
      [`${iso.path} does not accept ${image.name}`, ...verdict.obstacles.map(formatProblem)].join(
        '\n',
      ),
      {
        expected: 'no obstacles',
        found: verdict.obstacles.map(({ code }) => code).join(', '),
        hint: 'remove the obstacles listed above',
      },
    );
  }
  const area = await findArea(iso);
  if (!area) throw noArea(iso.path);
  const bytes = encodeConfigArea(image.bytes, area.bytes.length);
  const isOther = !isEmptyArea(area.bytes) && !Buffer.from(area.bytes).equals(bytes);
  if (isOther && !replace) throw already();
  for (const caution of verdict.cautions) warn(caution);
  return [{ offset: area.offset, bytes }];
}

/** An ISO that is not a live ISO has no area either. */
async function readTaking(iso: IsoImage): Promise<LiveMedium> {
  try {
    return await readLiveMedium(iso);
  } catch (error) {
    throw lacksEmbedArea(error) ? noArea(iso.path) : error;
  }
}

async function openImage({ bytes, name }: GivenImage): Promise<IsoImage> {
  try {
    return await openIso(inMemory(bytes, name));
  } catch (cause) {
    if (!(cause instanceof IntegrityError)) throw cause;
    throw new IntegrityError(
      'config-image.unreadable',
      `${name} is not a configuration image that can be read`,
      {
        cause,
        hint: 'give the agentconfig.noarch.iso of "openshift-install agent create config-image"',
      },
    );
  }
}

/** Empty on a medium without an image. */
export async function planWithoutImage(iso: IsoImage): Promise<readonly OverlayPart[]> {
  const area = await findArea(iso);
  return !area || isEmptyArea(area.bytes)
    ? []
    : [{ offset: area.offset, bytes: new Uint8Array(area.bytes.length) }];
}

async function findArea(iso: IsoImage): Promise<OverlayPart | undefined> {
  const areas = await readOptionalAreas(iso, {});
  return areas?.now.find(({ kind }) => kind === 'config-image');
}

const noArea = (path: string): UsageError =>
  new UsageError('config-image.no-area', `${path} has no area for a configuration image`, {
    expected: 'a live ISO that this version of sealift built',
    hint: 'build the ISO again, or attach the image to the hosts beside it',
  });

const already = (): UsageError =>
  new UsageError(
    'customize.already',
    'this ISO is already customised: it has another configuration image',
    { hint: 'restore it with --reset, or use --force to replace the image' },
  );
