import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createPace } from '../../../src/iso/pour/pace.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('the pace of a pour', () => {
  it('begins with two lanes and lets more join while processors are idle', () => {
    const pace = createPace(8, { readIdle: () => 0.9 });
    expect(pace.allowed()).toBe(2);
    vi.advanceTimersByTime(200);
    expect(pace.allowed()).toBe(4);
    vi.advanceTimersByTime(2000);
    expect(pace.allowed()).toBe(8);
    pace.stop();
  });

  it('takes lanes away when no processor has time left, but never the first two', () => {
    let idle = 0.9;
    const pace = createPace(8, { readIdle: () => idle });
    vi.advanceTimersByTime(400);
    expect(pace.allowed()).toBe(8);
    idle = 0;
    vi.advanceTimersByTime(400);
    expect(pace.allowed()).toBe(6);
    vi.advanceTimersByTime(10_000);
    expect(pace.allowed()).toBe(2);
    pace.stop();
  });

  it('goes back to two lanes when lanes wait for buffers, however idle the processors are', () => {
    let short = false;
    const pace = createPace(8, { readIdle: () => 0.9, wasShort: () => short });
    vi.advanceTimersByTime(400);
    expect(pace.allowed()).toBe(8);
    short = true;
    vi.advanceTimersByTime(200);
    expect(pace.allowed()).toBe(2);
    pace.stop();
  });

  it('keeps to one lane when only one is wanted', () => {
    const pace = createPace(1, { readIdle: () => 0.9 });
    vi.advanceTimersByTime(1000);
    expect(pace.allowed()).toBe(1);
    pace.stop();
  });
});
