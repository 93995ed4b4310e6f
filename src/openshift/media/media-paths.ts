/** Where the medium's own account of itself is. */
export const INDEX_PATH = '/sealift/index.json';

/** The initrd that carries the bootstrap config. */
export const BOOTSTRAP_IMAGE_PATH = '/images/bootstrap-appliance.img';
