import type { InstallationConfig } from '../config/installation/installation-config.ts';
import { formatValidIgnition } from '../ignition/format-valid.ts';
import type { Layout } from '../iso/extent.ts';
import { lockOutput } from '../iso/pour/lock.ts';
import { pourIso, type PourResult } from '../iso/pour/pour-iso.ts';
import { renderInstallationIgnition } from '../openshift/image-based/installation-ignition.ts';
import type { RpmArchitecture } from '../openshift/release/release-bundle.ts';
import { archNames } from '../openshift/release/architecture.ts';
import { fetchBaseIso, type BaseIso } from '../stages/fetch-base-iso.ts';
import { fetchGivenBaseIso, type NamedBaseIso } from '../stages/fetch-given-base-iso.ts';
import { layOutInstallationIso } from '../stages/lay-out-installation-iso.ts';
import { createExtentOpener } from '../stages/open-extents.ts';
import { resolveRelease } from '../stages/resolve-release.ts';
import { scanBase } from '../stages/scan-base.ts';
import { sealIso } from '../stages/seal-iso.ts';
import type { BuildTools } from './build-tools.ts';
import { isKept } from './kept.ts';

/** Everything an installation ISO is made from. */
export type InstallationIsoRequest = {
  readonly config: InstallationConfig;
  /** post.sh beside the configuration. */
  readonly postScript?: Uint8Array;
  readonly output: string;
  readonly workDir: string;
  /** Where the live ISO comes from: a file, an address, or a release payload by its pullspec. */
  readonly base: NamedBaseIso | { readonly release: string };
  /** Extents poured at a time. */
  readonly lanes: number;
  /** SOURCE_DATE_EPOCH, seconds; default: the base ISO's creation. */
  readonly epoch?: number;
};

export type InstallationIsoReport = {
  readonly format: 1;
  readonly product: 'installation-iso';
  readonly output: string;
  /** Of the whole ISO. */
  readonly digest: string;
  /** Bytes. */
  readonly isoSize: number;
  readonly architecture: RpmArchitecture;
  readonly base: { readonly digest: string; readonly from: string; readonly size: number };
  readonly seedImage: string;
  readonly seedVersion: string;
  readonly installationDisk: string;
  readonly secretsOnMedia: readonly string[];
  readonly bytes: {
    readonly fetched: number;
    readonly copied: number;
    readonly kept: number;
    readonly written: number;
    readonly readBack: number;
  };
  readonly stages: readonly { stage: string; milliseconds: number; reused: boolean }[];
  /** What stays on disk for the next build. */
  readonly cache: string;
};

/** From a configuration to a sealed ISO. Two builds of one output exclude each other. */
export async function buildInstallationIso(
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> {
  const unlock = await lockOutput(`${request.output}.lock`);
  try {
    const ignition = renderIgnition(request);
    const { base, scan } = prepareBase(request, tools);
    const layout = tools.engine.stage({
      name: 'lay out ISO',
      inputs: { base, scan },
      run: (parts) =>
        layOutInstallationIso({
          ...{ ...parts, ignition },
          ...(request.epoch !== undefined && { epoch: request.epoch }),
        }),
    });
    return await pour({ base: await base, layout: await layout }, request, tools);
  } finally {
    await unlock();
  }
}

/** It holds the pull secret: no stage keeps it, no fingerprint shows it. */
function renderIgnition({ config, postScript }: InstallationIsoRequest): string {
  const override = config.ignitionConfigOverride?.reveal();
  const ignition = renderInstallationIgnition({
    settings: config,
    pullSecret: config.pullSecret.reveal(),
    ...(override !== undefined && { ignitionConfigOverride: override }),
    ...(postScript && { postScript }),
  });
  return formatValidIgnition(ignition, 'Ignition config of the installation ISO');
}

/** The live ISO to build on, and where every byte of it is. */
function prepareBase(request: InstallationIsoRequest, tools: BuildTools) {
  const base =
    'release' in request.base
      ? extractBase(request.base.release, request, tools)
      : fetchGiven(request.base, request, tools);
  const scan = tools.engine.stage({
    name: 'scan base ISO',
    inputs: { base },
    isUsable: () => true,
    run: ({ base }) => scanBase(base),
  });
  return { base, scan };
}

/** Out of a release payload, as it does for the live ISO. */
function extractBase(
  url: string,
  { config, workDir }: InstallationIsoRequest,
  { engine, client, cache, http, tls }: BuildTools,
): Promise<BaseIso> {
  const arch = rpmArchitectureOf(config);
  const release = engine.stage({
    name: 'resolve release',
    inputs: { url, arch },
    run: async ({ url, arch }, { signal, onProgress }) =>
      resolveRelease(
        { url, arch, version: ANY_VERSION, channel: '' },
        { client, cache, http, signal, onProgress },
      ),
  });
  return engine.stage({
    name: 'fetch base ISO',
    inputs: { release, arch, workDir },
    isUsable: isKept,
    run: (input, { signal, onProgress }) =>
      fetchBaseIso(input, { client, cache, http, tls, signal, onProgress }),
  });
}

/** `X.Y` asks the update graph only, and that is not consulted for a pullspec. */
const ANY_VERSION = '4.0';

const fetchGiven = (
  given: NamedBaseIso,
  { workDir }: InstallationIsoRequest,
  { engine, http, tls }: BuildTools,
): Promise<BaseIso> =>
  engine.stage({
    name: 'fetch base ISO',
    inputs: { given, workDir },
    run: ({ given, workDir }, { signal, onProgress }) =>
      fetchGivenBaseIso(given, workDir, { http, tls, signal, onProgress }),
  });

const rpmArchitectureOf = ({ architecture }: InstallationConfig): RpmArchitecture =>
  archNames.toRpm(architecture);

/** Brings every byte to its place; checksum and report are there before the ISO's name is. */
function pour(
  { base, layout }: { readonly base: BaseIso; readonly layout: Layout },
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<InstallationIsoReport> {
  const { cache, client, engine } = tools;
  const { output, lanes } = request;
  return engine.stage({
    name: 'pour ISO',
    inputs: {},
    run: async (_inputs, { signal, onProgress, warn }) => {
      const started = performance.now();
      const seal = async (poured: PourResult): Promise<InstallationIsoReport> => {
        const milliseconds = Math.round(performance.now() - started);
        const stages = [...engine.times(), { stage: 'pour ISO', milliseconds, reused: false }];
        const report = { ...describe({ base, layout, poured }, request), stages };
        await sealIso(output, poured.digest, report);
        return report;
      };
      let sealed: Promise<InstallationIsoReport> | undefined;
      const poured = await pourIso({
        ...{ layout, output, signal, lanes },
        mode: 0o600, // the pull secret is on it
        openExtent: createExtentOpener({ base: base.path, blobs: [], cache, client }),
        onProgress: (bytes) => {
          onProgress(bytes, layout.size);
        },
        onStale: () => {
          warn('a partial output of other inputs was found; it is written anew');
        },
        onComplete: async (poured) => {
          sealed = seal(poured);
          await sealed;
        },
      });
      return sealed ?? seal(poured);
    },
  });
}

function describe(
  made: { readonly base: BaseIso; readonly layout: Layout; readonly poured: PourResult },
  { config, output, workDir, postScript }: InstallationIsoRequest,
): Omit<InstallationIsoReport, 'stages'> {
  const { base, layout, poured } = made;
  const { digest, fetched, copied, kept, written, readBack } = poured;
  return {
    format: 1,
    product: 'installation-iso',
    output,
    digest,
    isoSize: layout.size,
    architecture: rpmArchitectureOf(config),
    base: { digest: base.digest, from: base.from, size: base.size },
    seedImage: config.seedImage,
    seedVersion: config.seedVersion,
    installationDisk: config.installationDisk,
    secretsOnMedia: [
      'pullSecret',
      ...(config.sshKey === '' ? [] : ['sshKey (public key of core)']),
      ...(config.ignitionConfigOverride ? ['ignitionConfigOverride (whatever it holds)'] : []),
      ...(postScript ? ['post.sh (whatever it holds)'] : []),
    ],
    bytes: { fetched, copied, kept, written, readBack },
    cache: workDir,
  };
}
