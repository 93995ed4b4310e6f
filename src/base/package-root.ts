/**
 * The folder with `package.json`, `templates` and `schema`. As far from this file as from
 * `dist/cli/main.js`, which has this file in it.
 */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
