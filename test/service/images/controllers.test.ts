import { describe, expect, it } from 'vitest';
import { CONTROLLERS, judgeControllers } from '../../../src/service/images/controllers.ts';

const PATH = '/i/36EUK6xVjm6ODP3kWXllMOrMfmLY0HLf/1/edge-4.21.3-x86_64.iso';
const http = `http://10.0.0.5:8090${PATH}`;
const https = `https://10.0.0.5${PATH}`;

const refusing = (urls: Parameters<typeof judgeControllers>[0]): readonly string[] =>
  judgeControllers(urls)
    .filter(({ url }) => url === undefined)
    .map(({ controller, reasons }) => `${controller}: ${reasons.join('; ')}`);

describe('controllers', () => {
  it('take the short URL with one scheme or the other, but for those that take none so deep', () => {
    const others = [
      'Supermicro X10 and early X11: the ISO may be at most 1 folder deep',
      'ERMI: it takes no image from a web server',
    ];
    expect(refusing({ http, https })).toEqual(others);
    expect(refusing({ http })).toEqual([
      others[0],
      'Huawei, xFusion and openUBMC: it needs a URL with https://',
      'OpenBMC: it needs a URL with https://',
      others[1],
    ]);
    expect(refusing({ https })).toEqual([
      'Lenovo XCC and XCC 2: it needs a URL with http://',
      'Supermicro X10 and early X11: it needs a URL with http://',
      others[1],
    ]);
  });

  it('refuse the long URLs with a token for their length, suffix or query', () => {
    const token = 'x'.repeat(220);
    const long = `https://10.0.0.5/bytoken/${token}/4.21.3/x86_64/disconnected.iso?revision=1-abc`;
    const refused = refusing({ https: long });
    expect(refused).toContain(
      'Dell iDRAC 9: its URLs have at most 256 characters; the URL must end in .iso',
    );
    expect(refused).toContain('Supermicro X11, X12 and later: the URL must have no "?"');
  });

  it('are judged each once, by name', () => {
    const names = CONTROLLERS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    expect(judgeControllers({ http }).map(({ controller }) => controller)).toEqual(names);
  });
});
