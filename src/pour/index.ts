/** Writes a layout of extents to a file or device: in parallel, verified, and continued after a kill. */

// The pour.
export { pourIso, publishPour, surveyPartial } from './pour.ts';
export type { PourOptions } from './pour.ts';
export type { PouredDevice } from './device.ts';
export type { EarlierIso } from './start.ts';

// Sources of extents.
export { digestLayout } from './spans.ts';
export type { ExtentChunk, ExtentOpener, OpenExtent, OpenExtentOptions } from './spans.ts';
export { explainWrong } from './loop.ts';
export { tooLong } from './span-writer.ts';

// Hashing in a worker thread.
export { createHasher } from './hasher.ts';
export type { HashStream, Hasher, Slice } from './hasher.ts';
