import { withoutUndefined } from '../base/lists.ts';
import { type IgnitionConfig, mergeConfigs, parseResolved } from '../ignition/index.ts';
import { lacksEmbedArea } from '../iso/index.ts';
import type { IsoImage } from '../iso/index.ts';
import { attempt, readBootstrapIgnition, readEmbeddedIgnition } from './open.ts';

/* The configs of a medium that Ignition merges for its live system. */

/** A config of the medium, by the place from which Ignition takes it. */
export type MediumConfig = {
  readonly name: string;
  /** Absent if the medium lacks the config, or if it cannot be read. */
  readonly config?: IgnitionConfig;
  readonly problem?: string;
};

export const EMBEDDED_CONFIG = 'embedded Ignition config';

/** Reads the configs of a medium, that of lowest precedence first. */
export const readMediumConfigs = async (iso: IsoImage): Promise<readonly MediumConfig[]> => [
  await readConfig('bootstrap Ignition config', () => readBootstrapIgnition(iso)),
  await readConfig(EMBEDDED_CONFIG, () => readEmbedded(iso)),
];

/** Undefined without any. */
export function mergeMediumConfigs(configs: readonly MediumConfig[]): IgnitionConfig | undefined {
  const [first, ...others] = configs.flatMap(({ config }) => config ?? []);
  return first && others.reduce(mergeConfigs, first);
}

/** An ISO without an embed area has no config, which the boot reports. */
async function readEmbedded(iso: IsoImage): Promise<string | undefined> {
  try {
    return await readEmbeddedIgnition(iso);
  } catch (error) {
    if (lacksEmbedArea(error)) return undefined;
    throw error;
  }
}

async function readConfig(
  name: string,
  read: () => Promise<string | undefined>,
): Promise<MediumConfig> {
  const { value: config, problem } = await attempt(async () => {
    const text = await read();
    return text === undefined ? undefined : parseResolved(text, name);
  });
  return { name, ...withoutUndefined({ config, problem }) };
}
