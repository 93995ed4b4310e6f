import { setFlagsFromString } from 'node:v8';

/**
 * Percent of what is in use that garbage may have before V8 collects it. By default that is several
 * times as much: too much for the index of a large medium, or for a service, where memory is little.
 */
export function keepGarbageSmall(): void {
  setFlagsFromString('--heap-growing-percent=30');
}

/**
 * The space of new objects stays at the size it has now (1 MiB to 8) and does not grow to 32 MiB. It is
 * collected the more often, and with its objects go their buffers, which are outside of it and many times
 * its size. For what copies buffers: where most objects live on, it takes several times the time.
 */
export function keepNewSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
