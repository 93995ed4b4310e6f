import { deflateRawSync } from 'node:zlib';
import { rootCertificates } from 'node:tls';
import { createDelta } from 'fossil-delta';
import { connectOptions } from '../../src/base/http/tls.ts';
import { createRedaction, redactAddresses } from '../../src/base/text/redact.ts';
import { explainRoots } from '../../src/keys/index.ts';
import { parseConstraint } from '../../src/fbc/constraint.ts';
import { createIgnoreBudget, isIgnored, parseIgnoreFile } from '../../src/fbc/read/ignore.ts';
import { parseBundleVersion, parseVersionRange } from '../../src/fbc/version.ts';
import { leaveOut, listMoves, planSteps } from '../../src/media/delta/in-place/plan.ts';
import { usePatch } from '../../src/media/delta/file.ts';
import { formatMediaIndex, parseMediaIndex } from '../../src/media/media-index.ts';
import { compareReleases } from '../../src/openshift/release/version.ts';
import {
  describeErrors,
  listErrorCodes,
  parseChallenges,
} from '../../src/registry/client/answer.ts';
import { readPullSecret } from '../../src/registry/client/pull-secret.ts';
import { parseArtifact } from '../../src/outputs/artifact/manifest.ts';
import { digestOf } from '../../src/base/digest.ts';
import { parseManifest, parseStored } from '../../src/registry/manifest.ts';
import { type Attack, type Work, many, nest, digestOfNumber, MIB } from './attack.ts';

/** A text that something reads at once. */
const text = (size: number, make: (size: number) => string, read: (text: string) => unknown) => ({
  size,
  prepare: (wanted: number): Work => {
    const made = make(wanted);
    return () => read(made);
  },
});

/** Ignore rules that are matched with each of so many files. */
const ignore = (size: number, rules: string, path: (index: number) => readonly string[]) => ({
  size,
  prepare: (files: number): Work => {
    const parsed = parseIgnoreFile(rules, []);
    const effort = createIgnoreBudget();
    return () => {
      for (let at = 0; at < files; at++) isIgnored(parsed, path(at), effort);
    };
  },
});

const VERSION = parseBundleVersion('1.2.3');
const accepts = (range: string): unknown => VERSION && parseVersionRange(range)?.(VERSION);

const index = (extents: number, areas: number): string =>
  formatMediaIndex({
    format: 2,
    product: 'live-iso',
    base: { digest: digestOfNumber(0), size: 2048 },
    release: {
      version: '4.21.3',
      reference: `quay.io/a/b@${digestOfNumber(0)}`,
      architecture: 'amd64',
    },
    images: [],
    catalogs: [],
    mutable: Array.from({ length: areas }, (_, at) => ({
      ...{ kind: 'ignition', offset: 2 ** 40 + at * 2048, size: 1, digest: digestOfNumber(at) },
    })),
    extents: Array.from({ length: extents }, (_, at) => ({
      ...{ offset: at * 2048, size: 1, digest: digestOfNumber(at), paths: [] },
    })),
  });

const BOOT = { offset: 0, size: 36_864 };

/** A delta whose index puts one blob in so many places, and small ones over the place it comes from. */
function repeatBlob(places: number): Work {
  const big = { size: 4 * MIB, digest: digestOfNumber(1) };
  const small = { size: 1, digest: digestOfNumber(2) };
  const at = (offset: number, step: number, run: typeof big) =>
    Array.from({ length: places }, (_, turn) => ({ ...run, offset: offset + turn * step }));
  const old = { size: 2 ** 40, extents: [{ ...big, offset: MIB }] };
  const now = {
    size: 2 ** 40,
    extents: [...at(MIB, 100, small), ...at(2 ** 32, big.size, big)],
    carried: [{ ...small, offset: 0, in: 'delta' as const }],
  };
  return () => planSteps(leaveOut(listMoves(old, now), old, BOOT), BOOT);
}

/** A delta in which every one of so many small blobs moves. */
function moveAll(count: number): Work {
  const runs = Array.from({ length: count }, (_, at) => ({
    ...{ offset: MIB + at * 16, size: 9, digest: digestOfNumber(at) },
  }));
  const old = { size: 2 ** 30, extents: runs };
  const extents = runs.map((run, at) => ({ ...run, offset: MIB + ((at * 7919) % count) * 16 + 3 }));
  const now = { size: 2 ** 30, carried: [], extents: extents.sort((a, b) => a.offset - b.offset) };
  return () => planSteps(leaveOut(listMoves(old, now), old, BOOT), BOOT);
}

/** Reads a list of roots as a configuration names it, and trusts it if it has no fault. */
function trust(size: number): () => unknown {
  const [root = ''] = rootCertificates;
  const text = `${root}\n`.repeat(Math.floor(size / (root.length + 1)));
  return () => explainRoots(Buffer.from(text)) ?? connectOptions({ ca: [text] }, {});
}

/** An artifact whose only layer has so many places in an ISO of such a size. */
const artifact = (places: number, size: number): string =>
  JSON.stringify({
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    artifactType: 'application/vnd.sealift.iso.v1',
    config: { mediaType: 'application/vnd.oci.empty.v1+json', digest: digestOfNumber(1), size: 2 },
    annotations: { 'dev.sealift.iso.size': String(size) },
    layers: [
      {
        mediaType: 'application/vnd.sealift.iso.part.v1',
        digest: digestOfNumber(2),
        size: 2048,
        annotations: {
          'dev.sealift.iso.offset': Array.from({ length: places }, (_, at) => at * 2048).join(' '),
        },
      },
    ],
  });

function readArtifact(json: string): unknown {
  const bytes = Buffer.from(json);
  return parseArtifact('a', parseStored(bytes, digestOf(bytes)), []);
}

/** Texts and structures that are read in memory. */
export const TEXT_ATTACKS: Readonly<Record<string, Attack>> = {
  'ignore file: stars against long names': ignore(50, many('*a', 738), (at) => [
    `${'a'.repeat(250)}${at}`,
  ]),
  'ignore file: stars against deep folders': ignore(50, many('**/a/', 738), (at) => [
    ...Array.from({ length: 250 }, () => 'a'),
    `${at}`,
  ]),
  'ignore file: 10,000 plain rules against long names': ignore(25, 'b\n'.repeat(10_000), (at) => [
    `${'a'.repeat(250)}${at}`,
  ]),
  'ignore file: 1,000 anchored rules against deep folders': ignore(
    10,
    'a/**/b\n'.repeat(1000),
    (at) => [...Array.from({ length: 250 }, () => 'c'), `${at}`],
  ),
  'ignore file: sets of characters': ignore(50, `*[${many('a-b', 700)}]`, (at) => [
    `${'c'.repeat(250)}${at}`,
  ]),
  'constraint: alternatives': text(20_000, (n) => many('>=1.2.3 || ', n), parseConstraint),
  'constraint: hyphens': text(900, (n) => many('1 - ', n), parseConstraint),
  'constraint: blanks': text(900, (n) => `1.2.3${' '.repeat(n)}!`, parseConstraint),
  'constraint: a huge number': text(900, (n) => `>=1.${many('9', n)}.x`, parseConstraint),
  'range: alternatives': text(200_000, (n) => many('>=1.2.3 || ', n), accepts),
  'range: a wildcard of a huge number': text(200_000, (n) => `${many('9', n)}.x`, accepts),
  'range: words of a prerelease': text(200_000, (n) => `>=1.2.3-${many('a.', n)}b`, accepts),
  'pull secret: nested deep': text(100_000, (n) => `{"auths":${nest(n)}}`, readPullSecret),
  'registry: an error that is nested deep': text(
    100_000,
    (n) => `{"errors":${nest(n)}}`,
    listErrorCodes,
  ),
  'registry: a challenge of blanks': text(
    16_000,
    (n) => `Bearer a${' '.repeat(n)}b`,
    parseChallenges,
  ),
  'registry: a challenge of words': text(16_000, (n) => many('a ', n), parseChallenges),
  'registry: a challenge of quotes': text(
    16_000,
    (n) => `Bearer a=${many('"\\', n)}`,
    parseChallenges,
  ),
  'manifest: nested deep': text(
    100_000,
    (n) => `{"schemaVersion":2,"layers":${nest(n)}}`,
    (json) => parseManifest(Buffer.from(json)),
  ),
  'manifest: one layer again and again': text(
    5000,
    (n) =>
      `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"a/b","digest":"${digestOfNumber(1)}","size":2},"layers":[${Array.from({ length: n }, () => `{"mediaType":"a/b","digest":"${digestOfNumber(2)}","size":1000000000000}`).join(',')}]}`,
    (json) => parseManifest(Buffer.from(json)),
  ),
  'index: areas times extents': text(5000, (n) => index(n, 100), parseMediaIndex),
  'artifact: one layer in many places': text(50_000, (n) => artifact(n, n * 2048), readArtifact),
  'artifact: an ISO of a pebibyte': text(1, () => artifact(1, 2 ** 50), readArtifact),
  'index: nested deep': text(
    100_000,
    (n) => `{"format":3,"images":${nest(n)}}`,
    (json) => parseMediaIndex(Buffer.from(json)),
  ),
  'delta: one blob in many places': { size: 1000, prepare: repeatBlob },
  'delta: many blobs that move': { size: 5000, prepare: moveAll },
  'delta: a patch that copies 16 MiB': {
    size: 4 * MIB,
    prepare: (size) => {
      const old = Buffer.alloc(size);
      const patch = deflateRawSync(Uint8Array.from(createDelta(old, old)));
      return () => usePatch(old, { patch, size });
    },
  },
  'reference: digits': text(
    16_000,
    (n) => `a:1.2.${many('1', n)}!`,
    (given) => compareReleases(given, { image: 'a/b' }),
  ),
  'certificates: a list of roots': { size: 500_000, prepare: (size) => trust(size) },
  'certificates: a list of roots that is too long': {
    size: 4 * MIB,
    prepare: (size) => trust(size),
  },
  'message: a base64 run': text(500_000, (n) => many('QUJD', n), redactAddresses),
  'message: addresses': text(200_000, (n) => many('s3://a:', n), redactAddresses),
  'message: at signs': text(200_000, (n) => many('a@', n), redactAddresses),
  'message: an address of capital letters': text(
    64_000,
    (n) => `http://${many('A', n)}\u00e9`,
    redactAddresses,
  ),
  'message: an address with a secret in each parameter': text(
    64_000,
    (n) => `https://a/?${Array.from({ length: n / 10 }, (_, at) => `token${at}=a`).join('&')}`,
    redactAddresses,
  ),
  'registry: an error with an address of capital letters': text(
    16_000,
    (n) => `{"errors":[{"code":"X","message":"http://${many('A', n)}\u00e9"}]}`,
    describeErrors,
  ),
  'message: a secret of many lines': {
    size: 16_000,
    prepare: (size) => {
      const secret = Array.from({ length: size / 20 }, (_, at) => `line ${at} of a secret `).join(
        '\n',
      );
      return () => {
        const { add, mask } = createRedaction();
        add(secret);
        for (let turn = 0; turn < 20; turn++) mask(`message ${turn} with words`);
      };
    },
  },
};
