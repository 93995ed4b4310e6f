// @ts-check
// A thread that makes RSA keys and hashes passwords, one order at a time. Plain JavaScript: a worker
// is loaded by file, and Node 20 cannot load TypeScript.
import { generateKeyPairSync } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { encodeBase64, hashSync } from 'bcryptjs';

/** @typedef {{ op: 'key' } | { op: 'hash', text: string, salt: Uint8Array }} Order */

/** The cost that openshift-install uses. */
const BCRYPT_COST = 10;

/** @param {Order} order */
function obey(order) {
  return order.op === 'key' ? makeKey() : hashPassword(order.text, order.salt);
}

function makeKey() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicExponent: 0x10001,
  });
  const pem = privateKey.export({ type: 'pkcs1', format: 'pem' });
  return { privateKey: pem, publicKey, signingKey: privateKey };
}

/** @param {string} text @param {Uint8Array} salt */
function hashPassword(text, salt) {
  return hashSync(text, `$2a$${BCRYPT_COST}$${encodeBase64([...salt], salt.length)}`);
}

parentPort?.on('message', (/** @type {Order} */ order) => {
  parentPort?.postMessage(obey(order));
});
