import { UPGRADE_LABEL_PREFIX } from '../../openshift/node/upgrade.ts';
import type { PlayedMedium } from './played-medium.ts';
import { type RehearsedStep, unless } from './step.ts';

const PART = 'upgrade';
const RELEASE = '/release.env';
const MOST = 64 * 1024;

/** Plays the attachment of an upgrade ISO: hosts know it by its label, and read its release from a file. */
export async function rehearseAttached({
  iso,
  index,
}: PlayedMedium): Promise<readonly RehearsedStep[]> {
  if (index?.product !== 'upgrade-iso') return [];
  const { volumeId } = iso.volume;
  const node = await iso.find(RELEASE);
  const text = node?.kind === 'file' ? (await iso.readFile(node, MOST)).toString() : '';
  return [
    unless(PART, 'hosts recognize the upgrade ISO', {
      place: 'volume label',
      reason: volumeId.startsWith(UPGRADE_LABEL_PREFIX)
        ? undefined
        : `its label is ${volumeId}, which does not start with ${UPGRADE_LABEL_PREFIX}`,
    }),
    unless(PART, `hosts find that it is the upgrade to ${index.release.version}`, {
      place: RELEASE,
      reason: explainRelease(text, index.release),
    }),
  ];
}

type Named = { readonly version: string; readonly reference: string };

function explainRelease(text: string, { version, reference }: Named): string | undefined {
  const read = (key: string): string => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  const [image, found] = [read('RELEASE_IMAGE'), read('RELEASE_VERSION')];
  if (found !== version) return `it names ${found === '' ? 'no version' : found}`;
  const digest = reference.slice(reference.indexOf('@'));
  return image.endsWith(digest) ? undefined : `it names the image ${image}`;
}
