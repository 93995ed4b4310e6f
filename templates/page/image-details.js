import { findImageUrl, readContents, readSha256, Refusal } from './api.js';
import { find, say } from './dom.js';

/**
 * What is known of an image before it is downloaded: size, digests, contents, and the controllers that take its URL.
 *
 * @typedef {import('./api.js').ImageUrl} ImageUrl
 * @typedef {{ infraEnv: string, version: string, architecture: string }} Asked
 */

/**
 * Fills a panel, and keeps asking for the SHA-256 while the panel is open.
 *
 * @param {HTMLElement} panel
 * @param {Asked} asked
 */
export async function showDetails(panel, { infraEnv, version, architecture }) {
  const [image, contents] = await Promise.all([
    findImageUrl(infraEnv),
    readContents(version, architecture),
  ]);
  show(panel, 'size', formatSize(image.size_bytes ?? contents.size_bytes));
  show(panel, 'url', image.url);
  show(
    panel,
    'medium',
    image.medium_digest ?? 'A live ISO of CoreOS has none: compare its SHA-256.',
  );
  show(panel, 'verify', image.medium_digest === undefined ? '' : adviseVerify(image));
  for (const [name, text] of Object.entries(describeContents(contents))) show(panel, name, text);
  startControllers(panel, image);
  void followSha256(panel, image.url);
}

/** @param {ImageUrl} image */
const adviseVerify = ({ url, medium_digest: digest = '' }) =>
  `sealift verify ${url.split('/').at(-1) ?? ''} --medium-digest ${digest}`;

/** @param {number} size */
const formatSize = (size) => `${formatUnits(size)} (${size.toLocaleString('en')} bytes)`;

/** @param {number} size in bytes; units are those of disks */
export const formatUnits = (size) =>
  size < 1e9 ? `${(size / 1e6).toFixed(1)} MB` : `${(size / 1e9).toFixed(1)} GB`;

/**
 * @param {import('./api.js').Contents} contents
 * @returns {{ release: string, operators: string }}
 */
function describeContents({ openshift_version: version, ...contents }) {
  const { release_image: reference, images, operators = [], has_agents: hasAgents } = contents;
  const kind = hasAgents ? 'with the installer' : 'without the agent-based installer';
  if (reference === undefined)
    return { release: `OpenShift ${version}, a live ISO of CoreOS`, operators: 'none' };
  return {
    release: `OpenShift ${version}, ${kind}, ${images ?? 0} images, ${reference}`,
    operators:
      operators.map(({ name, versions }) => `${name} ${versions.join(', ')}`).join('; ') || 'none',
  };
}

/**
 * In one line, for the form.
 *
 * @param {import('./api.js').Contents} contents
 */
export const summarizeContents = ({ size_bytes: size, images, operators = [] }) =>
  [
    `ISO of ${formatUnits(size)}`,
    images === undefined ? 'a live ISO of CoreOS, without images' : `${images} images`,
    operators.length === 0
      ? 'no operators'
      : `operators ${operators.map(({ name }) => name).join(', ')}`,
  ].join(' · ');

/**
 * @param {HTMLElement} panel
 * @param {ImageUrl} image
 */
function startControllers(panel, { controllers }) {
  const choice = find('.controller', HTMLSelectElement, panel);
  const chosen = choice.value;
  choice.replaceChildren(
    new Option('Choose yours', ''),
    ...controllers.map(({ controller }) => new Option(controller)),
  );
  choice.value = chosen;
  choice.onchange = () => {
    const verdict = controllers.find(({ controller }) => controller === choice.value);
    say(find('.verdict', HTMLElement, panel), verdict ? describeVerdict(verdict) : '');
  };
  choice.onchange(new Event('change'));
}

/** @param {import('./api.js').ControllerVerdict} verdict */
function describeVerdict({ url, reasons, note = '' }) {
  const taken =
    url === undefined
      ? `It does not take this ISO from here: ${reasons.join(', ')}.`
      : `It takes ${url} (${url.length} characters; ends in .iso, no query, ranges are served).`;
  return `${taken} ${note}`.trim();
}

/**
 * @param {HTMLElement} panel
 * @param {string} url
 */
async function followSha256(panel, url) {
  panel.dataset['url'] = url;
  while (isOpen(panel, url)) {
    try {
      const state = await readSha256(url);
      if (!isOpen(panel, url)) return;
      if ('sha256' in state) {
        show(panel, 'sha256', state.sha256);
        return;
      }
      show(panel, 'sha256', `Being computed: ${Math.floor(state.share * 100)} %`);
      await new Promise((resolve) => setTimeout(resolve, Math.min(state.seconds, 5) * 1000));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      show(panel, 'sha256', error.message);
      return;
    }
  }
}

/**
 * True while the panel is on the page, open, and for this URL.
 *
 * @param {HTMLElement} panel
 * @param {string} url
 */
const isOpen = (panel, url) => panel.isConnected && !panel.hidden && panel.dataset['url'] === url;

/**
 * @param {HTMLElement} panel
 * @param {string} name class of the value
 * @param {string} text
 */
function show(panel, name, text) {
  const value = find(`.${name}`, HTMLElement, panel);
  if (value.textContent !== text) value.textContent = text;
}
