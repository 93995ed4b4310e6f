import { textFile, type IgnitionConfig } from '../../src/ignition/index.ts';
import {
  formatImageSet,
  IMAGE_SET_PATH,
  RELEASE_IMAGE,
  unconfiguredIgnition,
} from './config-image.ts';

/** How the template of an installer writes an address into a URL. */
const HOST =
  '{{ if $isIPv6 }}{{ printf "[%s]" .RendezvousIP }}{{ else }}{{ .RendezvousIP }}{{ end }}';

const RENDEZVOUS_TEMPLATE = `#{{ $isIPv6 := false }}{{ range .RendezvousIP }}{{ if eq . 58 }}{{ $isIPv6 = true }}{{ end }}{{ end }}
NODE_ZERO_IP={{.RendezvousIP}}
SERVICE_BASE_URL=http://${HOST}:8090/
IMAGE_SERVICE_BASE_URL=http://${HOST}:8888/
PULL_SECRET_TOKEN=
USER_AUTH_TOKEN=
WORKFLOW_TYPE=install
AIUI_APP_API_URL=http://${HOST}:8090/
AIUI_URL=http://${HOST}:3001/
`;

const INFRA_ENV = `apiVersion: agent-install.openshift.io/v1beta1
kind: InfraEnv
metadata:
  name: appliance
spec:
  cpuArchitecture: x86_64
  ipxeScriptType: ""
  nmStateConfigLabelSelector: {}
  pullSecretRef:
    name: appliance-pull-secret
status:
  agentLabelSelector: {}
  bootArtifacts:
    discoveryIgnitionURL: ""
    initrd: ""
    ipxeScript: ""
    kernel: ""
    rootfs: ""
  debugInfo:
    eventsURL: ""
`;

/** Settings of the services of a release with tokens, as far as an image changes them. */
const ASSISTED_SERVICE = `AUTH_TYPE=none
INSTALL_INVOKER=agent-installer
PUBLIC_CONTAINER_REGISTRIES=
RELEASE_IMAGES=[]
OPENSHIFT_INSTALL_RELEASE_IMAGE_MIRROR=
STORAGE=filesystem
INFRA_ENV_ID=11111111-1111-4111-8111-111111111111
EC_PUBLIC_KEY_PEM=
USER_AUTH_TOKEN=
WATCHER_AUTH_TOKEN=
`;

/** Texts of the live system of openshift-install 4.22, by path, before any cluster is known. */
export const AGENT_LIVE_TEXTS: Readonly<Record<string, string>> = {
  '/etc/NetworkManager/conf.d/clientid.conf':
    '[connection]\nipv6.dhcp-duid=ll\nipv6.dhcp-iaid=mac\n',
  '/etc/issue': '\\S\nOpenShift Agent Installer image\n',
  '/etc/assisted/rendezvous-host.env.template': RENDEZVOUS_TEMPLATE,
  '/etc/assisted/manifests/infraenv.yaml': INFRA_ENV,
  '/etc/assisted/manifests/pull-secret.yaml': 'kind: Secret\n',
  '/etc/systemd/system.conf.d/10-default-env.conf': '',
  '/root/.docker/config.json': '{"auths": {}}',
  '/usr/local/share/assisted-service/assisted-service.env': ASSISTED_SERVICE,
  '/usr/local/share/start-cluster/start-cluster.env':
    'REQUIRED_MASTER_NODES=0\nREQUIRED_ARBITER_NODES=0\nREQUIRED_WORKER_NODES=0\n',
};

/** The Ignition config of a live ISO that takes configuration images. */
export function agentLiveIgnition(
  texts: Readonly<Record<string, string>> = AGENT_LIVE_TEXTS,
  imageSet = formatImageSet(RELEASE_IMAGE),
): IgnitionConfig {
  const files = Object.entries(texts).map(([path, text]) =>
    textFile(path, text, path.endsWith('.env.template') ? 0o644 : 0o600),
  );
  return {
    ...unconfiguredIgnition(imageSet),
    storage: { files: [textFile(IMAGE_SET_PATH, imageSet, 0o600), ...files] },
  };
}
