import { checkIgnition, type IgnitionConfig } from '../../ignition/index.ts';
import { BOOTSTRAP_IMAGE_PATH } from '../media-index.ts';
import type { PlayedMedium } from './played-medium.ts';
import { cannotKnow, type RehearsedStep, unlessAny, willNot } from './step.ts';
import { rehearseUnits, type UnitJudging } from './units.ts';

const PART = 'ignition';

/** Each config, then the merged one: valid configs of system and user may be invalid together. */
export async function rehearseIgnition(
  { configs, live, index }: PlayedMedium,
  judging: UnitJudging,
): Promise<readonly RehearsedStep[]> {
  const steps = configs.flatMap(({ name, config, problem }) => {
    if (problem !== undefined) {
      return [willNot(PART, `Ignition reads the ${name}`, { reason: problem, place: name })];
    }
    if (config === undefined) return explainMissing(name, index?.product);
    return unlessAny(
      PART,
      `Ignition takes the ${name}`,
      checkIgnition(config, name).map((found) => ({
        reason: `${found.path ?? '$'}: ${found.problem}`,
        place: name,
      })),
    );
  });
  if (live === undefined) return steps;
  const own = new Set(configs.flatMap(({ config }) => (config ? list(config) : [])));
  const merged = list(live).filter((problem) => !own.has(problem));
  return [
    ...steps,
    ...unlessAny(
      PART,
      'Ignition merges the configs',
      merged.map((reason) => ({ reason })),
    ),
    ...(await rehearseUnits(
      live,
      { part: PART, name: 'systemd starts the units of the configs' },
      judging,
    )),
  ];
}

const list = (config: IgnitionConfig): readonly string[] =>
  checkIgnition(config, '').map(({ problem }) => problem);

/** Live ISOs of ours always have a bootstrap config, those of other makers do not. */
function explainMissing(name: string, product: string | undefined): readonly RehearsedStep[] {
  if (product !== 'live-iso') return [];
  return name.startsWith('bootstrap')
    ? [
        willNot(PART, `Ignition reads the ${name}`, {
          reason: `${BOOTSTRAP_IMAGE_PATH} is not on the medium, or has no config`,
          place: BOOTSTRAP_IMAGE_PATH,
        }),
      ]
    : [
        cannotKnow(PART, 'Ignition gets a config of the installer', {
          reason: 'the embed area of the medium is empty: a config must come from elsewhere',
        }),
      ];
}
