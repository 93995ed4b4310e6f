import { expect, it } from 'vitest';
import { drawText, drawPassword } from '../../../src/sites/identity/make.ts';
import { seedRandom } from '../../support/site-identity.ts';

const draw = seedRandom('passwords');
const PASSWORDS = Array.from({ length: 3000 }, () => drawPassword(draw));
const count = (text: string): Map<string, number> => {
  const counts = new Map<string, number>();
  for (const character of text) counts.set(character, (counts.get(character) ?? 0) + 1);
  return counts;
};

it('a password has 23 characters: four groups of five with dashes between', () => {
  for (const password of PASSWORDS) {
    expect(password).toMatch(/^[A-Za-z0-9]{5}(-[A-Za-z0-9]{5}){3}$/);
    expect([5, 11, 17].map((place) => password.charAt(place)).join('')).toBe('---');
    expect(password).toHaveLength(23);
  }
});

it('a password lacks the characters that are easily mistaken: l, O, 0 and 1', () => {
  const used = [...count(PASSWORDS.join('').replaceAll('-', '')).keys()].sort().join('');
  expect(used).toBe('23456789ABCDEFGHIJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz');
});

it('every character of a password is equally likely in every place', () => {
  for (let place = 0; place < 23; place += 1) {
    const counts = count(PASSWORDS.map((password) => password.charAt(place)).join(''));
    if ([5, 11, 17].includes(place)) continue;
    // 3000 of 58 are 52 each; six standard deviations of 7.1 are 43.
    for (const times of counts.values()) expect(Math.abs(times - 3000 / 58)).toBeLessThan(43);
    expect(counts.size).toBe(58);
  }
});

it("a byte beyond the last whole multiple of the alphabet's size is not used", () => {
  const bytes = [Uint8Array.of(255, 232, 231), Uint8Array.of(0, 58)];
  expect(drawText('a'.repeat(57).concat('z'), 3, () => bytes.shift() ?? new Uint8Array())).toBe(
    'zaa',
  );
});
