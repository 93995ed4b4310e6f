import { DURATION, SIZE } from '../base/text/words.ts';
import {
  defaulted,
  described,
  FILLED,
  FLAG,
  integerFrom,
  list,
  matching,
  oneOf,
  optional,
  record,
} from '../shape/shape.ts';

/* Owns the keys of `build` in appliance-config.yaml with their meanings and defaults. */

export const CONCURRENCY = [1, 256] as const;
export const DEFAULT_CONCURRENCY = 8;

const SIZED = matching(SIZE);

export const BUILD = record({
  baseIso: optional(
    FILLED,
    'CoreOS live ISO to build on, a path or an https URL; absent takes the one of the release payload.',
  ),
  baseIsoSha256: optional(
    matching(/^[0-9a-f]{64}$/u),
    'SHA-256 of the base ISO, 64 hex digits. Required for a URL.',
  ),
  installer: optional(
    FILLED,
    'Path of an `openshift-install` of exactly this release; absent takes the one of the payload.',
  ),
  ignition: defaulted(
    oneOf('installer', 'embedded'),
    () => 'installer',
    "Where the unconfigured Ignition config comes from: the release's installer, or the templates of sealift.",
  ),
  ignitionArea: defaulted(
    SIZED,
    () => '1MiB',
    'Room on the ISO for the compressed Ignition config with the values of a site, `256KiB` to `64MiB`. The ISO has it whether values are on it or not, and no later value makes it larger; a base ISO with a larger area keeps that.',
  ),
  kernelArguments: defaulted(
    list(described(matching(/^[!-~]+$/u), 'One argument, for example `console=ttyS0`.')),
    () => [],
    'Kernel arguments to append, in this order.',
  ),
  caBundle: optional(FILLED, 'Path of a PEM file with the CA certificates of private registries.'),
  registriesConf: optional(
    FILLED,
    'Path of a registries.conf with mirrors to fetch from, read instead of those of the environment, the user and the system (CONTAINERS_REGISTRIES_CONF, ~/.config/containers, /etc/containers and their registries.conf.d).',
  ),
  allArchitectures: defaulted(
    FLAG,
    () => false,
    'Carries every architecture of a multi-architecture image instead of one.',
  ),
  disableImagePolicy: optional(
    FLAG,
    'Whether the cluster accepts images of OpenShift without a signature (installer variable OPENSHIFT_INSTALL_EXPERIMENTAL_DISABLE_IMAGE_POLICY). Absent: yes if that variable is set for the build, or if the release is a nightly or CI build, which are not signed; no for signed releases. It leaves an override in ClusterVersion, with which the cluster refuses updates to another minor version: "sealift help upgrade" has the step that removes it.',
  ),
  signatures: optional(
    FILLED,
    'Path of the signatures of releases: a folder with files `sha256=HEX/signature-N`, as a signature store has them, or a file with ConfigMaps of signatures, as oc and oc-mirror write it. Asked first; then the workspace of `mirrorPath`, the store of OCP_SIGNATURE_URL, and the public stores.',
  ),
  signatureKeys: optional(
    FILLED,
    "Path of a file with the public keys that sign releases, OpenPGP, armoured or binary. Default: the file that OCP_SIGNATURE_VERIFICATION_PK names, otherwise Red Hat's release keys.",
  ),
  allowUnsigned: defaulted(
    FLAG,
    () => false,
    'Whether a nightly or CI build is accepted without a signature; such builds are never signed. Every output made from it states that it is unsigned, and its cluster accepts images of OpenShift without a signature, unless `disableImagePolicy` says otherwise. No effect on releases (X.Y.Z, -ec.N, -rc.N), which need a signature.',
  ),
  concurrency: defaulted(
    integerFrom(...CONCURRENCY),
    () => DEFAULT_CONCURRENCY,
    'Maximum number of blobs fetched at the same time.',
  ),
  retryFor: defaulted(
    matching(DURATION),
    () => '10m',
    'How long to wait for a host that has answered before and now sends no byte, for example `30s`, `10m` or `1h30m`; `0s` for not at all. A host that never answered gets at most 30 seconds.',
  ),
  maxSize: optional(
    SIZED,
    'A larger ISO is refused before the first download, for example `45GiB` or `4.7GB`.',
  ),
  insecureRegistries: defaulted(
    list(described(FILLED, 'A registry host, with port if it has one.')),
    () => [],
    'Registries whose TLS certificate is not verified and that may speak plain HTTP: passwords are sent to them without encryption, or to any host that answers in their place. Plan, build and report name them.',
  ),
  embed: optional(
    record({
      pullSecret: optional(
        FILLED,
        'Pull secret for the hosts, as JSON, `file:PATH` or `env:NAME`.',
      ),
    }),
    'Secrets that go on the media on purpose. The report and the end of the build name them.',
  ),
  nmstate: optional(FILLED, 'Path of a file with NMState network settings for the hosts.'),
  registryData: defaulted(
    oneOf('copy', 'medium'),
    () => 'copy',
    "Where installed hosts keep the registry's data. `copy`: each host copies it from the medium to its disk once, in the background, and then no longer needs the medium; a host with too little disk keeps reading the medium. `medium`: the medium stays attached for as long as the cluster pulls from it. No effect with `skipLocalRegistry`, and on control plane hosts for which the release's installer copies the data.",
  ),
});
