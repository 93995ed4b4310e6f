/*
 * Owns the facts about management controllers that decide which URL of an image they take. A fact is from a
 * maker's document, from public code that drives the controllers, or from a user's report; none was measured
 * here, and newer firmware may differ.
 */

export type Controller = {
  readonly name: string;
  /** Schemes that it takes; the better one first. Empty: it takes no image from a web server. */
  readonly schemes: readonly ('http' | 'https')[];
  /** Longest URL in characters that is known to work; absent: no limit is known. */
  readonly longest?: number;
  /** True if it tells a CD from a disk by the suffix `.iso`. */
  readonly needsSuffix?: true;
  /** True if it refuses `?` and `=`. */
  readonly refusesQuery?: true;
  /** Most folders before the name. */
  readonly folders?: number;
  /** Advice for the person who mounts the image. */
  readonly note?: string;
};

const BOTH = ['http', 'https'] as const;

export const CONTROLLERS: readonly Controller[] = [
  { name: 'Dell iDRAC 8', schemes: BOTH, needsSuffix: true },
  {
    name: 'Dell iDRAC 9',
    schemes: BOTH,
    needsSuffix: true,
    longest: 256,
    note: 'A certificate of your own may be refused over HTTPS. Set virtual media to "attached" or "auto-attach".',
  },
  {
    name: 'Dell iDRAC 10',
    schemes: BOTH,
    needsSuffix: true,
    longest: 256,
    note: 'Only slot 1 takes images.',
  },
  {
    name: 'HPE iLO 4, 5 and 6',
    schemes: BOTH,
    note: 'Mounting from a URL needs an Advanced licence.',
  },
  { name: 'Lenovo XCC and XCC 2', schemes: ['http'], note: 'Use a slot EXT1 to EXT4.' },
  { name: 'Lenovo XCC 3', schemes: BOTH },
  {
    name: 'Supermicro X10 and early X11',
    schemes: ['http'],
    folders: 1,
    note: 'Copy the ISO to a web server of your own, into a folder of its root.',
  },
  {
    name: 'Supermicro X11, X12 and later',
    schemes: BOTH,
    refusesQuery: true,
    note: 'Unmount first, and wait some seconds before the next mount.',
  },
  {
    name: 'Cisco UCS',
    schemes: BOTH,
    note: 'Use a slot for a DVD that the console does not hold.',
  },
  {
    name: 'Fujitsu iRMC',
    schemes: BOTH,
    note: 'Name the transfer protocol. Virtual media needs a licence.',
  },
  { name: 'Huawei, xFusion and openUBMC', schemes: ['https'] },
  { name: 'Nokia AirFrame', schemes: BOTH, note: 'Name the transfer protocol.' },
  {
    name: 'NVIDIA DGX',
    schemes: BOTH,
    note: 'It asks for a user and a password for the image: give any.',
  },
  {
    name: 'AMI MegaRAC, ASRock Rack, Gigabyte and Lenovo TSM',
    schemes: BOTH,
    note: 'Switch remote media on in its web interface first.',
  },
  { name: 'OpenBMC', schemes: ['https'] },
  {
    name: 'ERMI',
    schemes: [],
    note: 'It mounts from file shares. Copy the ISO to a share.',
  },
];

/** URLs of one image, by scheme. */
export type OfferedUrls = Readonly<Partial<Record<'http' | 'https', string>>>;

/** Answer to "will my controller take it". */
export type ControllerVerdict = {
  readonly controller: string;
  /** The URL to give it; absent if it takes none of them. */
  readonly url?: string;
  /** Reasons why it takes none. */
  readonly reasons: readonly string[];
  readonly note?: string;
};

/** Judges the URLs of an image for each controller that is known. Ranges and lengths are always served. */
export const judgeControllers = (urls: OfferedUrls): readonly ControllerVerdict[] =>
  CONTROLLERS.map((controller) => judgeController(controller, urls));

function judgeController(controller: Controller, urls: OfferedUrls): ControllerVerdict {
  const { name, schemes, note } = controller;
  const about = { controller: name, ...(note !== undefined && { note }) };
  if (schemes.length === 0) {
    return { ...about, reasons: ['it takes no image from a web server'] };
  }
  const offered = schemes.flatMap((scheme) => urls[scheme] ?? []);
  if (offered.length === 0) {
    return { ...about, reasons: [`it needs a URL with ${schemes.join(' or ')}://`] };
  }
  const judged = offered.map((url) => ({ url, reasons: listReasons(controller, new URL(url)) }));
  const taken = judged.find(({ reasons }) => reasons.length === 0);
  return { ...about, ...(taken ?? { reasons: judged[0]?.reasons ?? [] }) };
}

function listReasons(controller: Controller, { href, pathname, search }: URL): readonly string[] {
  const { longest = Infinity, needsSuffix, refusesQuery, folders = Infinity } = controller;
  const deep = pathname.split('/').length - 2;
  return [
    ...(href.length > longest ? [`its URLs have at most ${longest} characters`] : []),
    ...(needsSuffix && !href.endsWith('.iso') ? ['the URL must end in .iso'] : []),
    ...(refusesQuery && search !== '' ? ['the URL must have no "?"'] : []),
    ...(deep > folders ? [`the ISO may be at most ${folders} folder deep`] : []),
  ];
}
