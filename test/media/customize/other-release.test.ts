import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { IsoImage } from '../../../src/iso/index.ts';
import { openIso } from '../../../src/iso/read/open.ts';
import { requireRelease } from '../../../src/media/customize/copy.ts';
import { CLUSTER_IMAGE_SET } from '../../../src/openshift/agent/live-system.ts';
import { makeTinyIso } from '../../support/tiny-iso.ts';

const digest = (digit: string): string =>
  `quay.io/openshift-release-dev/ocp-release@sha256:${digit.repeat(64)}`;
const tag = (version: string): string =>
  `quay.io/openshift-release-dev/ocp-release:${version}-x86_64`;

let directory: string;
let iso: IsoImage;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'other-release-'));
  await writeFile(join(directory, 'tiny.iso'), makeTinyIso());
  iso = await openIso(join(directory, 'tiny.iso'));
});
afterAll(async () => {
  await iso.close();
  await rm(directory, { recursive: true });
});

/** The config of a live ISO that was built for a release. */
function configOf(image: string): string {
  const text = `kind: ClusterImageSet\nmetadata:\n  name: openshift-4.21.3\nspec:\n  releaseImage: ${image}\n`;
  const contents = { source: `data:,${encodeURIComponent(text)}` };
  return JSON.stringify({
    ignition: { version: '3.2.0' },
    storage: { files: [{ path: CLUSTER_IMAGE_SET, contents }] },
  });
}

it.each([
  ['the same digest', digest('a'), digest('a')],
  ['the tag of its version', digest('a'), tag('4.21.3')],
])('a ClusterImageSet with %s is that of the ISO', async (_, image, given) => {
  const warnings: string[] = [];
  await requireRelease(iso, { config: configOf(image), given }, (text) => warnings.push(text));
  expect(warnings).toEqual([]);
});

it.each([
  ['another digest', digest('a'), digest('b')],
  ['the tag of another version', digest('a'), tag('4.21.4')],
])('a ClusterImageSet with %s is refused', async (_, image, given) => {
  await expect(requireRelease(iso, { config: configOf(image), given })).rejects.toMatchObject({
    code: 'customize.other-release',
    exitCode: 3,
    found: given,
  });
});

it('a ClusterImageSet that cannot be compared with the release of the ISO is warned of', async () => {
  const warnings: string[] = [];
  const config = configOf(digest('a'));
  await requireRelease(iso, { config, given: 'registry.lab/mirror/ocp:nightly' }, (text) =>
    warnings.push(text),
  );
  expect(warnings).toEqual([expect.stringContaining('cannot be compared with the ISO')]);
});

it('a ClusterImageSet is taken by an ISO that names none', async () => {
  const config = JSON.stringify({ ignition: { version: '3.2.0' } });
  await expect(requireRelease(iso, { config, given: digest('b') })).resolves.toBeUndefined();
});
