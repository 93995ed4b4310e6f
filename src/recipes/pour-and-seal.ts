import { pourIso, type PourOptions, type PourResult } from '../iso/pour/pour-iso.ts';
import type { Engine } from '../engine/engine.ts';

/** What is poured, and how it is sealed: with milliseconds that the pour took. */
export type PourAndSeal<Report> = {
  readonly pour: Omit<PourOptions, 'signal' | 'onProgress' | 'onStale' | 'onComplete'>;
  readonly seal: (poured: PourResult, milliseconds: number) => Promise<Report>;
};

/** Brings every byte to its place; checksum and report are there before the ISO's name is. */
export function pourAndSeal<Report>(
  engine: Engine,
  { pour, seal }: PourAndSeal<Report>,
): Promise<Report> {
  return engine.stage({
    name: 'pour ISO',
    inputs: {},
    run: async (_inputs, { signal, onProgress, warn }) => {
      let report: Promise<Report> | undefined;
      const started = performance.now();
      const poured = await pourIso({
        ...pour,
        signal,
        onProgress: (bytes) => {
          onProgress(bytes, pour.layout.size);
        },
        onStale: () => {
          warn('a partial output of other inputs was found; it is written anew');
        },
        onComplete: async (poured) => {
          report = seal(poured, Math.round(performance.now() - started));
          await report;
        },
      });
      return report ?? seal(poured, 0);
    },
  });
}
