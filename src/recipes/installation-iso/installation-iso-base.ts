import type { BaseIso, GivenBaseIso } from '../../openshift/files/given-iso.ts';
import type { Release } from '../../openshift/release/release-payload.ts';
import { fetchBaseIso } from '../../stages/fetch-base-iso.ts';
import { readCoreosStream, type CoreosStream } from '../../stages/read-coreos-stream.ts';
import { takeBaseIso } from '../../stages/take-base-iso.ts';
import type { BuildTools } from '../build-tools.ts';
import { architectureOf } from './installation-iso-images.ts';
import type { InstallationIsoRequest } from './installation-iso-request.ts';

/** The live ISO to build on: the one that is named, or that of the release. */
export function findBase(
  { base, config }: InstallationIsoRequest,
  { engine }: BuildTools,
  release: Promise<Release> | undefined,
): Promise<BaseIso> {
  const arch = architectureOf(config);
  if (base !== undefined) {
    const given = isStream(base) ? engine.run(readCoreosStream, { stream: base, arch }) : base;
    return engine.run(takeBaseIso, { given });
  }
  if (release === undefined) throw new Error('a request names a live ISO or a release');
  return engine.run(fetchBaseIso, { release });
}

const isStream = (base: GivenBaseIso | CoreosStream): base is CoreosStream =>
  'streamFile' in base || 'streamUrl' in base;
