import {
  type ClientAddresses,
  createClientAddresses,
  parseProxy,
} from '../../base/http/client-address.ts';
import { readTerms } from '../../base/http/plan-answer.ts';
import { type Exchange, sharePieces } from '../../base/http/serve-bytes.ts';
import { createShares, type Shares, sumAmounts } from '../../base/http/shares.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { createVirtualIso } from '../../media/serve/virtual.ts';
import { createDoor, SERVER_LIMITS, type ServiceServer } from '../door.ts';
import { createImageAnswers } from '../images/answer-known.ts';
import { createKnownUrls, type KnownImage, type KnownUrls } from '../images/known-urls.ts';
import { decodeOffer } from './image-offer.ts';
import type { ToWorker, WorkerReport, WorkerSettings } from './messages.ts';
import { createOpenFiles, type OpenFiles } from './open-files.ts';
import { createPass } from './pass.ts';
import { createReports, type Reports } from './reports.ts';

/* Owns a worker from its settings on: what it answers, passes on, remembers and reports. */

export type RangeWorker = {
  /** Servers in the order of the listeners, not listening yet. */
  readonly doors: readonly ServiceServer[];
  readonly forget: (record?: string) => void;
  /** Sets what owners have in all other processes. */
  readonly setElsewhere: (amounts: Extract<ToWorker, { readonly type: 'elsewhere' }>) => void;
  readonly report: () => WorkerReport | undefined;
  readonly closeFiles: () => void;
};

type Parts = {
  readonly known: KnownUrls;
  readonly files: OpenFiles;
  readonly reports: Reports;
  readonly tenants: Shares;
  readonly addresses: ClientAddresses;
};

export function createRangeWorker(settings: WorkerSettings): RangeWorker {
  const { connections, each, proxies, part, listeners, tls } = settings;
  sharePieces(part);
  const elsewhere = { tenants: new Map<string, number>(), owners: new Map<string, number>() };
  const parts: Parts = {
    known: createKnownUrls(Date.now),
    files: createOpenFiles(),
    reports: createReports(),
    tenants: createShares(
      { each: settings.tenant, all: Infinity },
      (tenant) => elsewhere.tenants.get(tenant) ?? 0,
    ),
    addresses: createClientAddresses({
      proxies: proxies.flatMap((text) => parseProxy(text) ?? []),
    }),
  };
  const { known, files, reports, tenants, addresses } = parts;
  const answer = createAnswer(settings, parts);
  const limits = { ...SERVER_LIMITS, connections, each };
  const doors = listeners.map(({ isTls }) =>
    createDoor(
      (request, response) => {
        answer({ request, response });
      },
      {
        tls: isTls ? tls : undefined,
        limits,
        addresses,
        elsewhere: (owner) => elsewhere.owners.get(owner) ?? 0,
      },
    ),
  );
  return {
    doors,
    forget: (record) => void known.forget(record),
    setElsewhere(amounts) {
      elsewhere.tenants = new Map(amounts.tenants);
      elsewhere.owners = new Map(amounts.owners);
    },
    report() {
      const owners = sumAmounts(doors.map((door) => door.countOwners()));
      return reports.make({ tenants: tenants.list(), owners });
    },
    closeFiles: files.closeIdle,
  };
}

/** Creates a function that answers a request: from memory, with an offered image, or by passing it on. */
function createAnswer({ inner }: WorkerSettings, parts: Parts): (exchange: Exchange) => void {
  const { known, reports, tenants, addresses } = parts;
  const pass = createPass({
    inner,
    isProxy: ({ socket }) => addresses.ofConnection(socket) === undefined,
  });
  const serve = createImageAnswers(
    {
      enter: (tenant) => tenant === '' || tenants.take(tenant, 1) === 'taken',
      leave(tenant) {
        if (tenant !== '') tenants.give(tenant, 1);
      },
    },
    (request, image) => reports.begin(image, addresses.clientOf(request)),
  );
  return (exchange) => {
    const { request } = exchange;
    const { method } = request;
    const passOn = (): void => {
      pass(exchange);
    };
    const image = method === 'GET' || method === 'HEAD' ? known.find(request) : undefined;
    if (image) serve(exchange, image, passOn);
    else if (method === 'GET') {
      known.begin(request);
      pass(exchange, (offer) => {
        const opened = openOffer(parts, exchange, offer);
        if (opened) serve(exchange, opened, passOn);
        else passOn();
      });
    } else passOn();
  };
}

/** Opens an image that was offered; undefined if its file was replaced meanwhile. */
function openOffer(
  { files, known }: Pick<Parts, 'files' | 'known'>,
  { request }: Exchange,
  bytes: Buffer,
): KnownImage | undefined {
  const { base, overlay, options, isLasting, expires, ...about } = decodeOffer(bytes);
  const file = files.open(base.file);
  if (!file) return undefined;
  const served = createVirtualIso({ ...file, digest: base.digest }, overlay);
  const image: KnownImage = {
    ...about,
    ...withoutUndefined({ expires }),
    offer: { served, terms: readTerms(served, options) },
    bytes: overlay?.packed.length ?? 0,
    isCurrent: file.isCurrent,
  };
  if (isLasting) known.remember(request, image);
  return image;
}
