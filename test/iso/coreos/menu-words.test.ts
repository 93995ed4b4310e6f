import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { requireMenuWords } from '../../../src/iso/coreos/kargs.ts';
import { requireTool } from '../../support/tools.ts';
import { runs } from '../../support/properties.ts';

const ALPHABET = 'ab=,. &|;<>$#{}[]()!*?~%^`@\'"\\';

/** By GRUB's own parser. */
function isMenu(kargs: readonly string[]): boolean {
  const lines = kargs.map((karg) => `\tlinux /vmlinuz ${karg}\n`);
  const input = `menuentry "live" {\n${lines.join('')}\tinitrd /initrd\n}\n`;
  try {
    execFileSync('grub-script-check', { input, stdio: ['pipe', 'ignore', 'ignore'] });
    return true;
  } catch {
    return false;
  }
}

const isAccepted = (karg: string): boolean => {
  try {
    requireMenuWords([karg]);
    return true;
  } catch {
    return false;
  }
};

describe.skipIf(!requireTool('grub-script-check'))('kernel arguments in a menu of GRUB', () => {
  it('are refused if GRUB cannot read its menu with them', () => {
    const wrong = [
      ...['a=http://b/?c=d&e=f', 'a=b|c', 'a=<b', 'a=>b', 'a=$', "a='b", 'a="b'],
      ...['a { b', 'a }', '{a', 'a={b c', '[[ a'],
    ];
    expect(wrong.filter((karg) => isMenu([karg]))).toEqual([]);
    expect(wrong.filter(isAccepted)).toEqual([]);
  });

  it('are refused if GRUB reads other arguments', () => {
    const changed = ['a=b;reboot', 'a=$b', 'a="$b"', 'a=b\\c', 'a=b\\', 'a #b', '# a'];
    expect(changed.filter(isAccepted)).toEqual([]);
  });

  it('are accepted as they are commonly written', () => {
    const usual = [
      ...[
        'console=ttyS0,115200n8',
        'ip=[2001:db8::2]::[2001:db8::1]:64:host:eth0:none',
        'rd.break',
      ],
      ...['a="b c"', 'a="b;c & d"', 'a=b#c', 'root=UUID=1-2', 'a=http://b/c?d=%20', 'a=*~!'],
    ];
    expect(usual.filter((karg) => !isAccepted(karg))).toEqual([]);
    expect(isMenu(usual)).toBe(true);
  });

  it('are all read by GRUB if they are accepted', () => {
    const character = fc.constantFrom(...ALPHABET.split(/(?:)/));
    const text = fc.string({ unit: character, minLength: 1, maxLength: 12 });
    const accepted = fc.sample(text, { numRuns: runs(4000) }).filter(isAccepted);
    expect(accepted.length).toBeGreaterThan(100);
    expect(isMenu(accepted)).toBe(true);
  });
});
