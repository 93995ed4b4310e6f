import { editKargs } from '../../iso/coreos/kargs.ts';
import { readLiveAreas } from '../../media/areas.ts';
import { ApiFailure } from '../api-failure.ts';
import type { Exchange, Service } from '../context.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import { useRelease, type Release } from '../store/release.ts';
import { requireNetworkBoot } from './find-release.ts';
import { formatRevision, originOf } from './image-url.ts';

const INITRD = 'initrd';
const KERNEL = 'kernel';
const TYPES = ['discovery-image-always', 'boot-order-control'];

/**
 * What iPXE boots the customised live system with. Both types give the same script: with `boot-order-control`,
 * hosts that are installed already boot from their disk, and no host ever registers with an InfraEnv of here.
 *
 * @throws ApiFailure 400, 422
 */
export async function renderIpxeScript(
  service: Service,
  exchange: Exchange,
  { infraEnv, release }: { readonly infraEnv: InfraEnv; readonly release: Release },
): Promise<string> {
  checkQuery(exchange);
  requireNetworkBoot(release);
  const { id } = infraEnv;
  const { version, architecture } = release;
  const origin = originOf(service, exchange);
  const query = `arch=${architecture}&version=${encodeURIComponent(version)}`;
  const rootfs = `${origin}/boot-artifacts/rootfs?${query}`;
  const token = await signQuery(service, id);
  const revision = formatRevision(infraEnv, release);
  const kargs = await listArguments(infraEnv, release, rootfs);
  return [
    '#!ipxe',
    `initrd --name ${INITRD} ${origin}/images/${id}/pxe-initrd?${query}&revision=${revision}${token}`,
    `kernel ${origin}/boot-artifacts/${KERNEL}?${query} ${kargs}`,
    'boot',
    '',
  ].join('\n');
}

function checkQuery({ req }: Exchange): void {
  const { mac, ipxe_script_type: type } = req.query();
  if (mac !== undefined && !/^(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}$/.test(mac)) {
    throw new ApiFailure(422, 'mac in query must be of type mac');
  }
  if (type === undefined || TYPES.includes(type)) return;
  throw new ApiFailure(422, `ipxe_script_type in query should be one of [${TYPES.join(' ')}]`);
}

/** Under the name that assisted-service has for it. */
async function signQuery({ auth, urlTokens }: Service, id: string): Promise<string> {
  if (auth.type === 'none') return '';
  const { token } = await urlTokens.sign(id);
  return `&${auth.type === 'local' ? 'api_key' : 'image_token'}=${token}`;
}

/** What iPXE would not hand on as it is, and why. */
const CHANGED_BY_IPXE: readonly (readonly [RegExp, string])[] = [
  [/\$\{/, '"${", which iPXE replaces'],
  [/(?:^|\s)#/, 'a word that begins with "#", a comment to iPXE'],
  [/(?:^|\s)(?:&&|\|\||;)(?:\s|$)/, 'the word "&&", "||" or ";", which ends a command of iPXE'],
  [/\\$/, '"\\" at its end, which makes iPXE read on in the next line'],
];

/** Bytes that Linux reads of its command line on x86_64, aarch64 and ppc64le, and does not miss what is more. */
const COMMAND_LINE = 2047;

/** Those of the ISO, with an address in place of the volume that it waits for, and those of the customer. */
async function listArguments(
  infraEnv: InfraEnv,
  release: Release,
  rootfs: string,
): Promise<string> {
  const append = (infraEnv.kernel_arguments ?? []).map(({ value }) => value.trim());
  const changed = CHANGED_BY_IPXE.find(([form]) => append.some((value) => form.test(value)));
  if (changed) throw new ApiFailure(400, `a kernel argument has ${changed[1]}`);
  const { kargs } = await useRelease(release, readLiveAreas);
  const own = (kargs?.default ?? 'ignition.firstboot ignition.platform.id=metal')
    .split(' ')
    .filter((word) => !word.startsWith('coreos.liveiso='))
    .join(' ');
  const text = editKargs(`initrd=${INITRD} ${own}`, {
    remove: [],
    append: [`coreos.live.rootfs_url=${rootfs}`, ...append],
  });
  // Where the firmware is UEFI, the name of the file is the first word.
  const size = Buffer.byteLength(`${KERNEL} ${text}`);
  if (size <= COMMAND_LINE) return text;
  throw new ApiFailure(
    400,
    `the kernel reads ${COMMAND_LINE} bytes of arguments, and has ${size} of the ISO and the infra env`,
  );
}
