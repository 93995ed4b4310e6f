/** Public keys of SSH, and X.509 certificates in PEM: read and judged as their consumers read them. */

export { readPem, type PemBlock, type PemReading } from './pem.ts';
export { readSshKeys } from './ssh.ts';
export {
  explainBundle,
  explainRoots,
  hasRoots,
  readTrustBundle,
  warnOfBundle,
  warnOfRoots,
} from './bundle.ts';
