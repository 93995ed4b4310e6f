import { describe, expect, it } from 'vitest';
import { createPace } from '../../src/pour/pace.ts';

const never = (): boolean => false;

/** A pace whose clock the test moves, and which says what it allows after so many milliseconds more. */
function paceWith(lanes: number, readIdle: () => number) {
  let clock = 0;
  const pace = createPace(lanes, { readIdle, now: () => clock });
  return (milliseconds: number, wasShort = never): number => {
    for (let step = 0; step < milliseconds; step += 200) {
      clock += 200;
      pace.allow(wasShort);
    }
    return pace.allow(wasShort);
  };
}

describe('the pace of a pour', () => {
  it('begins with one lane and lets more join while processors are idle', () => {
    const after = paceWith(8, () => 0.9);
    expect(after(0)).toBe(1);
    expect(after(200)).toBe(2);
    expect(after(2000)).toBe(8);
  });

  it('takes lanes away when no processor has time left, but never the first one', () => {
    let idle = 0.9;
    const after = paceWith(8, () => idle);
    expect(after(600)).toBe(8);
    idle = 0;
    expect(after(400)).toBe(6);
    expect(after(10_000)).toBe(1);
  });

  it('goes back to one lane when lanes wait for buffers, even if the processors are idle', () => {
    const after = paceWith(8, () => 0.9);
    expect(after(600)).toBe(8);
    expect(after(200, () => true)).toBe(1);
  });

  it('stays at one lane when only one is allowed', () => {
    const after = paceWith(1, () => 0.9);
    expect(after(1000)).toBe(1);
  });
});
