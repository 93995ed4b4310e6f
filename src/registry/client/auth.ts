import { ConfigError, RegistryError, type SealiftError } from '../../base/errors.ts';
import { formatBasic } from '../../base/http/basic.ts';
import type { Carried, Challenge } from './answer.ts';
import { hasLineBreak, type Credential } from './credential-helper.ts';
import { isHelperFailure, type CredentialStore } from './credentials.ts';
import type { Tokens } from './tokens.ts';
import type { Endpoint } from './transport.ts';

/** The access wanted from a registry, and the challenges to answer. */
type AccessRequest = {
  readonly endpoint: Endpoint;
  /** Address of the registry itself. */
  readonly base: URL;
  readonly repository: string;
  /** Scopes that a token must allow, as distribution's token specification writes them. */
  readonly scopes: readonly string[];
  readonly challenges: readonly Challenge[];
  readonly signal: AbortSignal;
  /** The Authorization that was refused: not to be sent again. */
  readonly refused: string | undefined;
};

/** `value` of the Authorization header; undefined for an anonymous request. */
export type Access = Carried & { readonly value: string | undefined };

export type RegistryAuth = (request: AccessRequest) => Promise<Access>;

/**
 * Answers challenges (distribution's token specification, RFC 7617 Basic). Bearer is preferred, as
 * it keeps the password out of every request. The first store that knows the repository decides. After
 * its answer was refused, it is asked again, once.
 */
export function createRegistryAuth(
  stores: readonly CredentialStore[],
  tokens: Tokens,
): RegistryAuth {
  const access = async (
    request: AccessRequest,
    { credential, failure }: Found,
  ): Promise<Access> => {
    const value = await answer(request, credential, tokens).catch((error: unknown) => {
      throw refusesAccess(error) && failure ? failure : error;
    });
    const asked = request.challenges.length > 0;
    const from = credential?.from;
    const sent = from !== undefined && value !== undefined;
    return { value, asked, from, sent, failure, isBroken: hasLineBreak(credential) };
  };
  return async (request) => {
    const found = await findCredential(stores, request);
    const renew = () => findCredential(stores, request, found.credential);
    if (isRefused(request, found)) return access(request, await renew());
    try {
      return await access(request, found);
    } catch (error) {
      if (!refusesAccess(error) || !found.credential) throw error;
      const next = await renew();
      if (next.credential === found.credential) throw error;
      return access(request, next);
    }
  };
}

type Found = {
  readonly credential?: Credential | undefined;
  readonly failure?: SealiftError;
};

async function findCredential(
  stores: readonly CredentialStore[],
  { endpoint, repository, challenges, signal }: AccessRequest,
  refused?: Credential,
): Promise<Found> {
  if (challenges.length === 0) return {}; // a helper may open a window: only if it is needed
  try {
    for (const store of stores) {
      const credential = await store.find({ registry: endpoint.host, repository }, signal, refused);
      if (credential) return { credential };
    }
    return {};
  } catch (failure) {
    signal.throwIfAborted();
    if (isHelperFailure(failure)) return { failure };
    throw failure;
  }
}

const isRefused = ({ refused }: AccessRequest, { credential }: Found): boolean =>
  credential?.kind === 'basic' && refused === formatBasic(credential);

/** True if a registry refused the credential, or asked for one. */
export const refusesAccess = (error: unknown): boolean =>
  error instanceof RegistryError &&
  ['registry.unauthorized', 'registry.forbidden'].includes(error.code);

async function answer(
  request: AccessRequest,
  credential: Credential | undefined,
  tokens: Tokens,
): Promise<string | undefined> {
  const { challenges, endpoint, base, repository, scopes, signal, refused } = request;
  const challenge = challenges.find(({ scheme }) => scheme === 'bearer');
  if (challenge) {
    const shared = { endpoint, base, repository, scopes, signal, challenge, credential };
    return `Bearer ${await tokens.get({ ...shared, refused: refused?.replace(/^Bearer /, '') })}`;
  }
  const basic = challenges.find(({ scheme }) => scheme === 'basic');
  if (!basic || !credential) return undefined;
  if (credential.kind === 'basic') return formatBasic(credential);
  throw new ConfigError(
    'credentials.unusable',
    `${endpoint.host} asks for a password, but "${credential.from}" is an identity token`,
    { hint: `log in again with "podman login ${endpoint.host}"` },
  );
}
