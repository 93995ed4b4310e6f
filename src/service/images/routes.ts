import { withoutUndefined } from '../../base/lists.ts';
import type { IsoFile, IsoImage } from '../../iso/index.ts';
import { serveRuns } from '../../media/serve/virtual.ts';
import type { App, Exchange, Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { toArchitecture, ApiFailure } from '../openapi.ts';
import { useRelease, type Release } from '../store/entry.ts';
import {
  type AskedImage,
  findByShortUrl,
  findByToken,
  findForDownload,
  findPlain,
  findRelease,
  readToken,
  requireNetworkBoot,
  requireStore,
} from './find-image.ts';
import { sendImage } from './send-image.ts';
import { readAskedName } from './sha256.ts';
import { formatImageName, IMAGE_NAME } from './short-url.ts';
import {
  chooseLastModified,
  describeFile,
  findName,
  sendBytes,
  sendFile,
  URL_KINDS,
} from './urls.ts';

/** Adds the routes of assisted-image-service. */
export function addImageRoutes(app: App, service: Service): void {
  addBootRoutes(app, service);
  app.get('/i/:token/:revision/:file', async (exchange) => {
    const { file: filename, isSha256 } = readAskedName(exchange.req.param('file'));
    if (!IMAGE_NAME.test(filename)) throw new ApiFailure(404, 'no image has this URL');
    await requireStore(service);
    const found = await findByShortUrl(service, exchange);
    return sendImage(service, exchange, { ...found, filename, isSha256 });
  });
  app.get('/byid/:infra_env_id/:version/:arch/:file', async (exchange) => {
    const identity = await service.auth.identify(undefined);
    return sendLong(service, exchange, await findPlain(service, exchange, identity));
  });
  for (const kind of [URL_KINDS.local, URL_KINDS.rhsso]) {
    app.get(`/${kind}/:token/:version/:arch/:file`, async (exchange) => {
      const token = exchange.req.param('token');
      return sendLong(service, exchange, await findByToken(service, exchange, { token }));
    });
  }
  app.get('/images/:infra_env_id', async (exchange) => {
    const type = requireQuery(exchange, 'type', () => {
      const version = exchange.req.query('version') ?? '';
      if (version === '') throw new ApiFailure(400, "'version' parameter required");
    });
    const asked = await findForDownload(service, exchange);
    const { version = '', arch = 'x86_64' } = exchange.req.query();
    return sendAsked(service, exchange, { ...asked, version, arch, type, isSha256: false });
  });
}

/** Kernel and root file system are the same for all, the initrd has the customer's values. */
function addBootRoutes(app: App, service: Service): void {
  app.get('/boot-artifacts/:artifact', async (exchange) => {
    const paths = findArtifact(exchange.req.param('artifact'));
    const { version, arch } = requireVersion(exchange);
    await requireStore(service);
    const release = await service.releases.find(version, arch);
    if (!release)
      throw new ApiFailure(404, `the store has no ISO of version ${version} for ${arch}`);
    requireNetworkBoot(release);
    const file = await useRelease(release, (iso) => requireFile(iso, paths));
    const served = serveRuns(release.base, [file]);
    return sendBytes(exchange, served, { filename: file.name, isPublic: true });
  });
  app.get('/images/:infra_env_id/pxe-initrd', async (exchange) => {
    const { infraEnv, release } = await findAsked(service, exchange);
    const initrd = await openInitrd(service, infraEnv, release);
    const lastModified = chooseLastModified(service, infraEnv, release);
    const filename = `${infraEnv.id}-initrd.img`;
    return sendFile(service, exchange, {
      served: initrd,
      options: { filename, ...withoutUndefined({ lastModified }) },
      file: describeFile(infraEnv, initrd, { file: 'pxe-initrd', release }),
    });
  });
  for (const path of ['/images/:infra_env_id/s390x-initrd-addrsize', '/s390x-initrd-addrsize']) {
    app.get(path, async (exchange) => {
      const { infraEnv, release } = await findAsked(service, exchange);
      const file = await readAddressSize(service, infraEnv, release);
      const lastModified = chooseLastModified(service, infraEnv, release);
      return sendBytes(exchange, serveRuns(release.base, [file]), {
        filename: `${infraEnv.id}-initrd.addrsize`,
        ...withoutUndefined({ lastModified }),
      });
    });
  }
}

/** Paths on live ISOs of CoreOS; on s390x the kernel has another name. */
const ARTIFACTS: Readonly<Record<string, readonly string[]>> = {
  'rootfs': ['/images/pxeboot/rootfs.img'],
  'kernel': ['/images/pxeboot/vmlinuz', '/images/pxeboot/kernel.img'],
  'ins-file': ['/generic.ins'],
};

function findArtifact(name: string): readonly string[] {
  const paths = Object.hasOwn(ARTIFACTS, name) ? ARTIFACTS[name] : undefined;
  if (paths) return paths;
  throw new ApiFailure(404, `unrecognized boot artifact ${name}`);
}

function requireVersion({ req }: Exchange): { readonly version: string; readonly arch: string } {
  const { version = '', arch = 'x86_64' } = req.query();
  if (version === '') throw new ApiFailure(400, "'version' parameter required");
  return { version, arch: toArchitecture(arch) ?? arch };
}

/** Finds the requested InfraEnv; a request with a token need not name it. */
async function findAsked(
  service: Service,
  exchange: Exchange,
): Promise<{ readonly infraEnv: InfraEnv; readonly release: Release }> {
  const { version, arch } = requireVersion(exchange);
  const asked = await findNamed(service, exchange);
  await requireStore(service);
  const release = await findRelease(service, asked);
  const { infraEnv } = asked;
  if (release.version !== version || release.architecture !== arch) {
    throw new ApiFailure(404, `infra env ${infraEnv.id} has no image of ${version} for ${arch}`);
  }
  requireNetworkBoot(release);
  return { infraEnv, release };
}

async function findNamed(service: Service, exchange: Exchange): Promise<AskedImage> {
  if (exchange.req.param('infra_env_id') !== undefined) return findForDownload(service, exchange);
  const token = readToken(service, exchange);
  if (token !== undefined) return findByToken(service, exchange, { token });
  throw new ApiFailure(
    400,
    'the request names no infra env: send a token, or use /images/{infra_env_id}',
  );
}

async function requireFile(iso: IsoImage, paths: readonly string[]): Promise<IsoFile> {
  for (const path of paths) {
    const node = await iso.find(path);
    if (node?.kind === 'file') return node;
  }
  throw new ApiFailure(404, `the ISO has no ${(paths[0] ?? '').slice(1)}`);
}

const INITRD = '/images/pxeboot/initrd.img';

async function openInitrd({ images }: Service, infraEnv: InfraEnv, release: Release) {
  const archive = await images.readArchive(infraEnv, release);
  const file = await useRelease(release, (iso) => requireFile(iso, [INITRD]));
  return serveRuns(release.base, [file, archive]);
}

const ADDRSIZE = '/images/initrd.addrsize';

/** Reads the address from the ISO, and the size of the served initrd: two 64-bit numbers, big-endian. */
async function readAddressSize(
  service: Service,
  infraEnv: InfraEnv,
  release: Release,
): Promise<Uint8Array> {
  const given = await useRelease(release, async (iso) =>
    iso.readFile(await requireFile(iso, [ADDRSIZE]), 4096),
  );
  const { size } = await openInitrd(service, infraEnv, release);
  const bytes = Buffer.alloc(16);
  bytes.set(given.subarray(0, 8));
  bytes.writeBigUInt64BE(BigInt(size), 8);
  return bytes;
}

/** Short names of the image types. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  'full.iso': 'full-iso',
  'minimal.iso': 'minimal-iso',
  'disconnected.iso': 'disconnected-iso',
};

function requireQuery({ req }: Exchange, name: 'type', first: () => void): string {
  first();
  const value = req.query(name) ?? '';
  if (value === '') throw new ApiFailure(400, `'${name}' parameter required`);
  if (Object.values(SHORT_NAMES).includes(value)) return value;
  throw new ApiFailure(400, `invalid value '${value}' for parameter '${name}'`);
}

function sendLong(service: Service, exchange: Exchange, asked: AskedImage): Promise<Response> {
  const {
    version = '',
    arch = '',
    file: given = '',
  } = exchange.req.param() as Record<string, string>;
  const { file, isSha256 } = readAskedName(given);
  const type = Object.hasOwn(SHORT_NAMES, file) ? SHORT_NAMES[file] : undefined;
  if (type === undefined) throw new ApiFailure(404, `unrecognized file name ${file}`);
  return sendAsked(service, exchange, { ...asked, version, arch, type, isSha256 });
}

type AskedByName = AskedImage & {
  readonly version: string;
  readonly arch: string;
  readonly type: string;
  readonly isSha256: boolean;
};

async function sendAsked(
  service: Service,
  exchange: Exchange,
  asked: AskedByName,
): Promise<Response> {
  const { infraEnv, version, type } = asked;
  const arch = toArchitecture(asked.arch) ?? asked.arch;
  await requireStore(service);
  const release = await findRelease(service, asked);
  if (type !== 'disconnected-iso') throw new ApiFailure(404, `no image of type ${type} is served`);
  if (version !== release.version || arch !== release.architecture) {
    throw new ApiFailure(404, `infra env ${infraEnv.id} has no image of ${version} for ${arch}`);
  }
  const name = await findName(service, infraEnv);
  const filename = formatImageName(name ?? { ...release, cluster: infraEnv.name });
  return sendImage(service, exchange, { ...asked, release, filename });
}
