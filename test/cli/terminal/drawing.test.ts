import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { runInTerminal, type Written } from '../../support/terminal.ts';
import { requireTool } from '../../support/tools.ts';

const DRAW = 'test/support/draw-progress.ts';

/** Milliseconds between two events, and of each half of the drawn build. */
const PACES = [
  [10, 3000],
  [100, 3000],
  [1000, 6000],
] as const;

/** Most drawings in a second, with one for the pieces that a terminal may cut. */
const MOST_DRAWINGS = 6;

describe.skipIf(!requireTool('python3'))('a build on a terminal of 80 columns', () => {
  it.each(PACES)('is readable with an event every %i ms', { timeout: 120_000 }, async (...pace) => {
    const written = await runInTerminal(80, [DRAW, ...pace.map(String)]);
    const frames = listFrames(written);
    expect(frames.length).toBeGreaterThan(10);

    // Each line of a drawing is one line of the terminal.
    for (const { lines } of frames) {
      expect(lines.filter((line) => line.length > 80)).toEqual([]);
    }

    for (const { lines } of frames.slice(0, -1)) expect(lines.length).toBeLessThanOrEqual(3);

    // No flicker.
    for (const { at } of frames) {
      const near = frames.filter((other) => other.at >= at && other.at < at + 1000);
      expect(near.length).toBeLessThanOrEqual(MOST_DRAWINGS);
    }

    // Never complete before the end, and no share of the whole before all of it is planned.
    const text = frames.flatMap(({ lines }) => lines);
    expect(text.filter((line) => /\b100 %|\[=+\]/.test(line))).toEqual([]);
    const early = frames.filter(({ lines }) => !lines.some((line) => line.includes('pour ISO')));
    expect(
      early.flatMap(({ lines }) => lines).filter((line) => /all stages.* %/.test(line)),
    ).toEqual([]);
    expect(text.at(-1)).toBe('warning: a warning at the end');
    expect(text.at(-2)).toMatch(/^\S+ all stages: [\d.]+ (?:s|ms)$/);

    // Both meters and the time left, once they are measured; it grows by no more than its rounding.
    const poured = frames.flatMap(({ at, lines }) =>
      lines.filter((line) => /pour ISO: .* %/.test(line)).map((line) => ({ at, line })),
    );
    const measured = poured.filter(({ line }) => !line.endsWith('measuring'));
    expect(measured.length).toBeGreaterThan(poured.length / 2);
    for (const { line } of measured) {
      expect(line).toMatch(/%, net [\d.]+ [KMG]?i?B\/s, disk [\d.]+ [KMG]?i?B\/s, .* left$/);
    }
    const left = measured.map(({ line }) => secondsOf(line));
    for (const [index, seconds] of left.slice(1).entries()) {
      expect(seconds).toBeLessThanOrEqual((left[index] ?? 0) + 1.5);
    }
  });
});

type Frame = { readonly at: number; readonly lines: readonly string[] };

/** Erases the line of the cursor, the last of a drawing. */
const ERASE = '\u001b[2K\u001b[G';

/** The drawings, as lines: each erases the one before it, or is the first. */
function listFrames(written: readonly Written[]): readonly Frame[] {
  const frames: { at: number; text: string }[] = [];
  for (const { at, text } of written) {
    for (const [index, piece] of text.split(ERASE).entries()) {
      const last = frames.at(-1);
      if (index === 0 && last) last.text += piece;
      else frames.push({ at, text: piece });
    }
  }
  return frames
    .map(({ at, text }) => ({
      at,
      lines: stripVTControlCharacters(text)
        .split(/\r?\n/)
        .filter((line) => line.trim() !== ''),
    }))
    .filter(({ lines }) => lines.length > 0);
}

function secondsOf(line: string): number {
  const [, minutes = '0', seconds = '0', unit = ''] =
    /(?:(\d+) min )?([\d.]+) (ms|s) left$/.exec(line) ?? [];
  return Number(minutes) * 60 + Number(seconds) / (unit === 'ms' ? 1000 : 1);
}
