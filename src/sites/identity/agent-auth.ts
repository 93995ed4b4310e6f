import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { AgentAuth } from '../../openshift/agent/image-members.ts';

/*
 * Owns the tokens by which agents, people and watchers are known to the services of one cluster (RFC 7519,
 * RFC 7518 3.4; assisted-service: pkg/auth/agent_local_authenticator.go).
 */

/** Draws a key pair, signs the three tokens, and forgets the private key. The tokens do not expire. */
export function makeAgentAuth(): AgentAuth {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    publicKey: Buffer.from(formatPublicKey(publicKey)).toString('base64'),
    agentToken: signToken('agentAuth', privateKey),
    userToken: signToken('userAuth', privateKey),
    watcherToken: signToken('watcherAuth', privateKey),
  };
}

/** A SubjectPublicKeyInfo under the label that the services look for. */
function formatPublicKey(key: KeyObject): string {
  const lines =
    key
      .export({ type: 'spki', format: 'der' })
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  const label = 'EC PUBLIC KEY';
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}

const HEADER = { alg: 'ES256', typ: 'JWT' };

function signToken(scope: string, key: KeyObject): string {
  const parts = [HEADER, { auth_scheme: scope }].map((part) =>
    Buffer.from(JSON.stringify(part)).toString('base64url'),
  );
  const signed = parts.join('.');
  const signature = sign('sha256', Buffer.from(signed), { key, dsaEncoding: 'ieee-p1363' });
  return `${signed}.${signature.toString('base64url')}`;
}
