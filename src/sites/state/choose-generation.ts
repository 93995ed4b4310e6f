import { ConfigError } from '../../base/errors.ts';
import {
  fitsSite,
  isSameSite,
  type IdentityState,
  type StateSite,
} from '../identity/identity-state.ts';
import type { RetainedIdentity } from '../identity/retained/retain-identity.ts';
import type { SiteIdentity } from '../identity/site-identity.ts';
import type { Generation } from './generations.ts';

/** What an identity is wanted for. */
export type GenerationWish = {
  readonly name: string;
  readonly site: StateSite;
  readonly retained?: RetainedIdentity | undefined;
  /** Number that the user asks for. */
  readonly use?: number | undefined;
  /** The rotation that the site takes part in. */
  readonly rotation?: string | undefined;
};

export type WholeGeneration = Generation & { readonly state: IdentityState };

/**
 * The generation to be used again, or undefined for a new one: that of the same names and given ids,
 * else one that fits them, of several the one used last.
 *
 * @param generations in the order of their use
 * @throws ConfigError `config-iso.generation` when the one that is asked for cannot be used
 */
export function chooseGeneration(
  generations: readonly Generation[],
  wish: GenerationWish,
): WholeGeneration | undefined {
  if (wish.use !== undefined) return findWanted(generations, wish.use, wish);
  const usable = generations.filter(
    (one): one is WholeGeneration =>
      one.state !== undefined &&
      fitsSite(one.state, wish.site) &&
      holds(one.state.identity, wish.retained),
  );
  if (wish.rotation !== undefined) {
    const last = usable.at(-1);
    return last?.state.rotation === wish.rotation ? last : undefined;
  }
  return usable.findLast(({ state }) => isSameSite(state.site, wish.site)) ?? usable.at(-1);
}

function findWanted(
  generations: readonly Generation[],
  number: number,
  { name, site, retained }: GenerationWish,
): WholeGeneration {
  const found = generations.find((one) => one.number === number);
  const hint = `list them with "sealift config-iso generations ${name}"`;
  if (!found) {
    throw new ConfigError('config-iso.generation', `${name} has no generation ${number}`, {
      expected: generations.map((one) => one.number).join(', ') || 'none: it has no generation',
      found: String(number),
      hint,
    });
  }
  const { state } = found;
  if (!state) {
    const message = `generation ${number} of ${name} is damaged`;
    throw new ConfigError('config-iso.generation', message, { hint });
  }
  if (!fitsSite(state, site)) {
    const message = `generation ${number} of ${name} is of another cluster than the inputs`;
    throw new ConfigError('config-iso.generation', message, {
      expected: describe(site),
      found: describe({ ...state.site, ...idsOf(state.identity) }),
      hint: 'give the inputs of that generation, or choose another',
    });
  }
  if (holds(state.identity, retained)) return { number, state };
  const message = `generation ${number} of ${name} is not what --retain-from has`;
  throw new ConfigError('config-iso.generation', message, { hint: 'leave out one of the two' });
}

const idsOf = ({ clusterId, infraId }: SiteIdentity): Pick<StateSite, 'clusterId' | 'infraId'> => ({
  clusterId,
  infraId,
});

const describe = ({ clusterName, baseDomain, clusterId, infraId }: StateSite): string =>
  [
    `${clusterName}.${baseDomain}`,
    ...(clusterId === undefined ? [] : [`cluster id ${clusterId}`]),
    ...(infraId === undefined ? [] : [`infra id ${infraId}`]),
  ].join(', ');

/** Whether all that an earlier producer left is in the identity already. */
function holds(identity: SiteIdentity, retained: RetainedIdentity | undefined): boolean {
  if (!retained) return true;
  const { signers, signerKeys, clusterId, infraId, password, ingressCommonName } = retained;
  return (
    (retained.whole === undefined || holdsWhole(identity, retained.whole)) &&
    Object.entries(signers).every(
      ([name, { certificate }]) =>
        identity.signers[name as keyof typeof signers].certificate === certificate,
    ) &&
    Object.entries(signerKeys).every(
      ([name, key]) => identity.signers[name as keyof typeof signers].privateKey === key,
    ) &&
    isUnsetOr(clusterId, identity.clusterId) &&
    isUnsetOr(infraId, identity.infraId) &&
    isUnsetOr(password?.bcrypt, identity.password.bcrypt) &&
    isUnsetOr(ingressCommonName, identity.signers.ingress.commonName)
  );
}

/** Whether an identity is another one, or more than that: a key or a password may be unknown there. */
export function holdsWhole(identity: SiteIdentity, whole: SiteIdentity): boolean {
  const names = Object.keys(whole.signers) as (keyof SiteIdentity['signers'])[];
  return (
    names.every((name) => {
      const { certificate, privateKey } = whole.signers[name];
      const found = identity.signers[name];
      return found.certificate === certificate && isUnsetOr(privateKey, found.privateKey);
    }) &&
    identity.adminClient.certificate === whole.adminClient.certificate &&
    (whole.password.text === '' || identity.password.text === whole.password.text)
  );
}

const isUnsetOr = (wanted: string | undefined, found: string | undefined): boolean =>
  wanted === undefined || wanted === found;
