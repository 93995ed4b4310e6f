import { ConfigError } from '../../../base/errors.ts';
import type { Carried } from '../answer.ts';
import type { Challenge } from './challenge.ts';
import { formatBasic, type Credential, type CredentialStore } from './credential.ts';
import type { Tokens } from './tokens.ts';
import type { Endpoint } from '../transport.ts';

/** What is wanted of whom, in answer to which challenges. */
type AccessRequest = {
  readonly endpoint: Endpoint;
  /** Where the registry itself answers. */
  readonly base: URL;
  readonly repository: string;
  /** What a token has to allow, as distribution's token specification writes it. */
  readonly scopes: readonly string[];
  readonly challenges: readonly Challenge[];
  readonly signal: AbortSignal;
  /** The Authorization that was refused: not to be sent again. */
  readonly refused: string | undefined;
};

/** `value` of the Authorization header, absent for anonymous. */
export type Access = Carried & { readonly value: string | undefined };

export type Auth = (request: AccessRequest) => Promise<Access>;

/**
 * Answers challenges (distribution's token specification, RFC 7617 Basic). Bearer is preferred, as
 * it keeps the password out of every request. The first store that knows the repository decides.
 */
export function createAuth(stores: readonly CredentialStore[], tokens: Tokens): Auth {
  return async (request) => {
    const credential = await findCredential(stores, request);
    const value = await answer(request, credential, tokens);
    return { value, from: credential?.from, sent: credential !== undefined && value !== undefined };
  };
}

async function findCredential(
  stores: readonly CredentialStore[],
  { endpoint, repository, signal }: AccessRequest,
): Promise<Credential | undefined> {
  for (const store of stores) {
    const found = await store.find({ registry: endpoint.host, repository }, signal);
    if (found) return found;
  }
  return undefined;
}

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
