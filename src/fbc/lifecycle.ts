import { groupBy } from '../base/lists.ts';
import { decodeJson, JSON_RULES } from '../shape/decode.ts';
import { FILLED, LEFT_OUT, list, matching, optional, record, type TypeOf } from '../shape/shape.ts';
import { describeFinding } from '../shape/words.ts';
import type { Catalog } from './catalog.ts';
import { encodeDocument } from './edit.ts';
import { readDocuments } from './read/read-catalog.ts';

const SCHEMA = 'io.openshift.operators.lifecycles.v1alpha1';

const DAY = matching(/^\d{4}-\d{2}-\d{2}$/);

const LIFECYCLE = record(
  {
    versions: list(
      record(
        {
          name: FILLED,
          phases: list(record({ name: FILLED, startDate: DAY, endDate: DAY }, LEFT_OUT)),
          platformCompatibility: optional(
            list(record({ name: FILLED, versions: list(FILLED) }, LEFT_OUT)),
          ),
        },
        LEFT_OUT,
      ),
    ),
  },
  LEFT_OUT,
);

/**
 * A minor version of an operator: its phases of support with their first and last day, and the platforms that its
 * maker made it for; absent if the maker does not name any.
 */
export type LifecycleVersion = TypeOf<typeof LIFECYCLE>['versions'][number];

/** The minor versions of an operator, or the reason why its metadata cannot be used. */
export type Lifecycle =
  | { readonly versions: readonly LifecycleVersion[]; readonly problem?: undefined }
  | { readonly problem: string };

/** By package; packages without metadata are absent. */
export type Lifecycles = ReadonlyMap<string, Lifecycle>;

/**
 * Reads the lifecycle metadata in a catalog (openshift/enhancements, `olm/lifecycle-and-compatibility.md`). Several
 * documents for a package count only if they are equal: the web console then uses none of them.
 *
 * @param directory the directory that the catalog was read from
 * @throws IntegrityError `catalog.changed`
 */
export async function readLifecycles(directory: string, catalog: Catalog): Promise<Lifecycles> {
  const documents = groupBy(
    catalog.others.filter(({ schema }) => schema === SCHEMA),
    (document) => document.package ?? '',
  );
  const lifecycles = new Map<string, Lifecycle>();
  for (const [name, own] of documents) {
    const texts = new Set<string>();
    await readDocuments(
      directory,
      own.map(({ place }) => place),
      (bytes, place) => void texts.add(encodeDocument(bytes, place, undefined).toString('utf8')),
    );
    lifecycles.set(name, parseLifecycle([...texts]));
  }
  return lifecycles;
}

function parseLifecycle([text = '', ...others]: readonly string[]): Lifecycle {
  if (others.length > 0) return { problem: `${others.length + 1} documents contradict each other` };
  const { value, findings } = decodeJson(LIFECYCLE, text, JSON_RULES);
  const [finding] = findings;
  if (finding) return { problem: describeFinding(finding, 'the document') };
  return { versions: value?.versions ?? [] };
}
