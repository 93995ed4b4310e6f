import type { InstallationConfig } from '../../sites/installation-rules.ts';
import type { MirrorPlan } from '../../openshift/mirror/plan.ts';
import type { RegistryImageChoice } from '../../openshift/mirror/server.ts';
import type { IsoRequest } from '../build-iso.ts';
import type { GivenBaseIso } from '../../openshift/release/base-iso.ts';
import type { CoreosStream } from '../../stages/system/read-coreos-stream.ts';
import type { SignatureGate } from '../../stages/content/verify-release.ts';

/** Everything an installation ISO is made from. */
export type InstallationIsoRequest = IsoRequest & {
  readonly config: InstallationConfig;
  /** What could not be checked of it. */
  readonly notes: readonly string[];
  /** post.sh beside the configuration. */
  readonly postScript?: Uint8Array;
  /** The live ISO to build on, or the CoreOS stream that names it; default: that of the release. */
  readonly base?: GivenBaseIso | CoreosStream;
  /** Pullspec of a release payload, which has a live ISO, a registry server and the release images. */
  readonly release?: string;
  /** What it takes for the release to be trusted. */
  readonly signatures: SignatureGate;
  readonly embed: EmbedRequest;
  /** How registries are reached. */
  readonly build: {
    readonly caBundle?: string;
    readonly registriesConf?: string;
    readonly insecureRegistries: readonly string[];
    /** Milliseconds without a byte after which a host is given up. */
    readonly retryFor?: number;
  };
  /** Extents poured at a time. */
  readonly lanes: number;
  /** SOURCE_DATE_EPOCH, seconds; default: the base ISO's creation. */
  readonly epoch?: number;
};

/** What the medium carries besides its configuration. */
export type EmbedRequest = {
  readonly seed: boolean;
  /** The images of the release, for precaching. */
  readonly release: boolean;
  /** The images that the seed names for precaching. */
  readonly precached: boolean;
  /** Further images, by tag or digest. */
  readonly images: readonly string[];
  /** The registry server; default: that of the release. */
  readonly registryImage?: string;
};

/** Images that the medium carries, and the server that is to serve them there. */
export type EmbeddedImages = { readonly plan: MirrorPlan; readonly server: RegistryImageChoice };
