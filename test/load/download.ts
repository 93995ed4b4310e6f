import { createHash } from 'node:crypto';
import { ask, type Answer, type Head } from './ask.ts';
import { judge } from './report.ts';
import type { ExpectedIso, Variant } from './releases.ts';
import { refresh, type Customer, type Load } from './customer.ts';
import { endOf, orEnded } from './tenants.ts';

/** What a client asks of an image. */
export type Wanted = {
  readonly what: string;
  readonly method?: 'HEAD';
  readonly range?: string;
  readonly ifRange?: string;
  /** Without the revision in the URL. */
  readonly isPlain?: boolean;
  /** Bytes after which the client goes away. */
  readonly enough?: number;
  readonly pause?: number;
  /** The revision may be another one when the service looks. */
  readonly mayChange?: boolean;
  readonly hash?: { readonly update: (piece: Buffer) => unknown };
};

export type Got = {
  readonly answer: Answer;
  readonly isAllowed: boolean;
  /** Of the body. */
  readonly received: number;
  readonly etag?: string;
  /** Which ISO it was of. */
  readonly iso?: ExpectedIso;
};

/** Asks once for the image of a customer; every byte is compared, and every status. */
export async function download(load: Load, customer: Customer, wanted: Wanted): Promise<Got> {
  const { report } = load;
  const { url, values, version } = customer;
  const named = load.variantOf(url);
  const { target, end, isNamed } = chooseUrl(customer, wanted);
  const what = `${wanted.what} of ${customer.id} revision ${customer.revision}`;
  const asked = performance.now();
  const askedAt = Date.now();
  let candidates: readonly ExpectedIso[] = [];
  let variants: readonly Variant[] = [];
  let received = 0;
  let start = 0;
  const answer = await ask(load.front, {
    target,
    ...(wanted.method && { method: wanted.method }),
    ...(wanted.pause !== undefined && { pause: wanted.pause }),
    headers: {
      ...(wanted.range !== undefined && { range: wanted.range }),
      ...(wanted.ifRange !== undefined && { 'if-range': wanted.ifRange }),
    },
    onHead(head) {
      variants = load.storeOf(version).since(asked);
      if (head.status !== 200 && head.status !== 206) return;
      const possible = isNamed ? variants.filter((one) => one === named) : variants;
      candidates = possible.flatMap(({ isos }) => isos[values] ?? []);
      candidates = candidates.filter(({ size }) => hasLength(head, size));
      if (candidates.length === 0) report.problem(`${what}: wrong length ${describe(head)}`);
      start = Number(/^bytes (\d+)-/.exec(head.headers['content-range'] ?? '')?.[1] ?? 0);
    },
    onPiece(piece, offset) {
      if (candidates.length === 0) return true; // the text of a refusal
      received += piece.length;
      const at = start + offset;
      const right = candidates.filter(({ read }) => read(at, piece.length).equals(piece));
      if (right.length === 0) {
        report.count('wrong bytes', piece.length);
        report.problem(`${what}: wrong bytes in ${piece.length} from ${at}`);
        return false;
      }
      candidates = right;
      report.count('bytes compared', piece.length);
      wanted.hash?.update(piece);
      return wanted.enough === undefined || received < wanted.enough;
    },
  });
  if (variants.length === 0) variants = load.storeOf(version).since(asked);
  const allowed = variants.map((variant) =>
    variant === named || !isNamed ? statusOf(wanted, customer, variant) : 410,
  );
  if (wanted.mayChange === true) allowed.push(410);
  const isAllowed = judge(load, answer, {
    what,
    allowed: orEnded(end, askedAt, allowed),
    isRemote: load.isRemote(version),
  });
  const { etag } = answer.kind === 'answer' ? answer.headers : {};
  const [iso] = candidates;
  if (isAllowed && iso && etag !== undefined) checkTag(load, customer, { iso, etag, what });
  return { answer, isAllowed, received, ...(etag !== undefined && { etag }), ...(iso && { iso }) };
}

/** All forms of URLs give the same: one is taken after the other. */
function chooseUrl(customer: Customer, { isPlain = false }: Wanted) {
  const { url, short } = customer;
  const end = endOf(url);
  // A token has the revision in it.
  if (isPlain) return { target: toPlain(url), end, isNamed: end.until !== Infinity };
  customer.turn += 1;
  if (customer.turn % 2 === 0) return { target: url, end, isNamed: true };
  return { target: short.url, end: short.end, isNamed: true };
}

/** Tokens are taken by both of their names. */
const toPlain = (url: string): string => url.replace(/\?.*/, '').replace('/byapikey/', '/bytoken/');

const describe = ({ status, headers }: Head): string =>
  `${status} ${headers['content-length'] ?? ''} ${headers['content-range'] ?? ''}`;

function hasLength({ status, headers }: Head, size: number): boolean {
  const length = Number(headers['content-length']);
  if (status === 200) return length === size;
  const [, first, last, all] =
    /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers['content-range'] ?? '') ?? [];
  return Number(all) === size && length === Number(last) - Number(first) + 1;
}

/** RFC 9110 13 and 14. */
function statusOf(wanted: Wanted, customer: Customer, variant: Variant): number {
  const { range, ifRange } = wanted;
  if (range === undefined || wanted.method === 'HEAD' || range.includes(',')) return 200;
  if (ifRange !== undefined && ifRange !== customer.tags.get(tagKey(customer, variant.isos)))
    return 200;
  const [, first = ''] = /^bytes=(\d*)-/.exec(range) ?? [];
  return first !== '' && Number(first) >= variant.size ? 416 : 206;
}

const tagKey = ({ revision, values }: Customer, isos: readonly ExpectedIso[]): string =>
  `${revision} ${isos[values]?.sha256 ?? ''}`;

/** Of a revision and an ISO there is one tag, whichever replica answers. */
function checkTag(
  { report }: Load,
  customer: Customer,
  { iso, etag, what }: { readonly iso: ExpectedIso; readonly etag: string; readonly what: string },
): void {
  const key = `${customer.revision} ${iso.sha256}`;
  const known = customer.tags.get(key) ?? etag;
  customer.tags.set(key, etag);
  if (known !== etag) report.problem(`${what}: the tag ${etag} should be ${known}`);
}

/** A store that is away refuses at once. */
const MOST_ATTEMPTS = 1000;

/**
 * All of it, as a client that goes on where the line broke, until it has it.
 *
 * @returns false where the customer's image has changed, or the run is over
 */
export async function downloadWhole(
  load: Load,
  customer: Customer,
  wanted: Pick<Wanted, 'pause' | 'enough'> & { readonly withTag?: boolean },
): Promise<boolean> {
  const { report } = load;
  const hash = createHash('sha256');
  let received = 0;
  let etag: string | undefined;
  // A line that breaks behind the last byte leaves nothing to ask for: the next answer is 416, and of no ISO.
  let iso: ExpectedIso | undefined;
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const tag = wanted.withTag === true && etag !== undefined ? { ifRange: etag } : {};
    const got = await download(load, customer, {
      what: received === 0 ? 'download' : 'resume',
      hash,
      ...(received > 0 && { range: `bytes=${received}-`, ...tag }),
      ...(wanted.pause !== undefined && { pause: wanted.pause }),
      ...(attempt === 0 && wanted.enough !== undefined && { enough: wanted.enough }),
    });
    const status = got.answer.kind === 'answer' ? got.answer.status : 0;
    if (status > 0 && status < 500 && !got.isAllowed) return false;
    if (status === 401 || status === 410) {
      // Another ISO may have taken its place: what comes then does not belong to what is here.
      const before = load.variantOf(customer.url);
      await refresh(load, customer);
      if (load.variantOf(customer.url) !== before) return false;
    }
    if (status >= 400 && status !== 416) {
      await load.rest();
      continue;
    }
    received += got.received;
    etag = got.etag ?? etag;
    iso = got.iso ?? iso;
    if (got.answer.kind === 'broken') {
      await load.rest();
      continue;
    }
    if (!got.answer.isWhole) continue;
    const digest = hash.digest('hex');
    report.count('digests checked');
    if (digest !== iso?.sha256) {
      report.problem(`download of ${customer.id}: ${digest} should be ${iso?.sha256 ?? 'known'}`);
    }
    return true;
  }
  report.problem(`download of ${customer.id}: not ended after ${MOST_ATTEMPTS} attempts`);
  return false;
}
