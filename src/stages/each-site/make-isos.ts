import { basename, join } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { MappedStage } from '../../engine/map-stage.ts';
import {
  composeSite,
  hasOutputs,
  type MadeIso,
  type SiteOutputs,
} from '../../sites/compose/compose.ts';
import type { StateSite } from '../../sites/identity/identity.ts';
import type { Keys } from '../../sites/identity/keys.ts';
import type { RetainedIdentity } from '../../sites/identity/identity.ts';
import type { Site } from '../../sites/site.ts';
import type { FileProblem } from '../../base/errors.ts';
import { findingOfError, isOfOneSite, warnOfFile } from '../../sites/site.ts';
import type { SiteReader } from '../../sites/reader.ts';
import { claimFiles } from '../../sites/state/claim.ts';
import { provideIdentity } from '../../sites/state/provide.ts';
import type { FindRetained } from '../../sites/state/retained.ts';
import type { SiteState } from '../../sites/state/provide.ts';
import { STATE_DIRECTORY, type SitePlaces } from '../../sites/state/generations.ts';
import type { SiteWriter } from '../../sites/state/writer.ts';

/** How it went with one site. */
export type SiteOutcome =
  | {
      readonly kind: 'made' | 'reused';
      readonly made: MadeIso;
      readonly outputs: SiteOutputs;
      /** The rotation that its keys were made in, if any. */
      readonly rotation?: string;
      /** Warnings of what happened while it was made. */
      readonly findings: readonly FileProblem[];
    }
  | { readonly kind: 'failed'; readonly finding: FileProblem };

/** What an ISO is made from; the identity that is on it as well is state. */
type SiteInputs = {
  readonly name: string;
  /** Of the inputs of the site, which `reader` has. */
  readonly digest: Digest;
  /** What an earlier producer left. */
  readonly retained?: RetainedIdentity;
};

type MakeTools = {
  readonly reader: SiteReader;
  readonly keys: Keys;
  readonly writer: SiteWriter;
  readonly stateOf: (name: string) => SiteState;
  readonly findRetained: FindRetained;
};

/** The ISO of a site, and the files beside it. What goes wrong with one site only is its outcome. */
export const makeIsos: MappedStage<
  SiteInputs,
  SiteOutcome,
  MakeTools,
  Omit<SiteInputs, 'retained'>
> = {
  name: 'make ISOs',
  items: 'sites',
  bind: async ({ name, digest }, { findRetained }) => ({
    name,
    digest,
    ...withoutUndefined({ retained: await findRetained(name) }),
  }),
  async run({ name, digest, retained }, { reader, keys, writer, stateOf }, signal) {
    const site = await reader.recall(name, digest);
    const state = stateOf(name);
    const { places, rotation } = state;
    const wish = { ...state, name, site: stateSiteOf(site), retained, keys, signal };
    const provided = await provideIdentity(wish);
    const composed = composeSite(site, { places, provided, retained });
    const { isThere, made, outputs } = composed;
    const remains = isThere ? [] : await claimFiles({ ...state, provided });
    await writer.write(composed);
    const isHashOnly = retained !== undefined && provided.state.identity.password.text === '';
    const findings = [
      ...provided.findings,
      ...tellRemains(places, remains),
      ...(isHashOnly ? [tellNoPassword(places)] : []),
    ];
    const kind = isThere ? 'reused' : 'made';
    return { kind, made, outputs, findings, ...withoutUndefined({ rotation }) };
  },
  reuse(earlier, { name }, { stateOf }) {
    const { places, numbers, use, rotation } = stateOf(name);
    const inUse = numbers.at(-1);
    if (earlier.kind === 'failed' || inUse === undefined || (use ?? inUse) !== inUse) {
      return undefined;
    }
    if (rotation !== undefined && earlier.rotation !== rotation) return undefined;
    if (!hasOutputs(places, earlier.outputs, inUse)) return undefined;
    const made = { ...earlier.made, generation: inUse };
    return { ...earlier, kind: 'reused', made, findings: [] };
  },
  recover(name, error) {
    if (!isOfOneSite(error)) throw error;
    return { kind: 'failed', finding: findingOfError(name, error) };
  },
};

const stateSiteOf = ({ install, imageBased }: Site): StateSite => ({
  clusterName: install.clusterName,
  baseDomain: install.baseDomain,
  ...withoutUndefined({ clusterId: imageBased.clusterId, infraId: imageBased.infraId }),
});

function tellRemains({ iso }: SitePlaces, names: readonly string[]): readonly FileProblem[] {
  if (names.length === 0) return [];
  const moved = names.map((name) => join(STATE_DIRECTORY, name)).join(', ');
  const problem = `was of an identity that ${STATE_DIRECTORY} does not have: what was left of it is now ${moved}`;
  return [warnOfFile(basename(iso), problem)];
}

const tellNoPassword = ({ iso, password }: SitePlaces): FileProblem =>
  warnOfFile(
    basename(iso),
    `has a password of which only the hash is known: ${basename(password)} is empty`,
  );
