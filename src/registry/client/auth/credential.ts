import type { Reference } from '../../reference.ts';

/** `from` names the entry it was read from, for messages; never its value. */
export type Credential =
  | {
      readonly kind: 'basic';
      readonly username: string;
      readonly password: string;
      readonly from: string;
    }
  /** A refresh token, good for a token server only. */
  | { readonly kind: 'identity'; readonly token: string; readonly from: string };

export type CredentialStore = {
  /** What this store has for a repository, the most specific entry first. */
  find: (reference: Reference, signal: AbortSignal) => Promise<Credential | undefined>;
};

/** RFC 7617 2, in UTF-8. */
export const formatBasic = ({
  username,
  password,
}: Pick<Credential & { kind: 'basic' }, 'username' | 'password'>): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
