import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type IgnitionConfig, textFile } from '../../../src/ignition/index.ts';
import { requireMadeFor } from '../../../src/openshift/installer/made-for.ts';

const OURS = `quay.io/openshift-release-dev/ocp-release@sha256:${'a'.repeat(64)}`;
const OTHER = `quay.io/openshift-release-dev/ocp-release@sha256:${'b'.repeat(64)}`;
const RELEASE = { version: '4.22.0', digestReference: OURS, arch: 'x86_64' } as const;

const outputOf = (files: Readonly<Record<string, string>>): IgnitionConfig => ({
  ignition: { version: '3.2.0' },
  storage: { files: Object.entries(files).map(([path, text]) => textFile(path, text, 0o600)) },
});

/** What an installer writes about its release. */
const tell = (image: string, version = '4.22.0'): Readonly<Record<string, string>> => ({
  '/etc/assisted/manifests/cluster-image-set.yaml': `kind: ClusterImageSet\nmetadata:\n  name: openshift-${version}\nspec:\n  releaseImage: ${image}\n`,
  '/etc/assisted/agent-installer.env': `RELEASE_IMAGE=${image}\n`,
  '/usr/local/share/assisted-service/assisted-service.env': `A=1\nRELEASE_IMAGES=[{"openshift_version":"${version}","url":"${image}","version":"${version}"}]\n`,
  '/usr/local/bin/release-image.sh': `if ! D=$( podman inspect ${image}  --format json ); then D="${image}"; fi\n`,
  '/usr/local/bin/release-image-download.sh': `RELEASE_IMAGE=${image}\npodman pull "$RELEASE_IMAGE"\n`,
});

describe('the output of an installer', () => {
  it('is taken if every place names the release, at any registry', () => {
    requireMadeFor(outputOf(tell(OURS)), RELEASE);
    requireMadeFor(outputOf(tell(OURS.replace('quay.io', 'mirror.example.com:5000'))), RELEASE);
    requireMadeFor(outputOf({ '/etc/motd': OTHER }), RELEASE);
  });

  it.each(Object.entries(tell(OTHER)))('is refused if %s names another release', (path, text) => {
    const output = outputOf({ ...tell(OURS), [path]: text });
    expect(() => {
      requireMadeFor(output, RELEASE);
    }).toThrow(
      expect.objectContaining({
        code: 'installer.other-release',
        message: `${path} names another release than the medium has`,
        expected: OURS,
        found: OTHER,
      }),
    );
  });

  it.each([
    ['/usr/local/bin/release-image.sh', `# podman inspect ${OURS}\npodman inspect ${OTHER} x\n`],
    ['/etc/assisted/agent-installer.env', `RELEASE_IMAGE=${OURS}\nRELEASE_IMAGE=${OTHER}\n`],
    [
      '/usr/local/share/assisted-service/assisted-service.env',
      `RELEASE_IMAGES=[{"url":"${OTHER}"},{"url":"${OURS}"}]\n`,
    ],
  ])('is refused if %s names another release beside this one', (path, text) => {
    expect(() => {
      requireMadeFor(outputOf({ [path]: text }), RELEASE);
    }).toThrow(expect.objectContaining({ found: OTHER }));
  });

  it('is taken if a script reads the name out of a variable', () => {
    const text = `podman inspect ${OURS}\npodman inspect "$RELEASE_IMAGE" \${OTHER}\n`;
    requireMadeFor(outputOf({ '/usr/local/bin/release-image.sh': text }), RELEASE);
  });

  it('is refused if it names a tag, as an installer without a release does, or another version', () => {
    const refused = (files: Readonly<Record<string, string>>) => () => {
      requireMadeFor(outputOf(files), RELEASE);
    };
    const found = 'registry.ci.openshift.org/origin/release:4.22';
    expect(refused(tell(found))).toThrow(expect.objectContaining({ found }));
    expect(refused(tell(OURS, '4.22.1'))).toThrow(expect.objectContaining({ found: '4.22.1' }));
  });
});

const RECORDED = '../shared/data/judged/installer/pristine.json';

type Recorded = { readonly files: readonly { readonly path: string; readonly text?: string }[] };

describe.skipIf(!existsSync(RECORDED))('the recorded output of openshift-install 4.22', () => {
  it('is taken for its release, and refused for another', () => {
    const { files } = JSON.parse(readFileSync(RECORDED, 'utf8')) as Recorded;
    const texts = files.flatMap(({ path, text }) => (text === undefined ? [] : [[path, text]]));
    const output = outputOf(Object.fromEntries(texts) as Record<string, string>);
    const digest = 'sha256:dcededde0e6bc2980320af1c658487fecde47259ddef47091e5b93beb901706d';
    const digestReference = `quay.io/openshift-release-dev/ocp-release@${digest}`;
    requireMadeFor(output, { ...RELEASE, digestReference });
    expect(() => {
      requireMadeFor(output, RELEASE);
    }).toThrow(expect.objectContaining({ code: 'installer.other-release' }));
  });
});
