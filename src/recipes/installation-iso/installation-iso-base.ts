import type { Release } from '../../openshift/release/release-payload.ts';
import {
  fetchBaseIso,
  fetchGivenBaseIso,
  type BaseIso,
  type GivenBaseIso,
} from '../../stages/fetch-base-iso.ts';
import { readCoreosStream, type CoreosStream } from '../../stages/read-coreos-stream.ts';
import { scanBase } from '../../stages/scan-base.ts';
import type { BuildTools } from '../build-tools.ts';
import { isKept } from '../kept.ts';
import { architectureOf } from './installation-iso-images.ts';
import type { InstallationIsoRequest } from './installation-iso-request.ts';

/** The live ISO to build on, and where every byte of it is. */
export function prepareBase(
  request: InstallationIsoRequest,
  tools: BuildTools,
  release: Promise<Release> | undefined,
) {
  const base =
    request.base === undefined
      ? extractBase(request, tools, release)
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
  { config, workDir }: InstallationIsoRequest,
  { engine, client, cache, http, tls }: BuildTools,
  release: Promise<Release> | undefined,
): Promise<BaseIso> {
  if (release === undefined) throw new Error('a request names a live ISO or a release');
  return engine.stage({
    name: 'fetch base ISO',
    inputs: { release, arch: architectureOf(config), workDir },
    isUsable: isKept,
    run: (input, { signal, onProgress }) =>
      fetchBaseIso(input, { client, cache, http, tls, signal, onProgress }),
  });
}

function fetchGiven(
  base: GivenBaseIso | CoreosStream,
  request: InstallationIsoRequest,
  tools: BuildTools,
): Promise<BaseIso> {
  const { workDir } = request;
  const { engine, http, tls } = tools;
  const given = 'file' in base || 'url' in base ? base : readStream(base, request, tools);
  return engine.stage({
    name: 'fetch base ISO',
    inputs: { given, workDir },
    run: ({ given, workDir }, { signal, onProgress }) =>
      fetchGivenBaseIso(given, workDir, { http, tls, signal, onProgress }),
  });
}

/** What a stream names changes with the next build of CoreOS: it is asked each time. */
const readStream = (
  stream: CoreosStream,
  { config }: InstallationIsoRequest,
  { engine, http, tls }: BuildTools,
): Promise<GivenBaseIso> =>
  engine.stage({
    name: 'read CoreOS stream',
    inputs: { stream, arch: architectureOf(config) },
    run: (input, { signal }) => readCoreosStream(input, { http, tls, signal }),
  });
