import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SIGNATURE_SETTINGS } from '../demo/release-signer.ts';
import { formatOperators } from './operators.ts';
import { runSealift, type MeasuredRun, type Source } from './run.ts';
import { findSignatures } from './source-shape.ts';

/** As many extents as a build pours at a time by default. */
export const LANES = 8;

/** Where builds of the bench run, and on what. */
export type Site = {
  readonly directory: string;
  readonly base: string;
  /** PEM file of the certificate authority that the source registry is trusted by, where it has TLS. */
  readonly caBundle?: string;
};

/** A measured build; `pour` in seconds. */
export type Built = MeasuredRun & {
  readonly pour: number;
  readonly isoSize: number;
  /** Bytes read again for the digest of the whole. */
  readonly readBack: number;
};

/** A folder of its own with a configuration, and nothing cached. */
export function prepare(name: string, from: Source, site: Site): string {
  const work = join(site.directory, name);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work);
  writeFileSync(
    join(work, 'appliance-config.yaml'),
    [
      'apiVersion: v1beta1',
      'kind: ApplianceConfig',
      'ocpRelease:',
      `  version: "${from.version}"`,
      `  url: ${from.pullspec}`,
      `pullSecret: '{"auths":{"${from.host}":{"auth":"YmVuY2g6YmVuY2g="}}}'`,
      'build:',
      '  ignition: embedded',
      `  baseIso: ${site.base}`,
      ...formatSignatures(findSignatures(site, from.pullspec)),
      ...(site.caBundle === undefined ? [] : [`  caBundle: ${site.caBundle}`]),
      `  concurrency: ${LANES}`,
      ...formatOperators(from.operators),
      '',
    ].join('\n'),
  );
  return work;
}

const formatSignatures = (folder: string): readonly string[] =>
  Object.entries(SIGNATURE_SETTINGS).map(([name, path]) => `  ${name}: ${join(folder, path)}`);

/** Builds in a prepared folder, and removes it. */
export async function build(
  work: string,
  product: 'live-iso' | 'upgrade-iso' = 'live-iso',
): Promise<Built> {
  const built = await runSealift(['build', product, '--output', 'out.iso'], work);
  const told = JSON.parse(readFileSync(join(work, 'out.iso.report.json'), 'utf8')) as {
    stages: { stage: string; milliseconds: number }[];
    bytes: { readBack: number };
  };
  const pour = (told.stages.find(({ stage }) => stage === 'pour ISO')?.milliseconds ?? NaN) / 1000;
  const isoSize = statSync(join(work, 'out.iso')).size;
  rmSync(work, { recursive: true });
  return { ...built, pour, isoSize, readBack: told.bytes.readBack };
}

export const rate = (seconds: number, source: Source): string =>
  `${(source.payloadSize / 1e6 / seconds).toFixed(0)} MB/s`;

export const describe = ({ measures, isoSize, readBack }: Built): string =>
  `RSS ${measures.peakRssMiB.toFixed(0)} MiB, written ${(measures.writtenBytes / isoSize).toFixed(4)}, ` +
  `read back ${(readBack / isoSize).toFixed(3)}, CPU ${measures.userSeconds.toFixed(1)} + ${measures.systemSeconds.toFixed(1)} s`;
