import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { planDestination } from '../../../src/openshift/mirror/sets.ts';
import {
  formatMirror,
  planMirrors,
  type MirroredImage,
  type PlannedMirror,
} from '../../../src/openshift/mirror/mirrors.ts';
import { parseReference } from '../../../src/registry/reference.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

function image(
  source: string,
  { to, ...rest }: Partial<Omit<MirroredImage, 'source'>> & { readonly to?: string } = {},
): MirroredImage {
  const reference = parseReference(source);
  const destination = planDestination(reference, to === undefined ? {} : { repository: to });
  return { source: reference, destination, category: 'generic', ...rest };
}

const show = (...images: readonly MirroredImage[]): readonly string[] =>
  planMirrors(images).map(
    ({ source, mirrors, set, by }) => `${set} ${by}: ${source} -> ${mirrors.join(', ')}`,
  );

describe('the scope of a mirror', () => {
  it('is the namespace when the copy keeps its path', () => {
    expect(show(image(`registry.redhat.io/openshift4/ose-tool@${DIGEST}`))).toEqual([
      'generic digest: registry.redhat.io/openshift4 -> openshift4',
    ]);
  });

  it('is the namespace when the copy keeps its path below another', () => {
    expect(show(image('quay.io/team/app:1', { to: 'copies/team/app' }))).toEqual([
      'generic tag: quay.io/team -> copies/team',
    ]);
  });

  it('is the whole registry for a repository without a namespace', () => {
    expect(show(image('registry.example.com/tool:1'))).toEqual([
      'generic tag: registry.example.com -> ',
    ]);
    expect(formatMirror('localhost:22625', '')).toBe('localhost:22625');
  });

  it('is the repository when the copy has another path, as for images of a release', () => {
    const release = image(`quay.io/openshift-release-dev/ocp-v4.0-art-dev@${DIGEST}`, {
      to: 'openshift/release',
      category: 'release',
    });
    expect(show(release)).toEqual([
      'release digest: quay.io/openshift-release-dev/ocp-v4.0-art-dev -> openshift/release',
    ]);
  });

  it('is the repository when only a part of a name agrees', () => {
    expect(show(image('quay.io/app:1', { to: 'my-app' }))).toEqual([
      'generic tag: quay.io/app -> my-app',
    ]);
  });
});

describe('an image', () => {
  const name = 'quay.io/team/app';
  it.each([
    ['by digest is mirrored for pulls by digest', `${name}@${DIGEST}`, ['digest']],
    ['by tag for pulls by tag', `${name}:1`, ['tag']],
    ['by both for both', `${name}:1@${DIGEST}`, ['digest', 'tag']],
  ])('%s', (_, source, expected) => {
    expect(planMirrors([image(source)]).map(({ by }) => by)).toEqual(expected);
  });

  it('of a release is pulled by digest, even if it was named by tag', () => {
    const release = { category: 'release', kind: 'release-image' } as const;
    const plan = planMirrors([image('quay.io/ocp/release:4.21.0-x86_64', release)]);
    expect(plan.map(({ by }) => by)).toEqual(['digest', 'tag']);
  });

  it('that is a catalog or a signature is never listed', () => {
    const catalog = image('registry.redhat.io/redhat/index:v4.21', { kind: 'catalog' });
    const signature = image('quay.io/team/app:sha256-1.sig', { kind: 'signature' });
    expect(planMirrors([catalog, signature])).toEqual([]);
  });
});

describe('the plan of mirrors', () => {
  it('names each source once in a set, with each of its mirrors once', () => {
    const images = [
      image('quay.io/team/b:1', { to: 'other/team/b' }),
      image('quay.io/team/a:1'),
      image('quay.io/team/c:1'),
      image('quay.io/team/a:1', { category: 'operator' }),
    ];
    expect(show(...images)).toEqual([
      'operator tag: quay.io/team -> team',
      'generic tag: quay.io/team -> other/team, team',
    ]);
  });

  it('names a repository that another place given to one of its images would hide', () => {
    const images = [
      image(`quay.io/team/app@${DIGEST}`),
      image('quay.io/team/app:1', { to: 'other' }),
      image(`quay.io/team/app/part@${DIGEST}`, { category: 'operator' }),
    ];
    expect(show(...images)).toEqual([
      'operator digest: quay.io/team/app -> team/app',
      'generic digest: quay.io/team -> team',
      'generic tag: quay.io/team/app -> other',
    ]);
    expect(show(...images.slice(0, 2))).toEqual([
      'generic digest: quay.io/team -> team',
      'generic digest: quay.io/team/app -> team/app',
      'generic tag: quay.io/team/app -> other',
    ]);
  });

  it('leads every image to its copy, wherever the copy is', () => {
    const path = fc
      .array(fc.constantFrom('a', 'b', 'my-a'), { minLength: 1, maxLength: 4 })
      .map((parts) => parts.join('/'));
    const wanted = fc
      .tuple(path, fc.option(path, { nil: undefined }), fc.constantFrom(':1', `@${DIGEST}`))
      .map(([from, to, version]) =>
        image(`quay.io/${from}${version}`, to === undefined ? {} : { to }),
      );
    fc.assert(
      fc.property(fc.array(wanted), (images) => {
        const plan = planMirrors(images);
        for (const { source, destination } of images) {
          const by = source.digest === undefined ? 'tag' : 'digest';
          const copies = findCopies(plan, `quay.io/${source.repository}`, by);
          expect(copies).toContain(`node/${destination.repository}`);
        }
      }),
    );
  });
});

/** As container tools do: the entries of the longest source that covers the name, and no others. */
function findCopies(
  plan: readonly PlannedMirror[],
  name: string,
  by: PlannedMirror['by'],
): readonly string[] {
  const covering = plan.filter(({ source }) => `${name}/`.startsWith(`${source}/`));
  const longest = Math.max(...covering.map(({ source }) => source.length));
  return covering
    .filter((entry) => entry.source.length === longest && entry.by === by)
    .flatMap(({ source, mirrors }) =>
      mirrors.map((mirror) => formatMirror('node', mirror) + name.slice(source.length)),
    );
}
