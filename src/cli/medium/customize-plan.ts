import { IntegrityError } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import type { IsoImage } from '../../iso/index.ts';
import { overlayRead, type OverlayPart } from '../../media/areas.ts';
import type { GivenImage } from '../../media/customize/config-image.ts';
import { isKargsAlone } from '../../media/customize/kargs.ts';
import { type CustomisationOptions, planCustomisation } from '../../media/customize/plan.ts';
import { planDropped, planReset, type ResetTo } from '../../media/customize/reset.ts';
import { type Customisation, hasSecrets, readCustomisation } from '../../media/customize/read.ts';
import type { PlannedParts } from '../../media/customize/write.ts';
import { readMedium } from '../../media/medium.ts';
import type { CustomValues } from '../../openshift/agent/values.ts';
import type { CliHost } from '../host.ts';
import { writeMessage } from '../terminal/output.ts';
import { describeRendezvous } from './customize-result.ts';

/* This file owns what `customize` changes on an ISO, and the notes about the ISO that results. */

export type Plan = (iso: IsoImage) => Promise<PlannedParts>;

/** Undefined members are as absent ones: they come from the command line. */
type PlanOptions = {
  readonly reset: ResetTo | undefined;
  readonly force: boolean;
  readonly dropBuilt: boolean;
  readonly image: GivenImage | undefined;
};

export const createPlan =
  (values: CustomValues, { reset, force, dropBuilt, image }: PlanOptions, host: CliHost): Plan =>
  async (iso) => {
    const warn = (text: string): void => {
      writeMessage(host, `warning: ${text}\n`);
    };
    const adding = { reset, dropBuilt, add: force, warn, ...withoutUndefined({ image }) };
    const parts = await planParts(iso, values, adding);
    const changed = { ...iso, readBytes: overlayRead(iso.readBytes, parts) };
    const found = await readChanged(changed, values);
    if (found?.builtSecrets === true) writeMessage(host, COPY_NOTE);
    if (image) warn(KEYS);
    const { problem } = found?.configImage ?? {};
    if (problem !== undefined) warn(`the ISO ${problem}`);
    noteRendezvous(found, values, host);
    // Only arguments change, and the embedded config cannot be read.
    return { parts, isPrivate: found === undefined || hasSecrets(found) };
  };

/** Says which host became the rendezvous host, if no person chose it. */
function noteRendezvous(
  found: Customisation | undefined,
  { hosts = [], rendezvousIp }: CustomValues,
  host: CliHost,
): void {
  const chosen = found && describeRendezvous(found.ignition);
  if (chosen === undefined || hosts.length === 0 || rendezvousIp !== undefined) return;
  writeMessage(host, `note: the rendezvous IP is ${chosen}; --rendezvous-ip chooses another\n`);
}

const KEYS =
  'the ISO holds the private keys and the pull secret of its cluster: keep it as secret as the configuration image';

const COPY_NOTE =
  'note: the ISO keeps a copy of what its build left, which holds a secret; --drop-built overwrites the copy\n';

/** Reads the values of the changed ISO; undefined if only arguments change, and the config cannot be read. */
async function readChanged(
  iso: IsoImage,
  values: CustomValues,
): Promise<Customisation | undefined> {
  try {
    return await readCustomisation(iso);
  } catch (error) {
    if (error instanceof IntegrityError && isKargsAlone(values)) return undefined;
    throw error;
  }
}

type PartOptions = CustomisationOptions & { readonly reset: ResetTo | undefined };

async function planParts(
  iso: IsoImage,
  values: CustomValues,
  { reset, ...options }: PartOptions,
): Promise<readonly OverlayPart[]> {
  if (reset) return planReset(iso, reset);
  const isEmpty = Object.keys(values).length === 0 && !options.image;
  const isDropOnly = options.dropBuilt === true && isEmpty;
  return isDropOnly ? planDropped(await readMedium(iso)) : planCustomisation(iso, values, options);
}
