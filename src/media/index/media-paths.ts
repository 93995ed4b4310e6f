/** Where the medium's own account of itself is. */
export const INDEX_PATH = '/sealift/index.json';

/** The registry's storage on media that boot, which keep it in `docker/registry/v2` below. */
export const REGISTRY_ROOT = '/registry';

/** That of upgrade ISOs: where the units of installed hosts serve it from. */
export const UPGRADE_REGISTRY_ROOT = '/oc-mirror/install';

/** The initrd that carries the bootstrap config. */
export const BOOTSTRAP_IMAGE_PATH = '/images/bootstrap-appliance.img';

/** What the embed area holds on a medium that has no values of a site. */
export const PRISTINE_IGNITION_PATH = '/sealift/ignition.img';

/** The images of a live ISO by digest, for whoever copies them; also in the release bundle. */
export const BUNDLE_PATH = '/bundle.json';
