import { describe, expect, it } from 'vitest';
import { redact } from '../../../src/base/text/redact.ts';

describe('what is printed of a text with URLs', () => {
  it.each([
    ['serving x on http://127.0.0.1:5000; stop', 'serving x on http://127.0.0.1:5000; stop'],
    ['see https://a.example/x.', 'see https://a.example/x.'],
    ['(https://u:pw@a.example/x)', '(https://a.example/x)'],
    ['https://a.example/?token=abc, then', 'https://a.example/?token=[redacted], then'],
    ['http://[::1', '[redacted]'],
  ])('is, of %j, %j', (text, printed) => {
    expect(redact(text)).toBe(printed);
  });
});
