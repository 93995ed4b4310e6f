import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { PACKAGE_ROOT } from '../../base/program.ts';
import { textFile, type File, type Unit } from '../../ignition/config.ts';

type Holes = Readonly<Record<string, string>>;

const ROOT = new URL('templates/', PACKAGE_ROOT);

/** A template's text with its holes filled. `name` is a path below `templates/`. */
export function renderText(name: string, holes: Holes = {}): string {
  return renderTemplate(readFileSync(fileURLToPath(new URL(name, ROOT)), 'utf8'), holes);
}

/** An executable of `/usr/local/bin`; its values stand inside single quotes of the shell. */
export function renderScript(name: string, holes: Holes = {}): File {
  for (const [hole, value] of Object.entries(holes)) {
    if (/['\n\0]/.test(value)) throw new Error(`value of the hole "${hole}" would end its quotes`);
  }
  return textFile(`/usr/local/bin/${name}`, renderText(`scripts/${name}`, holes), 0o555);
}

/** A unit that systemd's preset enables at the first boot. */
export function renderEnabledUnit(name: string, holes: Holes = {}): Unit {
  return { ...renderUnit(name, holes), enabled: true };
}

/** A drop-in, `<unit>.d/<name>`, for a unit of the installer. It has no effect without that unit. */
export const renderDropIn = (unit: string, name: string): Unit => ({
  name: unit,
  dropins: [{ name, contents: renderText(`units/${unit}.d/${name}`) }],
});

/** A unit that something else starts: another unit, a path, a udev rule. */
export function renderUnit(name: string, holes: Holes = {}): Unit {
  return { name, contents: renderText(`units/${name}`, holes) };
}

const HOLE = /\{\{ ([a-z][a-z0-9-]*) \}\}/g;

/**
 * Fills the holes `{{ name }}` of a text. There is no logic and no escaping: who fills a hole knows
 * what stands around it. Go templates (`{{.Id}}`, for a command in a script) are left alone.
 *
 * Template and caller belong together, so a hole without a value, a value without a hole and a
 * misspelt hole are bugs and thrown as such.
 */
export function renderTemplate(text: string, holes: Readonly<Record<string, string>>): string {
  const stray = /\{\{(?![.]| [a-z][a-z0-9-]* \}\})[^\n]{0,20}/.exec(text);
  if (stray) throw new Error(`template has the malformed hole "${stray[0]}"`);
  const unused = new Set(Object.keys(holes));
  const rendered = text.replaceAll(HOLE, (_, name: string) => {
    const value = Object.hasOwn(holes, name) ? holes[name] : undefined;
    if (value === undefined) throw new Error(`template has the hole "${name}" but no value for it`);
    unused.delete(name);
    return value;
  });
  if (unused.size > 0) throw new Error(`template has no hole "${[...unused].join('", "')}"`);
  return rendered;
}
