import { readFileSync } from 'node:fs';
import { cp } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import type { ConfigIsoWorld } from './config-iso-world.ts';
import type { KeyRing } from './site-identity.ts';

export type ExportedResource = Readonly<Record<string, unknown>> & {
  readonly kind: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
};

const NAMES = ['alpha', 'm0.example.com', 'm1.example.com', 'm2.example.com'];

/** A table of controllers for the hosts of all tests. */
export const HOST_TABLE = [
  'host,bmcAddress,bmcUsername,bmcPassword',
  ...NAMES.map(
    (host, index) => `${host},redfish+https://192.0.2.${200 + index}/redfish/v1,root,word${index}`,
  ),
  '',
].join('\n');

const RELEASE = ['--cluster-image-set', 'img4.21.3', '--hosts', 'hosts.csv'];
export const AS_INSTANCE = ['--as', 'clusterinstance', ...RELEASE];
export const AS_HOSTS = ['--as', 'bmh', ...RELEASE];

/** The resources of an exported file. */
export const readResources = (world: ConfigIsoWorld, path: string): readonly ExportedResource[] =>
  parseAllDocuments(readFileSync(world.at(path), 'utf8')).map(
    (document) => document.toJS() as ExportedResource,
  );

export function findResource(world: ConfigIsoWorld, path: string, kind: string): ExportedResource {
  const found = readResources(world, path).find((each) => each.kind === kind);
  if (!found) throw new Error(`${path} has no ${kind}`);
  return found;
}

type Again = { readonly from: string; readonly to: string; readonly medium?: string };

/** Builds the only site of `from` with the identities of the build in `out`, and returns its ISO. */
export async function buildAgain(
  { world, keys }: { readonly world: ConfigIsoWorld; readonly keys: KeyRing },
  { from, to, ...more }: Again,
): Promise<Buffer> {
  await cp(world.at('out'), world.at(to), { recursive: true });
  const { failed, sites } = await world.build(keys, { sites: from, out: to, ...more });
  const [site] = sites;
  if (failed.length > 0 || !site) throw new Error(JSON.stringify(failed));
  return readFileSync(world.at(to, site.iso));
}
