import { join } from 'node:path';
import { IntegrityError } from '../../base/errors.ts';
import { append } from '../../base/lists.ts';
import { toPrintable } from '../../base/text/words.ts';
import type { Stage, StageContext } from '../../engine/index.ts';
import { readCatalog } from '../../fbc/index.ts';
import { extractCatalog, openCatalogImage } from '../../openshift/catalog/image.ts';
import type { ImageTools } from '../../openshift/images.ts';
import {
  type AbsentImage,
  describeAbsence,
  findAbsent,
  listCatalogNames,
  type NamedImage,
  shelfOf,
} from '../../openshift/mirror/closure.ts';
import type { MirrorPlan, PlannedImage } from '../../openshift/mirror/plan.ts';
import { createNodeLookup } from '../../openshift/node/lookup.ts';
import { platformOf, type RpmArchitecture } from '../../openshift/release/bundle.ts';
import { requireLocalBlobs } from '../../openshift/workspace/local-blobs.ts';
import type { SurveyedWorkspace } from '../../openshift/workspace/set.ts';

export type CheckCompleteInput = {
  readonly plan: MirrorPlan;
  readonly workspace: SurveyedWorkspace;
  readonly arch: RpmArchitecture;
  /** True if absent images are only warned of. */
  readonly allowIncomplete: boolean;
};

export type CheckCompleteTools = Pick<ImageTools, 'client' | 'cache'> & {
  readonly workDir: string;
};

/** Number of images named in the error; the others are counted. */
const MOST_NAMED = 50;

/**
 * Finds the images that a workspace's catalogs name and that its medium would not have where nodes
 * look for them: oc-mirror writes its resources after a partial mirror, too. Other images of a
 * plan are there, because the plan has their manifests; the files of their blobs are looked for.
 */
export const checkComplete: Stage<CheckCompleteInput, readonly AbsentImage[], CheckCompleteTools> =
  {
    name: 'check completeness',
    async run({ plan, workspace, arch, allowIncomplete }, { workDir, ...tools }, context) {
      await requireLocalBlobs(plan, tools);
      const directory = join(workDir, 'cache', 'catalogs');
      const named: NamedImage[] = [...workspace.named];
      for (const catalog of plan.images.filter(({ kind }) => kind === 'catalog')) {
        append(named, await readNames(catalog, arch, { ...tools, ...context, directory }));
      }
      const absent = findAbsent(named, {
        look: createNodeLookup(plan.mirrors),
        shelf: shelfOf(plan),
        leftOut: plan.blocked.map(({ image }) => image),
      });
      if (absent.length === 0) return [];
      const text = describeAbsent(absent, workspace);
      if (!allowIncomplete) throw incomplete(absent, text);
      context.warn(text);
      return absent;
    },
  };

type Tools = ImageTools & StageContext & { readonly directory: string };

async function readNames(
  { name, source }: PlannedImage,
  arch: RpmArchitecture,
  tools: Tools,
): Promise<readonly NamedImage[]> {
  const image = await openCatalogImage(tools, source, platformOf(arch));
  const directory = await extractCatalog(tools, image, tools.directory);
  const catalog = await readCatalog(directory, { name, signal: tools.signal });
  return listCatalogNames(catalog, name);
}

function describeAbsent(
  absent: readonly AbsentImage[],
  { failures }: Pick<SurveyedWorkspace, 'failures'>,
): string {
  const lines = absent.slice(0, MOST_NAMED).flatMap((one) => {
    const said = failures.find((line) => line.includes(one.image));
    return [
      `${one.image} ${describeAbsence(one)}`,
      ...(said === undefined ? [] : [`  oc-mirror said: ${shorten(said)}`]),
    ];
  });
  const rest = absent.length - MOST_NAMED;
  const count = absent.length === 1 ? '1 image is' : `${absent.length} images are`;
  return [
    `the mirror is incomplete: ${count} named by its catalogs and not where nodes look`,
    ...lines,
    ...(rest > 0 ? [`and ${rest} more`] : []),
  ].join('\n');
}

/** A line repeats the reference after each colon; its end has the cause. */
const shorten = (line: string): string => {
  const text = toPrintable(line);
  return text.length <= 300 ? text : `${text.slice(0, 100)} ... ${text.slice(-200)}`;
};

const incomplete = (absent: readonly AbsentImage[], text: string): IntegrityError =>
  new IntegrityError('mirror.incomplete', text, {
    expected: 'every image that a catalog names',
    found: `${absent.length} missing`,
    hint: 'run oc-mirror again until it ends with 0; or build without these images with --allow-incomplete',
  });
