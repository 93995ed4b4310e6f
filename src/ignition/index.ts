/** Ignition configurations of specification 3, and the initrd images that carry them. */

// Configurations.
export { IGNITION_VERSION, formatIgnition, parseIgnition, textFile } from './config.ts';
export type { File, IgnitionConfig, Unit, User } from './schema.ts';
export { mergeConfigs } from './merge.ts';
export { chooseRebased, rebaseConfig } from './rebase.ts';
export type { Sides } from './rebase.ts';
export { decodeFileContent } from './resource.ts';
export { isSameConfig, parseResolved, resolveConfig } from './resolve.ts';
export type { Unresolved } from './resolve.ts';

// Checks.
export { checkIgnition, formatValidIgnition, readGivenIgnition } from './check.ts';
export { findUnitJudge } from './unit-judge.ts';
export type { UnitJudge } from './unit-judge.ts';
export { findUnitFaults, isInstalled } from './units.ts';

// Archives.
export { decodeCpio, encodeCpio, findCpioMember } from './cpio.ts';
export type { CpioMember, SpecialMember } from './cpio.ts';
export { decodeInitrd, encodeInitrd, isCheckedXz } from './initrd.ts';
