import { execFileSync } from 'node:child_process';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeDefinitions } from '../../../demo/definitions.ts';
import type { Digest } from '../../../src/base/digest.ts';
import { listImagePolicy } from '../../../src/cli/report-lines.ts';
import { formatReport, listRows, underLabel } from '../../../src/cli/terminal/report.ts';
import { createPolicyFinder } from '../../../src/openshift/release/image-policy.ts';
import { parseReference } from '../../../src/registry/reference.ts';
import {
  checkImagePolicy,
  type CheckImagePolicyInput,
  type ImagePolicyCheck,
} from '../../../src/stages/2-select/check-image-policy.ts';
import { planMirror } from '../../../src/stages/2-select/plan-mirror.ts';
import { resolveRelease } from '../../../src/stages/1-resolve/resolve-release.ts';
import { createRandom } from '../../faults/random.ts';
import {
  attach,
  attachBundle,
  makeImagePolicy,
  packSignatures,
  signBytes,
  stateImage,
  type Attached,
} from '../../support/cosign.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { buildIndex, type TestImage } from '../../support/images.ts';
import { addRelease, buildLayeredImage } from '../../support/release.ts';

const EC = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const OTHER = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const TOOLS = 'team/tools';

let world: ImageWorld;
beforeEach(async () => {
  world = await createImageWorld();
});
afterEach(() => world.close());

const at = (repository: string): string => `${world.registry.host}/${repository}`;
/** The name by which signatures are for the images of tools. */
const signedName = (): string => `${at(TOOLS)}:1`;
const topOf = ({ manifests: [top] }: TestImage): Digest => {
  if (!top) throw new Error('an image has a manifest');
  return top.descriptor.digest;
};

/** An image in the repository of tools. */
async function addTool(text: string): Promise<Digest> {
  const image = await buildLayeredImage([[['usr/bin/tool', text]]]);
  world.registry.add(TOOLS, image);
  return topOf(image);
}

function signature(digest: Digest, key: KeyObject = EC, change: Change = {}): Attached {
  const statement = change.statement ?? stateImage(digest, signedName());
  const payload = Buffer.from(change.text ?? JSON.stringify(statement));
  return { payload, signature: signBytes(payload, key).toString('base64') };
}
type Change = { readonly statement?: unknown; readonly text?: string };

type Options = {
  readonly policy: string;
  readonly images?: readonly string[];
  readonly version?: string;
  readonly disableImagePolicy?: boolean;
};

/** What the stage says of a release with this policy and these additional images. */
async function check({
  policy,
  images = [],
  version,
  ...input
}: Options): Promise<ImagePolicyCheck> {
  const { pullspec } = await addRelease(world.registry, {
    ...(version !== undefined && { version }),
    definitions: {
      ...makeDefinitions(version ?? '4.21.3'),
      'release-manifests/0000_90_policy.yaml': policy,
    },
  });
  const wanted = {
    url: pullspec,
    version: version ?? '4.21.3',
    channel: '',
    arch: 'x86_64',
  } as const;
  const release = await resolveRelease.run(wanted, world, world.context);
  const plan = await planMirror.run(
    {
      release,
      catalogs: [],
      blockedImages: [],
      allArchitectures: false,
      arch: 'x86_64',
      additionalImages: images.map((name) => ({ name })),
      includeSignatures: true,
    },
    world,
    world.context,
  );
  const request: CheckImagePolicyInput = { release, plan, ...input };
  return checkImagePolicy.run(request, world, world.context);
}

const policyFor = (key: KeyObject = EC): string => makeImagePolicy(key, [at(TOOLS)]);

const formatImagePolicy = (found: ImagePolicyCheck, label: string): readonly string[] => {
  const body = listRows({ width: label.length }, underLabel(label, listImagePolicy(found)));
  return formatReport({ title: [], body }).trimEnd().split('\n');
};

describe('the check of the image policy', () => {
  it('covers only the release image and its components, each by its repository', async () => {
    const policy = makeImagePolicy(EC, [at('ocp/release'), at('ocp/art-dev')]);
    const image = await addTool('of nobody');
    const found = await check({ policy, images: [`${at(TOOLS)}@${image}`], version: '4.21.3' });
    expect(found).toMatchObject({ policies: ['openshift'], isDisabled: false, images: 7 });
    expect(found.refused.map(({ name, problem }) => `${name}: ${problem}`)).toEqual(
      [
        ...['release-image', 'baremetal-installer', 'cluster-version-operator', 'docker-registry'],
        ...['etcd', 'installer', 'machine-os-images'],
      ].map((name) => `${name}: it has no signature`),
    );
    expect(formatImagePolicy(found, 'policy  ')).toEqual([
      'policy  openshift: nodes refuse 7 of 7 images at first boot',
      '        release-image, baremetal-installer, cluster-version-operator, docker-registry, etcd and 2 more: it has no signature',
    ]);
  });

  it('accepts an image whose own manifest is signed, whether its index is signed or not', async () => {
    const amd = await buildLayeredImage([[['usr/bin/tool', 'amd']]]);
    const index = buildIndex([[{ os: 'linux', architecture: 'amd64' }, amd]]);
    world.registry.add(TOOLS, index);
    const images = [`${at(TOOLS)}@${topOf(index)}`];
    attach(
      world.registry,
      { repository: TOOLS, digest: topOf(index) },
      packSignatures([signature(topOf(index))]),
    );
    expect((await check({ policy: policyFor(), images })).refused).toMatchObject([
      {
        severity: 'warning',
        code: 'signature.image-refused',
        image: `${at(TOOLS)}@${topOf(amd)}`,
        problem: 'it has no signature',
      },
    ]);
    attach(
      world.registry,
      { repository: TOOLS, digest: topOf(amd) },
      packSignatures([signature(topOf(amd))]),
    );
    const found = await check({ policy: policyFor(), images });
    expect(found).toMatchObject({ images: 1, refused: [] });
    expect(formatImagePolicy(found, '')).toEqual([
      'openshift accepts all 1 images that it applies to',
    ]);
  });

  it('refuses an image that cosign 3 signed, because nodes do not read its bundles', async () => {
    const [mine, other] = [await addTool('a bundle'), await addTool('a bundle by another key')];
    attachBundle(world.registry, { repository: TOOLS, digest: mine }, EC);
    attachBundle(world.registry, { repository: TOOLS, digest: other }, OTHER);
    const images = [mine, other].map((digest) => `${at(TOOLS)}@${digest}`);
    const { refused } = await check({ policy: policyFor(), images });
    expect(refused.map(({ problem }) => problem)).toEqual([
      'its signature is a bundle of cosign 3, which nodes do not read',
      'it has no signature',
    ]);
  });

  it('refuses an image if its registry cannot list what is attached, and the plan goes on', async () => {
    const [empty, forbidden] = [await addTool('answers nothing'), await addTool('answers 403')];
    world.registry.breakPath(`/v2/${TOOLS}/referrers/${empty}`, 200);
    world.registry.breakPath(`/v2/${TOOLS}/manifests/${forbidden.replace(':', '-')}`, 403);
    const images = [empty, forbidden].map((digest) => `${at(TOOLS)}@${digest}`);
    const { refused } = await check({ policy: policyFor(), images });
    expect(refused.map(({ problem }) => problem)).toEqual([
      expect.stringMatching(/^it has no signature, and what is attached to it cannot be listed: ./),
      expect.stringMatching(/^it has no signature, and what is attached to it cannot be listed: ./),
    ]);
  });

  it('checks nothing on a medium that switches the policy off, or of an unsigned nightly', async () => {
    const images = [`${at(TOOLS)}@${await addTool('unsigned')}`];
    const off = await check({ policy: policyFor(), images, disableImagePolicy: true });
    const nightly = await check({
      policy: policyFor(),
      images,
      version: '4.22.0-0.nightly-2026-01-01-000000',
    });
    for (const found of [off, nightly])
      expect(found).toMatchObject({ isDisabled: true, refused: [] });
    expect(formatImagePolicy(off, '')).toEqual([
      'openshift is disabled on this medium: nodes pull unsigned images',
    ]);
  });

  it.each([
    ['4.22.1', 'TechPreviewNoUpgrade', 0],
    ['4.21.3', 'TechPreviewNoUpgrade', 1], // whose media need the preview
    ['4.21.3', 'DevPreviewNoUpgrade', 0],
    ['4.22.1', 'Default,TechPreviewNoUpgrade', 1],
  ])(
    'covers, for release %s and a policy of feature set %s, %i images',
    async (version, featureSet, count) => {
      const images = [`${at(TOOLS)}@${await addTool('unsigned')}`];
      const policy = makeImagePolicy(EC, [at(TOOLS)], { featureSet });
      expect((await check({ policy, images, version })).refused).toHaveLength(count);
    },
  );

  it.each([
    ['ExactRepository', 'quay.io/exact/tools', 0],
    ['ExactRepository', 'quay.io/other/tools', 1],
    ['RemapIdentity', 'quay.io/signed/tools:1', 0],
    ['RemapIdentity', 'quay.io/signed/tools', 1],
    ['MatchRepository', 'quay.io/signed/tools', 1],
    ['MatchRepository', 'REGISTRY/team/tools', 0],
    ['MatchRepoDigestOrExact', 'REGISTRY/team/tools', 1],
    ['MatchRepoDigestOrExact', 'REGISTRY/team/tools:2', 0],
  ])(
    'follows signedIdentity %s: of the images signed as %s, it refuses %i',
    async (matchPolicy, name, count) => {
      const digest = await addTool('renamed');
      const members = {
        exactRepository: { repository: 'quay.io/exact/tools' },
        remapIdentity: { prefix: at('team'), signedPrefix: 'quay.io/signed' },
      };
      const policy = makeImagePolicy(EC, [at('team')], {
        signedIdentity: { matchPolicy, ...members },
      });
      const identity = name.replace('REGISTRY', world.registry.host);
      const signed = signature(digest, EC, { statement: stateImage(digest, identity) });
      attach(world.registry, { repository: TOOLS, digest }, packSignatures([signed]));
      const { refused } = await check({ policy, images: [`${at(TOOLS)}@${digest}`] });
      expect(refused).toHaveLength(count);
    },
  );

  it('leaves out a policy that asks for a transparency log', async () => {
    const rootOfTrust = { policyType: 'FulcioCAWithRekor', fulcioCAWithRekor: {} };
    const policy = makeImagePolicy(EC, [at(TOOLS)], { rootOfTrust });
    const found = await check({ policy });
    expect(found).toMatchObject({ policies: [], unchecked: ['openshift'], refused: [] });
  });

  it('applies only the policies of the most specific scope, and all of them', async () => {
    const digest = await addTool('of one scope within another');
    attach(world.registry, { repository: TOOLS, digest }, packSignatures([signature(digest)]));
    const images = [`${at(TOOLS)}@${digest}`];
    const outer = [at('team'), world.registry.host, '*.0.0.1'].map((scope) =>
      makeImagePolicy(OTHER, [scope]),
    );
    const ask = async (...policies: readonly string[]) =>
      (await check({ policy: policies.join('\n---\n'), images })).refused.filter(({ image }) =>
        image.endsWith(digest),
      );
    expect(await ask(...outer, policyFor())).toEqual([]);
    expect(await ask(makeImagePolicy(OTHER, [`${at(TOOLS)}@${digest}`]), policyFor())).toHaveLength(
      1,
    );
    expect(await ask(policyFor(OTHER), policyFor())).toHaveLength(1);
    for (const policy of outer) expect(await ask(policy)).toHaveLength(1);
    const log = { rootOfTrust: { policyType: 'FulcioCAWithRekor', fulcioCAWithRekor: {} } };
    expect(await ask(...outer, makeImagePolicy(EC, [at(TOOLS)], log))).toEqual([]);
  });

  it('is fast for a policy with very many scopes', () => {
    const scopes = Array.from({ length: 200_000 }, (_, at) => `quay.io/none/${at}`);
    const policy = { name: 'p', scopes, identity: { kind: 'digest-or-exact' } } as const;
    const { user } = process.cpuUsage();
    const find = createPolicyFinder([policy]);
    for (const name of scopes.slice(0, 2000)) find(parseReference(`${name}/a:1`));
    expect(find(parseReference('quay.io/none:1'))).toEqual([]);
    expect(process.cpuUsage().user - user).toBeLessThan(3_000_000);
  });

  it.each([
    ['X25519', () => generateKeyPairSync('x25519').privateKey],
    ['Ed448', () => generateKeyPairSync('ed448').privateKey],
    ['RSA-PSS', () => generateKeyPairSync('rsa-pss', { modulusLength: 1024 }).privateKey],
    ['secp256k1', () => generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey],
  ])('refuses a policy with a key of %s, which nodes do not read', async (_, make) => {
    const policy = makeImagePolicy(make(), [at(TOOLS)]);
    await expect(check({ policy })).rejects.toMatchObject({ code: 'release.manifest-unreadable' });
  });

  it('refuses a policy with a private key or a certificate', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'sealift-policy-'));
    const own = EC.export({ type: 'pkcs8', format: 'pem' }).toString();
    writeFileSync(join(directory, 'key'), own);
    const args = ['req', '-x509', '-key', join(directory, 'key'), '-subj', '/CN=a', '-days', '9'];
    const certificate = execFileSync('openssl', args, { encoding: 'utf8' });
    rmSync(directory, { recursive: true });
    for (const pem of [own, certificate]) {
      const publicKey = { keyData: Buffer.from(pem).toString('base64') };
      const policy = makeImagePolicy(EC, [], {
        rootOfTrust: { policyType: 'PublicKey', publicKey },
      });
      await expect(check({ policy })).rejects.toMatchObject({
        code: 'release.manifest-unreadable',
      });
    }
  });

  it('refuses a payload with a policy that cannot be read', async () => {
    const rootOfTrust = { policyType: 'PublicKey', publicKey: { keyData: 'bm8ga2V5' } };
    const policy = makeImagePolicy(EC, [at(TOOLS)], { rootOfTrust });
    await expect(check({ policy })).rejects.toMatchObject({ code: 'release.manifest-unreadable' });
  });
});

describe('a signature', () => {
  /** Which of images with these signatures are refused. */
  async function judge(
    cases: readonly (readonly [name: string, make: (digest: Digest) => TestImage])[],
    key: KeyObject = EC,
  ): Promise<readonly string[]> {
    const digests = new Map<Digest, string>();
    for (const [name, make] of cases) {
      const digest = await addTool(name);
      digests.set(digest, name);
      attach(world.registry, { repository: TOOLS, digest }, make(digest));
    }
    const images = [...digests.keys()].map((digest) => `${at(TOOLS)}@${digest}`);
    const { refused } = await check({ policy: policyFor(key), images });
    return refused.map(({ image }) => digests.get(image.split('@')[1] as Digest) ?? '');
  }

  const one = (change: (digest: Digest) => Change) => (digest: Digest) =>
    packSignatures([signature(digest, EC, change(digest))]);
  const named = (identity: () => string) =>
    one((digest) => ({ statement: stateImage(digest, identity()) }));
  const ACCEPTED = [
    ['by the key', one(() => ({}))],
    ['as a tag of the repository', named(() => `${at(TOOLS)}:1.0`)],
    [
      'by digest, as the repository by digest',
      named(() => `${at(TOOLS)}@sha256:${'2'.repeat(64)}`),
    ],
    [
      'with spaces',
      one((digest) => ({ text: JSON.stringify(stateImage(digest, signedName()), null, 2) })),
    ],
    [
      'with annotations',
      one((digest) => ({
        statement: { ...stateImage(digest, signedName()), optional: { creator: 'a', other: [1] } },
      })),
    ],
    [
      'with line breaks in its base64',
      (digest: Digest) => {
        const { payload, signature: text = '' } = signature(digest);
        return packSignatures([
          { payload, signature: `${text.slice(0, 20)}\r\n${text.slice(20)}\n` },
        ]);
      },
    ],
    [
      'last of thirty',
      (digest: Digest) =>
        packSignatures([
          ...Array.from({ length: 29 }, () => signature(digest, OTHER)),
          signature(digest),
        ]),
    ],
    [
      'second of two',
      (digest: Digest) => packSignatures([signature(digest, OTHER), signature(digest)]),
    ],
  ] as const;
  const REFUSED = [
    [
      'with a creator that is not a text',
      one((digest) => ({
        statement: { ...stateImage(digest, signedName()), optional: { creator: 1 } },
      })),
    ],
    [
      'with a time that is not a whole number',
      one((digest) => ({
        statement: { ...stateImage(digest, signedName()), optional: { timestamp: 1.5 } },
      })),
    ],
    ['by another key', (digest: Digest) => packSignatures([signature(digest, OTHER)])],
    [
      'of another image',
      one(() => ({ statement: stateImage(`sha256:${'1'.repeat(64)}`, signedName()) })),
    ],
    ['as another repository', named(() => at('team/other'))],
    ['as the repository alone', named(() => at(TOOLS))],
    ['as one below it', named(() => `${at(TOOLS)}/x:1`)],
    ['as another host', named(() => `quay.io/${TOOLS}`)],
    ['as nothing', named(() => '')],
    [
      'of another type',
      one((digest) => ({
        text: JSON.stringify(stateImage(digest, signedName())).replace('cosign', 'atomic'),
      })),
    ],
    [
      'with another member',
      one((digest) => ({ statement: { ...stateImage(digest, signedName()), more: 1 } })),
    ],
    [
      'with a member twice',
      one((digest) => ({
        text: JSON.stringify(stateImage(digest, signedName())).replace(
          '"optional":null',
          '"optional":null,"optional":null',
        ),
      })),
    ],
    [
      'without optional',
      one((digest) => ({
        text: JSON.stringify({ critical: stateImage(digest, signedName())['critical'] }),
      })),
    ],
    [
      'with more behind it',
      one((digest) => ({ text: `${JSON.stringify(stateImage(digest, signedName()))}{}` })),
    ],
    [
      'that is not base64',
      (digest: Digest) => packSignatures([{ ...signature(digest), signature: '?' }]),
    ],
    [
      'without its annotation',
      (digest: Digest) => packSignatures([{ payload: signature(digest).payload }]),
    ],
    [
      'in another kind of layer',
      (digest: Digest) => packSignatures([{ ...signature(digest), mediaType: 'text/plain' }]),
    ],
    ['in an image without layers', () => packSignatures([])],
    [
      'in an image of Docker',
      (digest: Digest) =>
        packSignatures([signature(digest)], 'application/vnd.docker.distribution.manifest.v2+json'),
    ],
  ] as const;

  it('is accepted or refused as containers-policy.json(5) says', async () => {
    expect(await judge([...ACCEPTED, ...REFUSED])).toEqual(REFUSED.map(([name]) => name));
  });

  it.each([
    ['RSA of 4096 bits', () => generateKeyPairSync('rsa', { modulusLength: 4096 }).privateKey],
    ['ECDSA on P-256', () => EC],
    ['ECDSA on P-384', () => generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey],
    ['Ed25519', () => generateKeyPairSync('ed25519').privateKey],
  ])('is accepted if openssl made it with %s', async (_name, generate) => {
    const key = generate();
    const make = (digest: Digest): TestImage => {
      const { payload } = signature(digest, key);
      return packSignatures([{ payload, signature: signWithOpenssl(payload, key) }]);
    };
    expect(await judge([['by openssl', make]], key)).toEqual([]);
  });

  function signWithOpenssl(payload: Uint8Array, key: KeyObject): string {
    const [keyFile, file] = [join(world.directory, 'key.pem'), join(world.directory, 'payload')];
    writeFileSync(keyFile, key.export({ type: 'pkcs8', format: 'pem' }));
    writeFileSync(file, payload);
    const args =
      key.asymmetricKeyType === 'ed25519'
        ? ['pkeyutl', '-sign', '-rawin', '-inkey', keyFile, '-in', file]
        : ['dgst', '-sha256', '-sign', keyFile, file];
    return execFileSync('openssl', args).toString('base64');
  }

  it('is refused if a bit of it, or of what it signs, was changed', async () => {
    const random = createRandom(20_261_122);
    const flip = (bytes: Buffer): Buffer => {
      const place = random.below(bytes.length);
      bytes[place] = (bytes[place] ?? 0) ^ (1 << random.below(8));
      return bytes;
    };
    const cases = Array.from({ length: 60 }, (_, index) => {
      const make = (digest: Digest): TestImage => {
        const { payload, signature: text = '' } = signature(digest);
        const changed = flip(Buffer.from(text, 'base64')).toString('base64');
        return packSignatures([
          index % 2 === 0
            ? { payload: flip(Buffer.from(payload)), signature: text }
            : { payload, signature: changed },
        ]);
      };
      return [`change ${index}`, make] as const;
    });
    expect(await judge(cases)).toEqual(cases.map(([name]) => name));
  });
});
