import type { DocumentProblem } from '../../base/errors.ts';
import { isObject } from '../../base/lists.ts';
import { findMember } from '../../shape/decode-yaml.ts';
import { type MadeValue, readPath, type WrittenPlace } from '../../shape/document.ts';
import { readJsonText, TYPED_JSON } from '../../shape/json-text.ts';
import { LEFT_OUT, partial, type Plain, TEXT } from '../../shape/shape.ts';
import type { SiteFile } from '../site.ts';
import { type FoundResource, readFound, readResourceTexts, type ResourceIndex } from './find.ts';

/* Owns what a resource refers to: Secrets, ConfigMaps of manifests, and texts of install-config. */

/** A place that refers to others, and where its problems are gathered. */
export type Referrer = {
  readonly index: ResourceIndex;
  readonly problems: DocumentProblem[];
};

const PULL_SECRET = '.dockerconfigjson';

/** The text of a pull secret; reports a problem if it is missing. */
export function findPullSecret(
  { index, problems }: Referrer,
  { document, path }: WrittenPlace,
  name: string,
): string | undefined {
  const secret = index.find('Secret', name);
  const text = secret && readResourceTexts(secret).get(PULL_SECRET);
  if (text !== undefined) return text;
  const why = secret
    ? `Secret "${name}" of ${secret.file.shownAs} has no ${PULL_SECRET}`
    : explainAbsent(index, name);
  problems.push(document.report(path, why, { hint: `add a file with the Secret "${name}"` }));
  return undefined;
}

function explainAbsent({ find }: ResourceIndex, name: string): string {
  const sealed = find('SealedSecret', name) ?? find('ExternalSecret', name);
  return sealed
    ? `${sealed.kind} "${name}" of ${sealed.file.shownAs} is not readable here: only a cluster opens it`
    : `Secret "${name}" is not among the files of the site`;
}

const IMAGE_SET = partial({ spec: partial({ releaseImage: TEXT }, LEFT_OUT) }, LEFT_OUT);

/** The release image of a ClusterImageSet; undefined if it is not among the resources. */
export function findSetImage({ find }: ResourceIndex, name = ''): string | undefined {
  const set = find('ClusterImageSet', name);
  return set && readFound(set, IMAGE_SET).value.spec?.releaseImage;
}

/** References to ConfigMaps, each with its place. */
type MapReference = { readonly place: WrittenPlace; readonly name: string };

/** The texts of ConfigMaps as files of a folder. */
export function listManifests(
  { index, problems }: Referrer,
  references: readonly MapReference[],
  folder: string,
): readonly SiteFile[] {
  const seen = new Set<string>();
  return references.flatMap(({ place: { document, path }, name }) => {
    const report = (why: string): number => problems.push(document.report(path, why));
    const map: FoundResource | undefined = index.find('ConfigMap', name);
    if (!map) {
      report(`ConfigMap "${name}" is not among the files of the site`);
      return [];
    }
    return [...readResourceTexts(map)].flatMap(([key, text]) => {
      const isSafe = /^[-._a-zA-Z0-9]+$/.test(key) && !/^\.+$/.test(key);
      if (seen.has(key)) report(`key "${key}" is in another ConfigMap, too`);
      else if (!isSafe) report(`key "${key}" is not the name of a file`);
      seen.add(key);
      const shownAs = `${map.file.shownAs}#${key}`;
      return isSafe ? [{ path: `${folder}/${key}`, bytes: Buffer.from(text), shownAs }] : [];
    });
  });
}

type Overrides = {
  readonly members: Readonly<Record<string, unknown>>;
  /** The fault of the text. */
  readonly why?: string;
};

export const NO_OBJECT = 'is not a JSON object';

/** Members of install-config in a JSON text, which may be empty. */
export function parseOverrides(text: string): Overrides {
  if (text === '') return { members: {} };
  const read = readJsonText(text, TYPED_JSON);
  if (read.why !== undefined) return { members: {}, why: read.why };
  return isObject(read.value) ? { members: read.value } : { members: {}, why: NO_OBJECT };
}

/** Objects member by member, in any case of their names, as Go reads them; anything else is replaced. */
export const mergeMembers = (under: unknown, over: unknown): unknown =>
  isObject(under) && isObject(over)
    ? {
        ...under,
        ...Object.fromEntries(
          Object.entries(over).map(([key, value]) => {
            const own = findMember(under, key);
            return [own ?? key, mergeMembers(own === undefined ? undefined : under[own], value)];
          }),
        ),
      }
    : over;

/** Places values of overrides at the overrides, and others where another function says. */
export const placeOverridden =
  (
    members: Overrides['members'],
    overrides: WrittenPlace,
    placeOf: MadeValue['placeOf'],
  ): MadeValue['placeOf'] =>
  (path) =>
    path !== '' && readPath(members as Plain, path) !== undefined ? overrides : placeOf(path);

/** Hubs take an empty proxy as none. */
export const keepProxy = <Proxy extends object>(proxy?: Proxy): Proxy | undefined =>
  proxy && Object.values(proxy).some((text) => text !== '') ? proxy : undefined;
