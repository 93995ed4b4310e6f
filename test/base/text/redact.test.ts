import { describe, expect, it } from 'vitest';
import { createRedaction, redactAddresses } from '../../../src/base/text/redact.ts';

describe('redacting a text with URLs', () => {
  it.each([
    ['serving x on http://127.0.0.1:5000; stop', 'serving x on http://127.0.0.1:5000; stop'],
    ['see https://a.example/x.', 'see https://a.example/x.'],
    ['(https://u:pw@a.example/x)', '(https://a.example/x)'],
    ['https://a.example/?token=abc, then', 'https://a.example/?token=[redacted], then'],
    ['http://[::1', '[redacted]'],
    [
      'put them into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT',
      'put them into HTTPS_PROXY: http://USER:PASSWORD@HOST:PORT',
    ],
    [
      'expected: postgres://USER:PASSWORD@HOST:PORT/NAME',
      'expected: postgres://USER:PASSWORD@HOST:PORT/NAME',
    ],
    ['http://HOST:PORT, or https://HOST/PATH', 'http://HOST:PORT, or https://HOST/PATH'],
    ['http://user:se/cret@host:x', '[redacted]'],
    ['ftp://user:pw@a.example/x: no', 'ftp://a.example/x: no'],
    ['"s3://KEY:SEC/RET+1=@bucket/a.iso"', '"s3://bucket/a.iso"'],
    ['oci://token@a.example/x:1', 'oci://a.example/x:1'],
    ['s3://bucket/a@b.iso and me@a.example', 's3://bucket/a@b.iso and me@a.example'],
    ['oci://a.example:5000/x@sha256:00', 'oci://a.example:5000/x@sha256:00'],
  ])('turns %j into %j', (text, printed) => {
    expect(redactAddresses(text)).toBe(printed);
  });
});

it('leaves words of the program as they are, even if one is a password', () => {
  const { addLogin, mask } = createRedaction();
  addLogin('user', 'password');
  const words = 'put user and password into HTTPS_PROXY';
  expect(mask(words)).toBe(words);
  expect(mask(`Basic ${Buffer.from('user:password').toString('base64')}`)).toBe('Basic [redacted]');
  expect(mask('user:password')).toBe('[redacted]');
});
