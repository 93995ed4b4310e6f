import { takeLease, type LeaseOptions } from '../../src/base/disk/lease.ts';

/** A lease that nothing interrupts and whose messages nobody reads. */
export const LEASE: LeaseOptions = {
  signal: new AbortController().signal,
  warn: () => undefined,
};

/** Takes a lease; the result gives it back. */
export async function lockOutput(path: string): Promise<() => Promise<void>> {
  const { release } = await takeLease(path, LEASE);
  return release;
}
