/** Ignition configurations of specification 3, and the initrd images that carry them. */

// Configurations.
export {
  IGNITION_VERSION,
  decodeFileContent,
  formatIgnition,
  parseIgnition,
  textFile,
} from './config.ts';
export type { File, IgnitionConfig, Unit, User } from './config.ts';
export { mergeConfigs } from './merge.ts';

// Checks.
export { findIgnitionWarnings, formatValidIgnition } from './check.ts';

// Archives.
export { decodeCpio } from './cpio.ts';
export type { CpioMember, SpecialMember } from './cpio.ts';
export { decodeInitrd, encodeInitrd, isCheckedXz } from './initrd.ts';
